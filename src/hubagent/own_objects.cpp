#include "hubagent/own_objects.hpp"

#include "hubagent/clusters.hpp"
#include "hubferry/kube/wait_for_object.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::namespaces;

Error not_ours(const Hub& hub, const Resource& resource, const Object& object) {
  return {FailureReason::cluster_conflict, described(resource, object.key()) + " on hub " + hub.name() +
                                               " belongs to " + owner_of(object.json()) +
                                               ": rename this migration, or delete that object if nobody needs it"};
}

std::string used_by(const MigrationRef& migration) {
  return annotations::used_by_prefix + migration.uid;
}

bool is_created_for_migrations(const json::object& object) {
  return annotation_in(object, annotations::created_for_migrations) != nullptr;
}

bool is_used(const Object& object) {
  const auto* all = object.find({"metadata", "annotations"});
  if (all == nullptr || !all->is_object()) return false;
  for (const auto& entry : all->get_object())
    if (entry.key().starts_with(annotations::used_by_prefix)) return true;
  return false;
}

/// Only the version in which nobody used it: a migration that acquires it meanwhile changes the version.
Awaitable<Result<>> delete_unused_namespace(const Hub& hub, Object object) {
  kube::Request request;
  request.verb = kube::Verb::remove;
  request.resource = namespaces;
  request.key = object.key();
  request.precondition_uid = object.uid();
  request.precondition_resource_version = object.resource_version();
  auto deleted = co_await hub.api().call(std::move(request));
  // Any other failure leaves an empty namespace, which the end of the next migration deletes.
  if (!deleted && concerns_hub(deleted.error())) co_return deleted.error();
  co_return Result<>{};
}

/// A namespace that is being deleted. After HubOptions::deletion_timeout an error that says what holds it.
Awaitable<Result<>> wait_until_gone(Hub& hub, MigrationRef migration, Key key) {
  auto permit = co_await hub.small_watches().acquire(migration.uid);
  auto is_gone = [](const Object* object) { return object == nullptr; };
  const auto deadline = hub.env().clock.now() + hub.options().deletion_timeout;
  const bool gone = co_await kube::wait_for_object(hub.api(), namespaces, key, is_gone, deadline, hub.env());
  permit.release();
  if (gone) co_return Result<>{};
  auto rest = co_await get_if_exists(hub, namespaces, key);
  if (!rest) co_return rest.error();
  if (!*rest) co_return Result<>{};
  co_return still_there(hub, namespaces, **rest);
}

/// What Kubernetes and OpenShift put into every namespace.
bool comes_with_namespace(const Resource& resource, const Object& object) {
  const auto is_one_of = [](std::string_view text, std::initializer_list<std::string_view> all) {
    return std::ranges::find(all, text) != all.end();
  };
  if (resource == kube::resources::service_accounts)
    return is_one_of(object.name(), {"default", "builder", "deployer"});
  if (resource == kube::resources::config_maps)
    return is_one_of(object.name(), {"kube-root-ca.crt", "openshift-service-ca.crt"});
  return is_one_of(object.string_at({"type"}), {"kubernetes.io/service-account-token", "kubernetes.io/dockercfg"});
}

/// What somebody else has put into a namespace that we created: "Secret multicluster-engine/x"; empty: nothing.
/// Whatever runs there has an account of its own.
Awaitable<Result<std::string>> find_foreign_object(const Hub& hub, std::string ns) {
  for (const auto& resource :
       {kube::resources::service_accounts, kube::resources::secrets, kube::resources::config_maps}) {
    auto objects = co_await list(hub, resource, ns);
    if (!objects) co_return objects.error();
    for (const auto& object : *objects)
      if (object.label(migration_label).empty() && !comes_with_namespace(resource, object))
        co_return described(resource, object.key());
  }
  co_return std::string{};
}

}  // namespace

Awaitable<Result<Object>> put_own_object(const Hub& hub, MigrationRef migration, Resource resource, Key key,
                                         json::object wanted) {
  auto fill = [&](json::object& object) {
    if (exists(object) && !is_ours(migration, object)) return false;
    bool changed = overlay(object, wanted);
    changed |= set_label(object, migration_label, migration.uid);
    return changed;
  };
  // Nearly always the object is new: one request.
  json::object metadata{{"name", key.name}};
  if (!key.ns.empty()) metadata["namespace"] = key.ns;
  json::object fresh{{"metadata", std::move(metadata)}};
  fill(fresh);
  auto created = co_await hub.api().create(resource, std::move(fresh));
  if (created) co_return std::move(*created);
  auto written = co_await create_or_patch(hub, resource, key, fill);
  if (!written) co_return written.error();
  if (!is_ours(migration, written->object)) co_return not_ours(hub, resource, written->object);
  co_return written->object;
}

Awaitable<Result<>> delete_own_object(const Hub& hub, MigrationRef migration, Resource resource, Key key) {
  auto found = co_await get_if_exists(hub, resource, key);
  if (!found) co_return found.error();
  if (!*found || !is_ours(migration, **found)) co_return Result<>{};
  auto deleted = co_await delete_object(hub, resource, **found);
  if (!deleted) co_return deleted.error();
  co_return Result<>{};
}

Awaitable<Result<>> acquire_namespace(Hub& hub, MigrationRef migration, std::string ns) {
  const Key key = cluster_scoped(ns);
  auto fill = [&](json::object& object) {
    if (!kube::string_at(object, {"metadata", "deletionTimestamp"}).empty()) return false;
    if (exists(object) && !is_created_for_migrations(object)) return false;
    bool changed = set_annotation(object, annotations::created_for_migrations, "true");
    changed |= set_annotation(object, used_by(migration), "");
    return changed;
  };
  while (true) {
    auto written = co_await create_or_patch(hub, namespaces, key, fill);
    if (!written) co_return written.error();
    if (!written->object.is_being_deleted()) co_return Result<>{};
    auto gone = co_await wait_until_gone(hub, migration, key);
    if (!gone) co_return gone.error();
  }
}

Awaitable<Result<>> release_namespace(Hub& hub, MigrationRef migration, std::string ns) {
  auto found = co_await get_if_exists(hub, namespaces, cluster_scoped(ns));
  if (!found) co_return found.error();
  if (!*found || (*found)->is_being_deleted() || !is_created_for_migrations((*found)->json())) co_return Result<>{};
  auto release = [&](json::object& object) { return drop_annotation(object, used_by(migration)); };
  auto released = co_await edit(hub, namespaces, **found, release);
  if (!released && released.error().is(ErrorKind::not_found)) co_return Result<>{};
  if (!released) co_return released.error();
  if (is_used(*released) || released->is_being_deleted()) co_return Result<>{};
  auto foreign = co_await find_foreign_object(hub, ns);
  if (!foreign && concerns_hub(foreign.error()) && !foreign.error().is(ErrorKind::forbidden)) co_return foreign.error();
  if (!foreign || !foreign->empty()) {
    hub.env().log.warn("namespace kept: it was created for migrations, but may have objects of others",
                       {{"namespace", ns}, {"found", foreign ? *foreign : foreign.error().describe()}});
    co_return Result<>{};
  }
  co_return co_await delete_unused_namespace(hub, *released);
}

}  // namespace hubferry::hubagent
