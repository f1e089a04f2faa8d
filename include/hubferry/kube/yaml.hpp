#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/object.hpp"

namespace hubferry::kube {

/// The documents of a YAML text as JSON, by the rules of YAML's core schema: a quoted scalar is a string, and
/// plain scalars are null, Booleans or numbers where they look like it. Empty documents are left out.
/// Throws std::runtime_error that names `file` and the line; also for aliases that hold themselves or multiply.
std::vector<json::value> parse_yaml_documents(std::string_view text, const std::string& file);

}  // namespace hubferry::kube
