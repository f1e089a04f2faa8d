#include <map>

#include "hubagent/allow_list.hpp"
#include "hubagent/marks.hpp"
#include "hubagent/pause.hpp"
#include "hubagent/restore_marks.hpp"
#include "hubagent/target_operations.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::namespaces;

Error taken(const Hub& hub, const Resource& resource, const Object& object) {
  return failure(reasons::conflict, described(resource, object.key()) + " exists on hub " + hub.name() +
                                        " already and belongs to " + owner_of(object.json()) +
                                        ": it was left as it is");
}

Error on_its_way_out(const Hub& hub, const Resource& resource, const Key& key) {
  return failure(reasons::conflict, described(resource, key) + " is being deleted on hub " + hub.name() +
                                        ": wait until it has gone, then try again");
}

/// What a server says of a Secret may quote from it.
Error refused(const Hub& hub, const Resource& resource, const Key& key, Error error) {
  if (error.kind != ErrorKind::invalid || resource != kube::resources::secrets) return error;
  return failure(reasons::invalid,
                 "hub " + hub.name() + " does not accept " + described(resource, key) + " as it is (422)");
}

/// One object as it shall be on this hub: marked as ours, accepted, held still until the cluster has arrived.
json::object with_our_marks(json::object object, const Resource& resource, const MigrationRef& migration) {
  object.erase("status");
  set_label(object, migration_label, migration.uid);
  mark_as_restored(object, resource);
  if (const auto* pausing = find_pausing(resource)) pause(object, *pausing, migration.uid);
  if (resource == ocm::managed_clusters && annotation_in(object, ocm::names::disable_auto_import_annotation) == nullptr)
    set_annotation(object, ocm::names::disable_auto_import_annotation, migration.uid);
  return object;
}

/// Creates the object, or brings one of ours to the content. Never touches another's.
Awaitable<Result<Object>> put_ours(const Hub& hub, MigrationRef migration, Resource resource, json::object wanted) {
  const Key key = Object{wanted}.key();
  // Nearly always it is new: one request.
  auto created = co_await hub.api().create(resource, wanted);
  if (created) co_return *created;
  if (created.error().kind == ErrorKind::invalid)
    co_return in_context(refused(hub, resource, key, created.error()),
                         "hub " + hub.name() + " refuses " + described(resource, key));
  auto fill = [&](json::object& object) {
    const bool exists = !kube::string_at(object, {"metadata", "uid"}).empty();
    const bool leaves = !kube::string_at(object, {"metadata", "deletionTimestamp"}).empty();
    if (exists && (leaves || !is_ours(migration, object))) return false;
    return overlay(object, wanted);
  };
  auto written = co_await create_or_patch(hub, resource, key, fill);
  if (!written) co_return refused(hub, resource, key, written.error());
  if (!is_ours(migration, written->object)) co_return taken(hub, resource, written->object);
  if (written->object.is_being_deleted()) co_return on_its_way_out(hub, resource, key);
  co_return written->object;
}

Awaitable<Result<>> put_status(const Hub& hub, Resource resource, Object known, json::value status) {
  auto fill = [&](json::object& object) {
    if (const auto* present = object.if_contains("status"); present != nullptr && *present == status) return false;
    object["status"] = status;
    return true;
  };
  kube::EditOptions options;
  options.subresource = "status";
  auto first = co_await kube::edit(hub.api(), resource, known, fill, options);
  if (first) co_return Result<>{};
  auto attempt = [&] { return kube::edit(hub.api(), resource, known.key(), fill, options); };
  auto written = co_await retried(hub, attempt);
  if (!written)
    co_return in_context(written.error(),
                         "cannot write the status of " + described(resource, known.key()) + " on hub " + hub.name());
  co_return Result<>{};
}

/// Ours where it was missing; one that is there already is used as it is, and stays when we go.
Awaitable<Result<>> ensure_namespace(const Hub& hub, MigrationRef migration, std::string cluster) {
  auto fill = [&](json::object& object) {
    const bool exists = !kube::string_at(object, {"metadata", "uid"}).empty();
    return !exists && set_label(object, migration_label, migration.uid);
  };
  auto written = co_await create_or_patch(hub, namespaces, cluster_scoped(cluster), fill);
  if (!written) co_return written.error();
  if (written->object.is_being_deleted()) co_return on_its_way_out(hub, namespaces, cluster_scoped(cluster));
  co_return Result<>{};
}

Awaitable<Result<>> deploy_object(const Hub& hub, MigrationRef migration, Resource resource,
                                  const CarriedObject& carried) {
  auto wanted = with_our_marks(carried.object, resource, migration);
  auto written = co_await put_ours(hub, std::move(migration), resource, std::move(wanted));
  if (!written) co_return written.error();
  const auto* status = carried.object.if_contains("status");
  if (!carried.with_status || status == nullptr) co_return Result<>{};
  co_return co_await put_status(hub, std::move(resource), *written, *status);
}

Awaitable<Result<>> deploy_one(const Hub& hub, const CarriedResources& table, MigrationRef migration,
                               const ClusterResources& resources, Slot slot) {
  // All are looked at before the first is written.
  std::vector<Resource> kinds;
  for (const auto& carried : resources.objects) {
    auto kind = admitted_kind(table, resources.cluster, carried.object);
    if (!kind) co_return kind.error();
    kinds.push_back(*kind);
  }
  auto space = co_await ensure_namespace(hub, migration, resources.cluster);
  if (!space) co_return space.error();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    auto deployed = co_await deploy_object(hub, migration, kinds[i], resources.objects[i]);
    if (!deployed) co_return deployed.error();
  }
  slot.release();
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> deploy(Hub& hub, MigrationRef migration, Bundle bundle) {
  std::map<std::string, const ClusterResources*> by_name;
  for (const auto& cluster : bundle.clusters) by_name.emplace(cluster.cluster, &cluster);
  auto treat = [&](std::string cluster, Slot slot) {
    return deploy_one(hub, hub.carried(), migration, *by_name.at(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, names_of(bundle), treat);
}

}  // namespace hubferry::hubagent
