#include <map>

#include "hubagent/annotations.hpp"
#include "hubagent/arrival.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/hub_wide_rights.hpp"
#include "hubagent/object_copy.hpp"
#include "hubagent/permission_review.hpp"
#include "hubagent/selection.hpp"
#include "hubferry/ocm/resources.hpp"

/// The copies of a cluster's objects on the target: room for them (validate), their creation (deploy), their content
/// (verify).
namespace hubferry::hubagent {

namespace {

using kube::resources::namespaces;
using ocm::names::disable_auto_import_annotation;

/// An object that the migration would overwrite is a conflict; a namespace without any is no obstacle.
Awaitable<Result<>> check_namespace(const Hub& hub, const CarriedResources& kinds, MigrationRef migration,
                                    std::string cluster) {
  // One that the watch does not show yet is met when the copies are created: they replace nothing of others.
  if (const auto spaces = hub.watches().namespaces.current(); spaces && !spaces->get(cluster_scoped(cluster)))
    co_return Result<>{};
  auto space = co_await get_if_exists(hub, namespaces, cluster_scoped(cluster));
  if (!space) co_return space.error();
  if (!*space) co_return Result<>{};
  const std::string where = "namespace " + cluster + " on hub " + hub.name();
  if ((*space)->is_being_deleted())
    co_return Error{FailureReason::cluster_conflict, where + " is being deleted: wait until it is gone"};
  for (const auto& kind : kinds) {
    if (!kind.resource.namespaced) continue;
    auto objects = co_await list(hub, kind.resource, cluster);
    if (!objects) co_return objects.error();
    for (const auto& object : *objects)
      if (is_selected(kind, cluster, object) && !is_ours(migration, object))
        co_return Error{FailureReason::cluster_conflict,
                        where + " already has " + described(kind.resource, object.key()) + ", which belongs to " +
                            owner_of(object.json()) + ": delete it, or leave the cluster out of the migration"};
  }
  co_return Result<>{};
}

Awaitable<Result<>> validate_one(Hub& hub, const CarriedResources& kinds, MigrationRef migration, std::string cluster,
                                 Slot slot) {
  if (const auto known = hub.clusters().get(cluster_scoped(cluster));
      known != nullptr && known->label(migration_label) != migration.uid)
    co_return Error{FailureReason::cluster_conflict, "there is a managed cluster " + cluster + " on hub " + hub.name() +
                                                         " already: names must differ between the two hubs"};
  auto checked = co_await check_namespace(hub, kinds, std::move(migration), std::move(cluster));
  slot.release();
  co_return checked;
}

Error owned_by_other(const Hub& hub, const Resource& resource, const Object& object) {
  return {FailureReason::cluster_conflict, described(resource, object.key()) + " exists on hub " + hub.name() +
                                               " already and belongs to " + owner_of(object.json()) +
                                               ": it was not changed"};
}

Error being_deleted(const Hub& hub, const Resource& resource, const Key& key) {
  return {FailureReason::cluster_conflict, described(resource, key) + " is being deleted on hub " + hub.name() +
                                               ": wait until it is gone, then try again"};
}

/// The server's message about an invalid Secret, or about a work with one, may quote its content.
Error without_secrets(const Hub& hub, const Resource& resource, const Key& key, const Error& error) {
  const bool may_hold_secrets = resource == kube::resources::secrets || resource == ocm::manifest_works;
  if (!error.is(ErrorKind::invalid) || !may_hold_secrets) return error;
  return {FailureReason::resource_invalid, "hub " + hub.name() + " rejects " + described(resource, key) + " (422)"};
}

/// The cluster stays on the source, where its workloads are safe: without their works they would be evicted.
Error may_not_deploy_works(const Hub& hub, const Key& key) {
  return {FailureReason::resource_not_allowed,
          "we may not create " + described(ocm::manifest_works, key) + " on hub " + hub.name() +
              ", which keeps the workloads on the cluster: apply manifests/hub-rbac/workloads there, or set the "
              "annotation " +
              annotations::stays + "=true on the works that may be lost"};
}

/// Creates the copy, or updates one of ours. Never changes another's object.
Awaitable<Result<Object>> put_copy(const Hub& hub, MigrationRef migration, Resource resource, json::object wanted) {
  const Key key = Object{wanted}.key();
  // Nearly always the object is new: one request.
  auto created = co_await hub.api().create(resource, wanted);
  if (created) co_return *created;
  if (created.error().kind == ErrorKind::invalid)
    co_return without_secrets(hub, resource, key, created.error())
        .in_context("hub " + hub.name() + " rejects " + described(resource, key));
  if (resource == ocm::manifest_works && created.error().kind == ErrorKind::forbidden &&
      !created.error().denied_by_admission)
    co_return may_not_deploy_works(hub, key);
  auto fill = [&](json::object& object) {
    const bool deleted = !kube::string_at(object, {"metadata", "deletionTimestamp"}).empty();
    if (exists(object) && (deleted || !is_ours(migration, object))) return false;
    // What enable_import() has removed stays removed.
    const bool is_import_enabled = exists(object) && resource == ocm::managed_clusters &&
                                   annotation_in(object, disable_auto_import_annotation) == nullptr;
    auto changes = wanted;
    if (is_import_enabled && annotation_text(changes, disable_auto_import_annotation) == migration.uid)
      drop_annotation(changes, disable_auto_import_annotation);
    return overlay(object, changes);
  };
  auto written = co_await create_or_patch(hub, resource, key, fill);
  if (!written) co_return without_secrets(hub, resource, key, written.error());
  if (!is_ours(migration, written->object)) co_return owned_by_other(hub, resource, written->object);
  if (written->object.is_being_deleted()) co_return being_deleted(hub, resource, key);
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
  auto written = co_await with_retry(hub, attempt);
  if (written) co_return Result<>{};
  co_return Error{written.error()}.in_context("cannot write the status of " + described(resource, known.key()) +
                                              " on hub " + hub.name());
}

/// Creates the namespace if it is missing; an existing one is used as it is, and a rollback keeps it.
Awaitable<Result<>> ensure_namespace(const Hub& hub, MigrationRef migration, std::string cluster) {
  auto fill = [&](json::object& object) {
    return !exists(object) && set_label(object, migration_label, migration.uid);
  };
  // Where we create them, it is nearly always new: one request.
  const bool may_create = co_await hub.rights().may("create", namespaces);
  if (may_create) {
    json::object metadata{{"name", cluster}, {"labels", json::object{{migration_label, migration.uid}}}};
    json::object wanted{{"metadata", std::move(metadata)}};
    auto created = co_await hub.api().create(namespaces, std::move(wanted));
    if (created) co_return Result<>{};
  }
  auto written = co_await create_or_patch(hub, namespaces, cluster_scoped(cluster), fill);
  if (!written) co_return written.error();
  if (written->object.is_being_deleted()) co_return being_deleted(hub, namespaces, cluster_scoped(cluster));
  co_return Result<>{};
}

Awaitable<Result<>> deploy_object(const Hub& hub, MigrationRef migration, Resource resource,
                                  const CarriedObject& carried) {
  auto wanted = prepare_copy(carried.object, resource, migration);
  auto written = co_await put_copy(hub, std::move(migration), resource, std::move(wanted));
  if (!written) co_return written.error();
  const auto* status = carried.object.if_contains("status");
  if (!carried.with_status || status == nullptr) co_return Result<>{};
  co_return co_await put_status(hub, std::move(resource), *written, *status);
}

Awaitable<Result<>> deploy_one(const Hub& hub, MigrationRef migration, const ClusterResources& resources, Slot slot) {
  // All objects are checked before the first is written.
  std::vector<Resource> kinds;
  for (const auto& carried : resources.objects) {
    auto kind = allowed_kind(hub.carried(), resources.cluster, carried.object);
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

/// `found`: null if there is none.
Result<> verify_object(const Hub& hub, const MigrationRef& migration, const Resource& kind,
                       const CarriedObject& carried, const Object* found) {
  const std::string what = described(kind, Object{carried.object}.key()) + " on hub " + hub.name();
  const auto differs = [&](const std::string& how) { return Error{FailureReason::resource_differs, what + how}; };
  if (found == nullptr) return differs(" is missing");
  if (!is_ours(migration, *found)) return differs(" is not the one that was sent");
  if (found->is_being_deleted()) return differs(" is being deleted");
  if (const auto field = find_difference(*found, carried.object, kind))
    return differs(" differs from the source in " + *field);
  return {};
}

/// From this number on, the copies of one kind in a bundle are listed by our label; fewer are read one by one.
constexpr std::size_t worth_listing_copies = 10;

/// The copies of a bundle that were listed, by kind and key.
using Copies = std::map<std::pair<std::string, Key>, Object>;

/// Reads as many as possible with one list for each kind. Nothing is concluded from what it does not find: that is read
/// by itself, as is a kind that we may only list in single namespaces.
Awaitable<Copies> list_copies(const Hub& hub, MigrationRef migration, const Bundle& bundle) {
  std::map<std::string, std::pair<Resource, std::size_t>> kinds;
  for (const auto& resources : bundle.clusters)
    for (const auto& carried : resources.objects)
      if (const auto kind = allowed_kind(hub.carried(), resources.cluster, carried.object))
        ++kinds.try_emplace(kind->display_name(), *kind, 0).first->second.second;
  Copies copies;
  if (!is_worth_listing(hub, migration, bundle.clusters.size())) co_return copies;
  for (const auto& [name, kind] : kinds) {
    if (kind.second < worth_listing_copies) continue;
    const bool may_list = co_await hub.rights().may("list", kind.first);
    if (!may_list) continue;
    auto listed = co_await list(hub, kind.first, {}, ours_selector(migration));
    if (!listed) continue;
    for (auto& object : *listed) copies.emplace(std::pair{name, object.key()}, std::move(object));
  }
  co_return copies;
}

Awaitable<Result<>> verify_one(const Hub& hub, MigrationRef migration, const Copies& copies,
                               const ClusterResources& resources, Slot slot) {
  for (const auto& carried : resources.objects) {
    auto kind = allowed_kind(hub.carried(), resources.cluster, carried.object);
    if (!kind) co_return kind.error();
    const Key key = Object{carried.object}.key();
    std::optional<Object> found;
    if (const auto listed = copies.find({kind->display_name(), key}); listed != copies.end()) {
      found = listed->second;
    } else {
      auto read = co_await get_if_exists(hub, *kind, key);
      if (!read) co_return read.error();
      found = std::move(*read);
    }
    auto verified = verify_object(hub, migration, *kind, carried, found ? &*found : nullptr);
    if (!verified) co_return verified.error();
  }
  slot.release();
  co_return Result<>{};
}

/// As verify_object(), whatever its content; creates it if it is missing. The ManagedCluster is the agent's: that one
/// is not created for it.
Awaitable<Result<>> complete_object(const Hub& hub, MigrationRef migration, std::string cluster,
                                    const CarriedObject& carried) {
  auto kind = allowed_kind(hub.carried(), cluster, carried.object);
  if (!kind) co_return kind.error();
  const Key key = Object{carried.object}.key();
  auto found = co_await get_if_exists(hub, *kind, key);
  if (!found) co_return found.error();
  if (!*found && *kind == ocm::managed_clusters) co_return no_such_cluster(hub, cluster);
  if (!*found) co_return co_await deploy_object(hub, std::move(migration), *kind, carried);
  if (!is_ours(migration, **found)) co_return owned_by_other(hub, *kind, **found);
  if ((*found)->is_being_deleted()) co_return being_deleted(hub, *kind, key);
  co_return Result<>{};
}

Awaitable<Result<>> complete_one(const Hub& hub, MigrationRef migration, const ClusterResources& resources, Slot slot) {
  for (const auto& carried : resources.objects) {
    auto completed = co_await complete_object(hub, migration, resources.cluster, carried);
    if (!completed) co_return completed.error();
  }
  slot.release();
  co_return Result<>{};
}

/// Processes each cluster of a bundle by `process(hub, migration, resources, slot)`.
template <typename Process>
Awaitable<Result<Outcome>> for_each_in(const Bundle& bundle, Hub& hub, MigrationRef migration, Process process) {
  ClusterNames names;
  std::map<std::string, const ClusterResources*> by_name;
  for (const auto& resources : bundle.clusters) {
    names.push_back(resources.cluster);
    by_name.emplace(resources.cluster, &resources);
  }
  auto process_one = [&](std::string cluster, Slot slot) {
    return process(hub, migration, *by_name.at(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(names), process_one);
}

}  // namespace

Awaitable<Result<Outcome>> DirectTargetHub::validate(MigrationRef migration, ClusterNames clusters) {
  auto& hub = *hub_;
  auto validate_all = [&](ClusterNames all) -> Awaitable<Result<Outcome>> {
    auto synced = co_await wait_for_cluster_cache(hub);
    if (!synced) co_return synced.error();
    auto kinds = co_await served_carried_kinds(hub);
    if (!kinds) co_return kinds.error();
    HubWatch<SeenNamespace>::Use use{hub.watches().namespaces, all.size()};
    co_await use.ready();
    auto process = [&](std::string cluster, Slot slot) {
      return validate_one(hub, *kinds, migration, std::move(cluster), std::move(slot));
    };
    co_return co_await for_each_cluster(hub, std::move(all), process);
  };
  co_return co_await with_permissions(hub, HubRole::target, std::move(clusters), validate_all);
}

Awaitable<Result<Outcome>> DirectTargetHub::check_klusterlet_configs(KlusterletConfigUses uses) {
  Outcome outcome;
  for (const auto& [name, clusters] : uses) {
    auto found = co_await get_if_exists(*hub_, ocm::klusterlet_configs, cluster_scoped(name));
    if (!found) co_return found.error();
    for (const auto& cluster : clusters) {
      if (*found)
        outcome.done.push_back(cluster);
      else
        outcome.failed.push_back({cluster, FailureReason::klusterlet_config_missing,
                                  "cluster " + cluster + " refers to KlusterletConfig " + name + ", which hub " +
                                      hub_->name() +
                                      " does not have: create it there, or remove the annotation from the cluster"});
    }
  }
  co_return outcome;
}

Awaitable<Result<Outcome>> DirectTargetHub::deploy(MigrationRef migration, Bundle bundle) {
  co_return co_await for_each_in(bundle, *hub_, std::move(migration), deploy_one);
}

Awaitable<Result<Outcome>> DirectTargetHub::verify(MigrationRef migration, Bundle bundle) {
  const auto copies = co_await list_copies(*hub_, migration, bundle);
  auto verify_listed = [&](const Hub& hub, MigrationRef ref, const ClusterResources& resources, Slot slot) {
    return verify_one(hub, std::move(ref), copies, resources, std::move(slot));
  };
  co_return co_await for_each_in(bundle, *hub_, std::move(migration), verify_listed);
}

Awaitable<Result<Outcome>> DirectTargetHub::complete(MigrationRef migration, Bundle bundle) {
  co_return co_await for_each_in(bundle, *hub_, std::move(migration), complete_one);
}

}  // namespace hubferry::hubagent
