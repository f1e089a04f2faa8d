#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/random.hpp"
#include "hubferry/async/types.hpp"
#include "hubferry/kube/api.hpp"
#include "sim/apiserver/status_error.hpp"

namespace hubferry::sim {

/// The verb's name in faults and permissions.
std::string_view verb_name(kube::Verb verb);

/// Checks the body's apiVersion and kind, if present, against the URL.
Outcome<> check_type(const kube::Resource& resource, const json::object& object);

/// Validates name, labels, finalizers and owner references.
std::vector<FieldError> check_metadata(const kube::Resource& resource, const json::object& object);

/// Validates a CustomResourceDefinition.
std::vector<FieldError> check_definition(const json::object& definition);

/// Fields of built-in kinds that an update may not change: those of StatefulSets.
std::vector<FieldError> check_update(const kube::Resource& resource, const json::object& old, const json::object& next);

/// Moves a Secret's stringData into its data.
void fold_string_data(json::object& secret);

/// True if no finalizer keeps the object from being removed.
bool is_released(const json::object& object);

}  // namespace hubferry::sim
