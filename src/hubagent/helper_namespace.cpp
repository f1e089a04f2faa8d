#include "hubagent/helpers.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::namespaces;

std::string use_mark(const MigrationRef& migration) {
  return marks::used_by_prefix + migration.uid;
}

bool was_made_for_helpers(const json::object& object) {
  return annotation_in(object, marks::created_for_helpers) != nullptr;
}

bool is_used(const Object& object) {
  const auto* annotations = object.find({"metadata", "annotations"});
  if (annotations == nullptr || !annotations->is_object()) return false;
  for (const auto& entry : annotations->get_object())
    if (entry.key().starts_with(marks::used_by_prefix)) return true;
  return false;
}

/// Only in the state in which nobody used it: whoever came meanwhile has changed its version.
Awaitable<Result<>> remove_unused(const Hub& hub, Object object) {
  kube::Request request;
  request.verb = kube::Verb::remove;
  request.resource = namespaces;
  request.key = object.key();
  request.precondition_uid = object.uid();
  request.precondition_resource_version = object.resource_version();
  auto removed = co_await hub.api().call(std::move(request));
  // Any failure leaves an empty namespace, which the next migration's end takes along.
  if (!removed && is_hub_error(removed.error())) co_return removed.error();
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<>> use_namespace(Hub& hub, MigrationRef migration, std::string ns) {
  const Key key{{}, ns};
  auto fill = [&](json::object& object) {
    const bool exists = !kube::string_at(object, {"metadata", "uid"}).empty();
    if (!kube::string_at(object, {"metadata", "deletionTimestamp"}).empty()) return false;
    if (exists && !was_made_for_helpers(object)) return false;
    bool changed = set_annotation(object, marks::created_for_helpers, "true");
    changed |= set_annotation(object, use_mark(migration), "");
    return changed;
  };
  while (true) {
    auto written = co_await create_or_patch(hub, namespaces, key, fill);
    if (!written) co_return written.error();
    if (!written->object.is_being_deleted()) co_return Result<>{};
    auto gone = co_await await_gone(hub, namespaces, key);
    if (!gone) co_return gone.error();
  }
}

Awaitable<Result<>> leave_namespace(Hub& hub, MigrationRef migration, std::string ns) {
  auto found = co_await read_if_there(hub, namespaces, cluster_scoped(ns));
  if (!found) co_return found.error();
  if (!*found || (*found)->is_being_deleted() || !was_made_for_helpers((*found)->json())) co_return Result<>{};
  auto leave = [&](json::object& object) { return drop_annotation(object, use_mark(migration)); };
  auto left = co_await edit(hub, namespaces, **found, leave);
  if (!left && left.error().kind == ErrorKind::not_found) co_return Result<>{};
  if (!left) co_return left.error();
  if (is_used(*left) || left->is_being_deleted()) co_return Result<>{};
  co_return co_await remove_unused(hub, *left);
}

}  // namespace hubferry::hubagent
