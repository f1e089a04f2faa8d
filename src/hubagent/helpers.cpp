#include "hubagent/helpers.hpp"

namespace hubferry::hubagent {

namespace {

Error not_ours(const Hub& hub, const Resource& resource, const Object& object) {
  return {ErrorKind::already_exists, 0, reasons::conflict,
          described(resource, object.key()) + " on hub " + hub.name() + " belongs to " + owner_of(object.json()) +
              ": rename this migration, or remove that object if nobody needs it",
          std::nullopt};
}

}  // namespace

Awaitable<Result<Object>> put_helper(const Hub& hub, MigrationRef migration, Resource resource, Key key,
                                     json::object wanted) {
  auto fill = [&](json::object& object) {
    const bool exists = !kube::string_at(object, {"metadata", "uid"}).empty();
    if (exists && !is_ours(migration, object)) return false;
    bool changed = overlay(object, wanted);
    changed |= set_label(object, migration_label, migration.uid);
    return changed;
  };
  auto written = co_await create_or_patch(hub, resource, key, fill);
  if (!written) co_return written.error();
  if (!is_ours(migration, written->object)) co_return not_ours(hub, resource, written->object);
  co_return written->object;
}

Awaitable<Result<>> remove_helper(const Hub& hub, MigrationRef migration, Resource resource, Key key) {
  auto found = co_await read_if_there(hub, resource, key);
  if (!found) co_return found.error();
  if (!*found || !is_ours(migration, **found)) co_return Result<>{};
  auto removed = co_await remove(hub, resource, **found);
  if (!removed) co_return removed.error();
  co_return Result<>{};
}

}  // namespace hubferry::hubagent
