#pragma once

#include <string>

#include "hubferry/kube/object.hpp"

namespace hubferry::app {

/// JSON for people: indented, a field each line.
std::string to_indented_json(const kube::json::value& value);

/// A Kubernetes object, or a List of them, with its fields in the order that people expect: apiVersion, kind, metadata
/// with the name first, spec, whatever else there is, and status at the end.
kube::json::object in_usual_order(const kube::json::object& object);

}  // namespace hubferry::app
