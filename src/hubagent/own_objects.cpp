#include "hubagent/own_objects.hpp"

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

Awaitable<Result<>> wait_until_gone(Hub& hub, Resource resource, Key key) {
  auto found = co_await get_if_exists(hub, resource, key);
  if (!found) co_return found.error();
  if (!*found) co_return Result<>{};
  auto permit = co_await hub.small_watches().acquire();
  auto is_gone = [](const Object* object) { return object == nullptr; };
  co_await kube::wait_for_object(hub.api(), resource, key, is_gone, async::never, hub.env());
  co_return Result<>{};
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
    auto gone = co_await wait_until_gone(hub, namespaces, key);
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
  co_return co_await delete_unused_namespace(hub, *released);
}

}  // namespace hubferry::hubagent
