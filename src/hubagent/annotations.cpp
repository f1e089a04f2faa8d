#include "hubagent/annotations.hpp"

#include <algorithm>
#include <array>

#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

constexpr const char* restore_name_label = "velero.io/restore-name";
constexpr const char* restore_name = "globalhub";
constexpr const char* restore_status_annotation = "velero.io/restore-status";
constexpr const char* backup_label = "cluster.open-cluster-management.io/backup";

bool set_in_metadata(json::object& object, std::string_view map, std::string_view name, std::string_view value) {
  auto& entry = kube::object_in(kube::object_in(object, "metadata"), map)[name];
  if (entry.is_string() && entry.get_string() == value) return false;
  entry = value;
  return true;
}

bool drop_in_metadata(json::object& object, std::string_view map, std::string_view name) {
  const auto* found = kube::find(object, {"metadata", map});
  if (found == nullptr || !found->is_object() || !found->get_object().contains(name)) return false;
  auto& metadata = object["metadata"].get_object();
  auto& entries = metadata[map].get_object();
  entries.erase(name);
  if (entries.empty()) metadata.erase(map);
  return true;
}

}  // namespace

std::string_view label_text(const json::object& object, std::string_view name) {
  return kube::string_at(object, {"metadata", "labels", name});
}

const json::value* annotation_in(const json::object& object, std::string_view name) {
  return kube::find(object, {"metadata", "annotations", name});
}

std::string_view annotation_text(const json::object& object, std::string_view name) {
  return kube::string_at(object, {"metadata", "annotations", name});
}

bool exists(const json::object& object) {
  return !kube::string_at(object, {"metadata", "uid"}).empty();
}

bool set_label(json::object& object, std::string_view name, std::string_view value) {
  return set_in_metadata(object, "labels", name, value);
}

bool set_annotation(json::object& object, std::string_view name, std::string_view value) {
  return set_in_metadata(object, "annotations", name, value);
}

bool drop_label(json::object& object, std::string_view name) {
  return drop_in_metadata(object, "labels", name);
}

bool drop_annotation(json::object& object, std::string_view name) {
  return drop_in_metadata(object, "annotations", name);
}

bool overlay(json::object& object, const json::object& wanted) {
  bool changed = false;
  for (const auto& field : wanted) {
    auto* present = object.if_contains(field.key());
    if (present != nullptr && present->is_object() && field.value().is_object()) {
      changed |= overlay(present->get_object(), field.value().get_object());
    } else if (present == nullptr || *present != field.value()) {
      object[field.key()] = field.value();
      changed = true;
    }
  }
  return changed;
}

bool is_ours(const MigrationRef& migration, const json::object& object) {
  return kube::string_at(object, {"metadata", "labels", migration_label}) == migration.uid;
}

bool is_ours(const MigrationRef& migration, const Object& object) {
  return is_ours(migration, object.json());
}

std::string ours_selector(const MigrationRef& migration) {
  return std::string{migration_label} + "=" + migration.uid;
}

bool keep_denied(json::object& object, const MigrationRef& migration) {
  return annotation_in(object, ocm::names::accepted_on_annotation) == nullptr &&
         set_annotation(object, ocm::names::accepted_on_annotation, migration.uid);
}

bool was_detached(const MigrationRef& migration, const json::object& object) {
  using namespace ocm::names;
  // The others are those of a manager that did not know the first one.
  return std::ranges::any_of(
      std::array{annotations::detached_by, accepted_on_annotation, disable_auto_import_annotation},
      [&](const char* name) { return annotation_text(object, name) == migration.uid; });
}

std::string owner_of(const json::object& object) {
  const auto uid = kube::string_at(object, {"metadata", "labels", migration_label});
  return uid.empty() ? "somebody else" : "migration " + std::string{uid};
}

void add_restore_labels(json::object& object, const Resource& resource) {
  if (resource == ocm::bare_metal_hosts && label_text(object, backup_label).empty())
    set_label(object, backup_label, "cluster-activation");
  if (resource != ocm::image_cluster_installs) return;
  if (label_text(object, restore_name_label).empty()) set_label(object, restore_name_label, restore_name);
  if (annotation_in(object, restore_status_annotation) == nullptr)
    set_annotation(object, restore_status_annotation, "true");
}

Awaitable<Result<>> remove_restore_labels(const Hub& hub, std::string ns) {
  auto installs = co_await list(hub, ocm::image_cluster_installs, ns);
  if (!installs) co_return installs.error();
  auto remove = [](json::object& object) {
    return label_text(object, restore_name_label) == restore_name && drop_label(object, restore_name_label);
  };
  for (const auto& install : *installs) {
    auto removed = co_await edit_if_exists(hub, ocm::image_cluster_installs, install, remove);
    if (!removed) co_return removed.error();
  }
  co_return Result<>{};
}

}  // namespace hubferry::hubagent
