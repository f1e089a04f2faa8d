#include "hubagent/marks.hpp"
#include "hubagent/pause.hpp"
#include "hubagent/restore_marks.hpp"
#include "hubagent/source_operations.hpp"
#include "hubagent/target_operations.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// Our label stays: no other migration's rollback looks for this uid, and it tells where the object came from.
Awaitable<Result<>> clean_target_cluster(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                         std::string cluster, Slot slot) {
  auto resumed = co_await end_own_pauses(hub, std::move(kinds), migration, cluster);
  if (!resumed) co_return resumed.error();
  auto unmarked = co_await end_restore_marks(hub, cluster);
  if (!unmarked) co_return unmarked.error();
  auto allow_import = [&](json::object& object) {
    return annotation_text(object, ocm::names::disable_auto_import_annotation) == migration.uid &&
           drop_annotation(object, ocm::names::disable_auto_import_annotation);
  };
  auto cleaned = co_await edit(hub, ocm::managed_clusters, cluster_scoped(cluster), allow_import);
  slot.release();
  if (cleaned) co_return Result<>{};
  if (cleaned.error().kind == ErrorKind::not_found) co_return no_such_cluster(hub, cluster);
  co_return cleaned.error();
}

}  // namespace

Awaitable<Result<Outcome>> clean_on_target(Hub& hub, MigrationRef migration, ClusterNames clusters) {
  auto kinds = co_await served_pausing_kinds(hub);
  if (!kinds) co_return kinds.error();
  auto treat = [&](std::string cluster, Slot slot) {
    return clean_target_cluster(hub, *kinds, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), treat);
}

}  // namespace hubferry::hubagent
