#include "hubagent/clean_object.hpp"

#include "hubagent/marks.hpp"
#include "hubagent/pause.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

constexpr std::string_view last_applied = "kubectl.kubernetes.io/last-applied-configuration";

/// Of metadata, only this is the user's; everything else is a server's or a controller's.
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
  return key.starts_with(marks::own_domain);
}

/// unreachable, unavailable: the hub puts them on while the cluster is away.
bool is_taint_of_the_hub(const json::value& taint) {
  return taint.is_object() &&
         kube::string_at(taint.get_object(), {"key"}).starts_with("cluster.open-cluster-management.io/");
}

void clean_managed_cluster(json::object& object) {
  const std::string migrating{annotation_text(object, ocm::names::migrating_annotation)};
  drop_annotation(object, ocm::names::migrating_annotation);
  drop_annotation(object, ocm::names::klusterlet_config_annotation);
  // Whoever had switched automatic import off before wants it off there too; ours is set anew by the target.
  if (!migrating.empty() && annotation_text(object, ocm::names::disable_auto_import_annotation) == migrating)
    drop_annotation(object, ocm::names::disable_auto_import_annotation);
  auto& spec = kube::object_in(object, "spec");
  spec.erase("managedClusterClientConfigs");
  spec["hubAcceptsClient"] = true;
  if (auto* taints = spec.if_contains("taints"); taints != nullptr && taints->is_array()) {
    json::array left;
    for (const auto& taint : taints->get_array())
      if (!is_taint_of_the_hub(taint)) left.push_back(taint);
    if (left.empty())
      spec.erase("taints");
    else
      spec["taints"] = std::move(left);
  }
}

}  // namespace

CarriedObject clean_object(const kube::Object& object, const kube::Resource& resource, bool with_status) {
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

  // A pause of ours is not the user's wish; the target sets its own.
  const bool paused_by_us = !annotation_text(carried.object, marks::paused_by).empty();
  if (const auto* pausing = find_pausing(resource); pausing != nullptr && paused_by_us)
    drop_annotation(carried.object, pausing->annotation);
  if (resource == ocm::managed_clusters) clean_managed_cluster(carried.object);
  auto& cleaned = carried.object["metadata"].get_object();
  drop_entries(cleaned, "annotations", [](std::string_view key) { return key == last_applied || is_own(key); });
  drop_entries(cleaned, "labels", is_own);
  return carried;
}

}  // namespace hubferry::hubagent
