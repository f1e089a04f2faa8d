#pragma once

#include <string>

#include "hubferry/kube/object.hpp"

namespace hubferry::app {

/// `value` as YAML in block style, fields in their order. A text that YAML would take for something else (a number,
/// a Boolean, null, a mark of its own) stands in quotes.
std::string to_yaml(const kube::json::value& value);

}  // namespace hubferry::app
