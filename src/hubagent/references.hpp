#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/object.hpp"

namespace hubferry::hubagent {

/// The texts at a path such as "spec.bmc.credentialsName" or "spec.extraManifestsRefs[].name"; empty ones left out.
std::vector<std::string> names_at(const kube::json::object& object, std::string_view path);

}  // namespace hubferry::hubagent
