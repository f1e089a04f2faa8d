#include "hubagent/object_copy.hpp"

#include "hubagent/annotations.hpp"
#include "hubagent/pause.hpp"
#include "hubagent/works.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

constexpr std::string_view last_applied = "kubectl.kubernetes.io/last-applied-configuration";

/// Of metadata, only these fields are the user's; the server or controllers own the rest.
json::object clean_metadata(const json::object& object) {
  json::object clean;
  const auto* metadata = object.if_contains("metadata");
  if (metadata == nullptr || !metadata->is_object()) return clean;
  for (const char* kept : {"name", "namespace", "labels", "annotations"})
    if (const auto* value = metadata->get_object().if_contains(kept)) clean[kept] = *value;
  return clean;
}

void drop_entries(json::object& metadata, std::string_view map, const std::function<bool(std::string_view)>& unwanted) {
  auto* entries = metadata.if_contains(map);
  if (entries == nullptr || !entries->is_object()) return;
  json::object left;
  for (const auto& entry : entries->get_object())
    if (!unwanted(entry.key())) left[entry.key()] = entry.value();
  if (left.empty())
    metadata.erase(map);
  else
    metadata[map] = std::move(left);
}

bool is_own(std::string_view key) {
  return key.starts_with(annotations::own_domain);
}

/// unreachable, unavailable: the hub sets them while the cluster is away.
bool is_taint_of_hub(const json::value& taint) {
  return taint.is_object() &&
         kube::string_at(taint.get_object(), {"key"}).starts_with("cluster.open-cluster-management.io/");
}

void clean_managed_cluster(json::object& object) {
  const std::string migrating{annotation_text(object, ocm::names::migrating_annotation)};
  drop_annotation(object, ocm::names::migrating_annotation);
  if (!migrating.empty()) {
    // Ours is in force on the source; the target has one of the user's name.
    const std::string before{annotation_text(object, annotations::klusterlet_config_before)};
    if (before.empty())
      drop_annotation(object, ocm::names::klusterlet_config_annotation);
    else
      set_annotation(object, ocm::names::klusterlet_config_annotation, before);
  }
  // A user's own disable-auto-import is copied; ours is not, the target sets its own.
  if (!migrating.empty() && annotation_text(object, ocm::names::disable_auto_import_annotation) == migrating)
    drop_annotation(object, ocm::names::disable_auto_import_annotation);
  if (!migrating.empty() && annotation_text(object, ocm::names::accepted_on_annotation) == migrating)
    drop_annotation(object, ocm::names::accepted_on_annotation);
  auto& spec = kube::object_in(object, "spec");
  spec.erase("managedClusterClientConfigs");
  spec["hubAcceptsClient"] = true;
  if (auto* taints = spec.if_contains("taints"); taints != nullptr && taints->is_array()) {
    json::array left;
    for (const auto& taint : taints->get_array())
      if (!is_taint_of_hub(taint)) left.push_back(taint);
    if (left.empty())
      spec.erase("taints");
    else
      spec["taints"] = std::move(left);
  }
}

/// What was sent, without what controllers of the target own from then on.
json::object comparable(json::object sent, const Resource& resource) {
  sent.erase("status");
  if (resource != ocm::managed_clusters) return sent;
  kube::object_in(sent, "spec").erase("taints");
  auto* labels = kube::object_in(sent, "metadata").if_contains("labels");
  if (labels == nullptr || !labels->is_object()) return sent;
  json::object left;
  for (const auto& label : labels->get_object())
    if (!label.key().starts_with("feature.open-cluster-management.io/")) left[label.key()] = label.value();
  kube::object_in(sent, "metadata")["labels"] = std::move(left);
  return sent;
}

std::string joined_path(std::string_view step, const std::string& rest) {
  std::string path{step};
  if (!rest.empty() && rest.front() != '[') path += '.';
  return path + rest;
}

/// Where `actual` lacks a field of `wanted` or has another value; lists must be of the same length.
std::optional<std::string> first_difference(const json::value& actual, const json::value& wanted) {
  if (const auto* fields = wanted.if_object()) {
    const auto* present = actual.if_object();
    if (present == nullptr) return "";
    for (const auto& field : *fields) {
      const auto* value = present->if_contains(field.key());
      // API servers omit empty maps and lists.
      const bool empty = (field.value().is_object() && field.value().get_object().empty()) ||
                         (field.value().is_array() && field.value().get_array().empty());
      if (value == nullptr && (empty || field.value().is_null())) continue;
      if (value == nullptr) return std::string{field.key()};
      if (const auto inner = first_difference(*value, field.value())) return joined_path(field.key(), *inner);
    }
    return std::nullopt;
  }
  if (const auto* elements = wanted.if_array()) {
    const auto* present = actual.if_array();
    if (present == nullptr || present->size() != elements->size()) return "";
    for (std::size_t i = 0; i < elements->size(); ++i)
      if (const auto inner = first_difference((*present)[i], (*elements)[i]))
        return joined_path("[" + std::to_string(i) + "]", *inner);
    return std::nullopt;
  }
  if (actual == wanted) return std::nullopt;
  return "";
}

}  // namespace

CarriedObject clean_object(const Object& object, const Resource& resource, bool with_status) {
  CarriedObject carried;
  carried.object["apiVersion"] = resource.api_version();
  carried.object["kind"] = resource.kind;
  auto& metadata = carried.object["metadata"];
  metadata = clean_metadata(object.json());
  for (const auto& field : object.json())
    if (field.key() != "metadata" && field.key() != "status" && field.key() != "apiVersion" && field.key() != "kind")
      carried.object[field.key()] = field.value();
  if (const auto* status = object->if_contains("status"); with_status && status != nullptr) {
    carried.object["status"] = *status;
    carried.with_status = true;
  }

  // Our own pause is not copied; the target sets its own.
  const bool paused_by_us = !annotation_text(carried.object, annotations::paused_by).empty();
  if (const auto* pausing = find_pausing(resource); pausing != nullptr && paused_by_us)
    drop_annotation(carried.object, pausing->annotation);
  if (resource == ocm::managed_clusters) clean_managed_cluster(carried.object);
  if (resource == ocm::cluster_deployments) restore_preserve_on_delete(carried.object);
  auto& cleaned = carried.object["metadata"].get_object();
  drop_entries(cleaned, "annotations", [](std::string_view key) { return key == last_applied || is_own(key); });
  drop_entries(cleaned, "labels", is_own);
  if (resource == ocm::manifest_works) record_applied(carried.object, object);
  return carried;
}

json::object prepare_copy(json::object object, const Resource& resource, const MigrationRef& migration) {
  object.erase("status");
  set_label(object, migration_label, migration.uid);
  add_restore_labels(object, resource);
  if (const auto* pausing = find_pausing(resource)) pause(object, *pausing, migration.uid);
  if (resource == ocm::managed_clusters && annotation_in(object, ocm::names::disable_auto_import_annotation) == nullptr)
    set_annotation(object, ocm::names::disable_auto_import_annotation, migration.uid);
  return object;
}

std::optional<std::string> find_difference(const Object& copy, json::object sent, const Resource& resource) {
  return first_difference(copy.json(), comparable(std::move(sent), resource));
}

}  // namespace hubferry::hubagent
