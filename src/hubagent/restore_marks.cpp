#include "hubagent/restore_marks.hpp"

#include "hubagent/marks.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

constexpr const char* restore_name_label = "velero.io/restore-name";
constexpr const char* restore_name = "globalhub";
constexpr const char* restore_status_annotation = "velero.io/restore-status";
constexpr const char* backup_label = "cluster.open-cluster-management.io/backup";

}  // namespace

void mark_as_restored(json::object& object, const Resource& resource) {
  if (resource == ocm::bare_metal_hosts && label_text(object, backup_label).empty())
    set_label(object, backup_label, "cluster-activation");
  if (resource != ocm::image_cluster_installs) return;
  if (label_text(object, restore_name_label).empty()) set_label(object, restore_name_label, restore_name);
  if (annotation_in(object, restore_status_annotation) == nullptr)
    set_annotation(object, restore_status_annotation, "true");
}

Awaitable<Result<>> end_restore_marks(const Hub& hub, std::string ns) {
  auto installs = co_await list(hub, ocm::image_cluster_installs, ns);
  if (!installs) co_return installs.error();
  auto unmark = [](json::object& object) {
    return label_text(object, restore_name_label) == restore_name && drop_label(object, restore_name_label);
  };
  for (const auto& install : *installs) {
    auto unmarked = co_await edit_if_there(hub, ocm::image_cluster_installs, install, unmark);
    if (!unmarked) co_return unmarked.error();
  }
  co_return Result<>{};
}

}  // namespace hubferry::hubagent
