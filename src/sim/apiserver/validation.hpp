#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/random.hpp"
#include "hubferry/async/types.hpp"
#include "hubferry/kube/api.hpp"
#include "sim/apiserver/status_error.hpp"

namespace hubferry::sim {

/// As faults and permissions name it.
std::string_view verb_name(kube::Verb verb);

/// Does the body say what the URL says? Absent apiVersion and kind are fine.
Outcome<> check_type(const kube::Resource& resource, const json::object& object);

/// The name, labels, annotations, finalizers and owners.
std::vector<FieldError> check_metadata(const kube::Resource& resource, const json::object& object);

/// What a CustomResourceDefinition must have.
std::vector<FieldError> check_definition(const json::object& definition);

/// Moves a Secret's stringData into its data.
void fold_string_data(json::object& secret);

/// Holds nothing the object back any more from being removed?
bool is_released(const json::object& object);

}  // namespace hubferry::sim
