#include "hubferry/kube/resource.hpp"
#include "sim/apiserver/core.hpp"
#include "sim/apiserver/http/formats.hpp"

/// The OpenAPI v3 documents of the server, one for each group and version: what `kubectl explain` reads, and where
/// kubectl looks up whether a server knows a query parameter.
namespace hubferry::sim {

namespace {

/// "apis/example.com/v1", as in the index.
std::string document_name(const Kind& kind) {
  return (kind.resource.group.empty() ? "api/" : "apis/") + kind.resource.api_version();
}

json::object version_kind(const Kind& kind) {
  return {{"group", kind.resource.group}, {"version", kind.resource.version}, {"kind", kind.resource.kind}};
}

/// The schema of a kind's CustomResourceDefinition, if it has one.
const json::value* defined_schema(const Kinds& kinds, const Kind& kind) {
  const auto* definitions = kinds.find(kube::resources::custom_resource_definitions);
  const auto& entries = definitions->collection->entries;
  const auto found = entries.find(kube::Key{{}, kind.resource.plural + "." + kind.resource.group});
  if (found == entries.end()) return nullptr;
  const auto* versions = found->second.object.find({"spec", "versions"});
  if (versions == nullptr || !versions->is_array()) return nullptr;
  for (const auto& version : versions->get_array())
    if (version.is_object() && kube::string_at(version.get_object(), {"name"}) == kind.resource.version)
      return kube::find(version, {"schema", "openAPIV3Schema"});
  return nullptr;
}

json::object text_field(std::string_view description) {
  return {{"type", "string"}, {"description", description}};
}

json::object schema_of(const Kinds& kinds, const Kind& kind) {
  json::object schema{{"type", "object"}};
  if (const auto* defined = defined_schema(kinds, kind); defined != nullptr && defined->is_object())
    schema = defined->get_object();
  else
    schema["description"] = "A kind of Kubernetes itself: the simulator has no schema of its fields.";
  auto& properties = kube::object_in(schema, "properties");
  properties["apiVersion"] = text_field("The group and version of this object.");
  properties["kind"] = text_field("The kind of this object.");
  properties["metadata"] = json::object{
      {"type", "object"}, {"description", "Standard object's metadata: name, namespace, labels, annotations."}};
  schema["x-kubernetes-group-version-kind"] = json::array{version_kind(kind)};
  return schema;
}

json::object operation(const Kind& kind, std::string_view action, std::initializer_list<std::string_view> parameters) {
  json::array described;
  for (const auto name : parameters)
    described.push_back(json::object{{"name", name}, {"in", "query"}, {"schema", json::object{{"type", "string"}}}});
  return {{"parameters", std::move(described)},
          {"responses", json::object{}},
          {"x-kubernetes-action", action},
          {"x-kubernetes-group-version-kind", version_kind(kind)}};
}

void add_paths(const Kind& kind, json::object& paths) {
  const kube::Key all{kind.resource.namespaced ? "NS" : "", ""};
  auto path = kind.resource.path(all);
  if (const auto at = path.find("/NS/"); at != std::string::npos) path.replace(at, 4, "/{namespace}/");
  paths[path] = json::object{{"get", operation(kind, "list", {"labelSelector", "fieldSelector", "limit", "continue"})},
                             {"post", operation(kind, "post", {"dryRun", "fieldManager", "fieldValidation"})}};
  paths[path + "/{name}"] = json::object{
      {"get", operation(kind, "get", {})},
      {"patch", operation(kind, "patch", {"dryRun", "fieldManager", "fieldValidation", "force"})},
  };
}

}  // namespace

json::object openapi_index(const Kinds& kinds) {
  json::object paths;
  for (const auto& kind : kinds.all())
    paths[document_name(*kind)] = json::object{{"serverRelativeURL", "/openapi/v3/" + document_name(*kind)}};
  return {{"paths", std::move(paths)}};
}

std::optional<json::object> openapi_document(const Kinds& kinds, std::string_view name) {
  json::object paths;
  json::object schemas;
  for (const auto& kind : kinds.all()) {
    if (document_name(*kind) != name) continue;
    add_paths(*kind, paths);
    const auto& [group, version, plural, kind_name, namespaced] = kind->resource;
    schemas[(group.empty() ? "core" : group) + "." + version + "." + kind_name] = schema_of(kinds, *kind);
  }
  if (paths.empty()) return std::nullopt;
  return json::object{{"openapi", "3.0.0"},
                      {"info", json::object{{"title", "hubferry sim"}, {"version", "v1"}}},
                      {"paths", std::move(paths)},
                      {"components", json::object{{"schemas", std::move(schemas)}}}};
}

}  // namespace hubferry::sim
