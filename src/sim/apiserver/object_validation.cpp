#include "sim/apiserver/object_validation.hpp"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/names.hpp"

namespace hubferry::sim {

namespace {

std::string quoted(std::string_view text) {
  return json::serialize(json::value(text));
}

void check_labels(const json::object& metadata, std::vector<FieldError>& field_errors) {
  const auto* labels = metadata.if_contains("labels");
  if (labels == nullptr || labels->is_null()) return;
  if (!labels->is_object()) {
    field_errors.push_back({"metadata.labels", "Invalid value: must be a map of strings", "FieldValueTypeInvalid"});
    return;
  }
  for (const auto& [key, value] : labels->get_object()) {
    if (!kube::is_qualified_name(key))
      field_errors.push_back(
          {"metadata.labels",
           "Invalid value: " + quoted(key) +
               ": name part must consist of alphanumeric characters, '-', '_' or '.', and must start "
               "and end with an alphanumeric character",
           "FieldValueInvalid"});
    if (!value.is_string() || !kube::is_label_value(value.get_string()))
      field_errors.push_back({"metadata.labels",
                              "Invalid value: " + json::serialize(value) +
                                  ": a valid label must be an empty string or consist of alphanumeric characters, '-', "
                                  "'_' or '.', and must start and end with an alphanumeric character",
                              "FieldValueInvalid"});
  }
}

}  // namespace

std::string_view verb_name(kube::Verb verb) {
  switch (verb) {
    case kube::Verb::get:
      return "get";
    case kube::Verb::create:
      return "create";
    case kube::Verb::update:
      return "update";
    case kube::Verb::patch:
      return "patch";
    case kube::Verb::apply:
      return "apply";
    case kube::Verb::remove:
      return "delete";
  }
  return "get";
}

Outcome<> check_type(const kube::Resource& resource, const json::object& object) {
  const auto version = kube::string_at(object, {"apiVersion"});
  if (!version.empty() && version != resource.api_version())
    return errors::bad_request("the API version in the data (" + std::string{version} +
                               ") does not match the expected API version (" + resource.api_version() + ")");
  const auto kind = kube::string_at(object, {"kind"});
  if (!kind.empty() && kind != resource.kind)
    return errors::bad_request("the kind in the data (" + std::string{kind} + ") does not match the expected kind (" +
                               resource.kind + ")");
  if (const auto* metadata = object.if_contains("metadata"); metadata != nullptr && !metadata->is_object())
    return errors::bad_request("metadata must be an object");
  return {};
}

std::vector<FieldError> check_metadata(const kube::Resource& resource, const json::object& object) {
  std::vector<FieldError> field_errors;
  const auto& metadata = object.at("metadata").get_object();
  const auto name = kube::string_at(metadata, {"name"});
  const bool free_name = resource.group == "rbac.authorization.k8s.io";
  if (name.empty()) {
    field_errors.push_back({"metadata.name", "Required value: name or generateName is required", "FieldValueRequired"});
  } else if (resource.kind == "Namespace" && !kube::is_dns_label(name)) {
    field_errors.push_back(
        {"metadata.name",
         "Invalid value: " + quoted(name) +
             ": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
             "and must start and end with an alphanumeric character",
         "FieldValueInvalid"});
  } else if (!free_name && !kube::is_dns_subdomain(name)) {
    field_errors.push_back({"metadata.name",
                            "Invalid value: " + quoted(name) +
                                ": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
                                "'-' or '.', and must start and end with an alphanumeric character",
                            "FieldValueInvalid"});
  }
  check_labels(metadata, field_errors);
  if (const auto* owners = metadata.if_contains("ownerReferences"); owners != nullptr && owners->is_array())
    for (std::size_t i = 0; i < owners->get_array().size(); ++i) {
      const auto& owner = owners->get_array()[i];
      for (const char* field : {"apiVersion", "kind", "name", "uid"})
        if (!owner.is_object() || kube::string_at(owner.get_object(), {field}).empty())
          field_errors.push_back({"metadata.ownerReferences[" + std::to_string(i) + "]." + field,
                                  "Invalid value: \"\": must not be empty", "FieldValueInvalid"});
    }
  if (const auto* finalizers = metadata.if_contains("finalizers"); finalizers != nullptr && finalizers->is_array())
    for (const auto& finalizer : finalizers->get_array())
      if (!finalizer.is_string() || !kube::is_qualified_name(finalizer.get_string()))
        field_errors.push_back({"metadata.finalizers",
                                "Invalid value: " + json::serialize(finalizer) + ": name part must be non-empty",
                                "FieldValueInvalid"});
  return field_errors;
}

std::vector<FieldError> check_update(const kube::Resource& resource, const json::object& old,
                                     const json::object& next) {
  if (resource.group != "apps" || resource.plural != "statefulsets") return {};
  const auto fixed_part = [](const json::object& set) {
    const auto* spec = set.if_contains("spec");
    auto fixed = spec != nullptr && spec->is_object() ? spec->get_object() : json::object{};
    for (const auto* changeable : {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
                                   "persistentVolumeClaimRetentionPolicy", "minReadySeconds"})
      fixed.erase(changeable);
    return fixed;
  };
  if (fixed_part(old) == fixed_part(next)) return {};
  return {{"spec",
           "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
           "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
           "forbidden",
           "FieldValueForbidden"}};
}

std::vector<FieldError> check_definition(const json::object& definition) {
  std::vector<FieldError> field_errors;
  const auto* spec_value = definition.if_contains("spec");
  const json::object none;
  const auto& spec = spec_value != nullptr && spec_value->is_object() ? spec_value->get_object() : none;
  const auto need = [&](std::string_view field, bool present) {
    if (!present) field_errors.push_back({std::string{field}, "Required value", "FieldValueRequired"});
  };
  const auto plural = kube::string_at(spec, {"names", "plural"});
  need("spec.group", !kube::string_at(spec, {"group"}).empty());
  need("spec.names.plural", !plural.empty());
  need("spec.names.kind", !kube::string_at(spec, {"names", "kind"}).empty());
  const auto scope = kube::string_at(spec, {"scope"});
  if (scope != "Namespaced" && scope != "Cluster")
    field_errors.push_back({"spec.scope",
                            "Unsupported value: " + quoted(scope) + ": supported values: \"Cluster\", \"Namespaced\"",
                            "FieldValueNotSupported"});
  const std::string expected = std::string{plural} + "." + std::string{kube::string_at(spec, {"group"})};
  const auto name = kube::string_at(definition, {"metadata", "name"});
  if (name != expected)
    field_errors.push_back({"metadata.name",
                            "Invalid value: " + quoted(name) + ": must be spec.names.plural+\".\"+spec.group",
                            "FieldValueInvalid"});
  const auto* versions = spec.if_contains("versions");
  int stored = 0;
  if (versions != nullptr && versions->is_array())
    for (const auto& version : versions->get_array()) {
      const auto* storage = kube::find(version, {"storage"});
      if (storage != nullptr && storage->is_bool() && storage->get_bool()) ++stored;
      if (kube::find(version, {"schema", "openAPIV3Schema"}) == nullptr)
        field_errors.push_back(
            {"spec.versions[0].schema.openAPIV3Schema", "Required value: schemas are required", "FieldValueRequired"});
    }
  if (stored != 1)
    field_errors.push_back({"spec.versions", "Invalid value: must have exactly one version marked as storage version",
                            "FieldValueInvalid"});
  return field_errors;
}

void fold_string_data(json::object& secret) {
  const auto* text = secret.if_contains("stringData");
  if (text != nullptr && text->is_object()) {
    const json::object given = text->get_object();
    auto& data = secret["data"];
    if (!data.is_object()) data = json::object{};
    for (const auto& [key, value] : given)
      if (value.is_string()) data.get_object()[key] = kube::encode_base64(value.get_string());
  }
  secret.erase("stringData");
  if (!secret.contains("type")) secret["type"] = "Opaque";
}

bool is_released(const json::object& object) {
  const auto holds = [&](std::initializer_list<std::string_view> path) {
    const auto* list = kube::find(object, path);
    return list != nullptr && list->is_array() && !list->get_array().empty();
  };
  if (holds({"metadata", "finalizers"})) return false;
  return kube::string_at(object, {"kind"}) != "Namespace" || !holds({"spec", "finalizers"});
}

}  // namespace hubferry::sim
