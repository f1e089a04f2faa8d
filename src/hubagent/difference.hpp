#pragma once

#include <optional>
#include <string>

#include "hubferry/kube/object.hpp"

namespace hubferry::hubagent {

/// Where `actual` lacks a field of `wanted` or has another value: "spec.size", "data.key", "spec.parts[2].name".
/// Fields that only `actual` has do not count; lists must be of the same length. Tells the place, never a value.
std::optional<std::string> first_difference(const kube::json::value& actual, const kube::json::value& wanted);

}  // namespace hubferry::hubagent
