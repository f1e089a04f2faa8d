#include "phase/kind_check.hpp"

namespace hubferry::phase {

namespace {

namespace json = boost::json;

const json::object* find_version(const kube::Object& definition, const std::string& name) {
  const auto* versions = definition.find({"spec", "versions"});
  if (versions == nullptr || !versions->is_array()) return nullptr;
  for (const auto& version : versions->get_array())
    if (version.is_object() && kube::string_at(version.get_object(), {"name"}) == name) return &version.get_object();
  return nullptr;
}

bool keeps_unknown_fields(const json::object& schema) {
  const auto* keeps = schema.if_contains("x-kubernetes-preserve-unknown-fields");
  return keeps != nullptr && keeps->is_bool() && keeps->get_bool();
}

/// The schema of a field; nullptr if the field would be pruned.
const json::object* schema_of(const json::object& schema, std::string_view field) {
  if (const auto* found = kube::find(schema, {"properties", field}); found != nullptr && found->is_object())
    return &found->get_object();
  // Whatever is not mentioned is kept as it is.
  return keeps_unknown_fields(schema) ? &schema : nullptr;
}

/// True if a map from names to objects of any content survives in a field with this schema.
bool keeps_any_content(const json::object& schema) {
  if (keeps_unknown_fields(schema)) return true;
  const auto* values = schema.if_contains("additionalProperties");
  if (values == nullptr) return false;
  if (values->is_bool()) return values->get_bool();
  return values->is_object() && keeps_unknown_fields(values->get_object());
}

}  // namespace

std::optional<std::string> status_problem(const kube::Object& definition, const kube::Resource& kind,
                                          PhaseSource source, const std::vector<std::string>& fields) {
  const auto where = "CustomResourceDefinition " + kind.display_name() + ", version " + kind.version + ": ";
  const auto* version = find_version(definition, kind.version);
  if (version == nullptr) return where + "it does not exist";
  if (kube::find(*version, {"subresources", "status"}) == nullptr)
    return where + "it has no status subresource, so that no status can be written: add subresources.status";
  if (source == PhaseSource::derived) return std::nullopt;
  const auto* schema = kube::find(*version, {"schema", "openAPIV3Schema"});
  if (schema == nullptr || !schema->is_object()) return std::nullopt;
  const auto* status = schema_of(schema->get_object(), "status");
  if (status == nullptr || schema_of(*status, "phase") == nullptr)
    return where + "its schema prunes status.phase: add the field";
  const auto* state = schema_of(*status, "state");
  if (state == nullptr || !keeps_any_content(*state))
    return where +
           "its schema prunes status.state: add the field as an object with x-kubernetes-preserve-unknown-fields: true";
  for (const auto& field : fields)
    if (schema_of(*status, field) == nullptr)
      return where + "its schema prunes status." + field + ": apply the definition of this version";
  return std::nullopt;
}

}  // namespace hubferry::phase
