#include <map>

#include "hubagent/allow_list.hpp"
#include "hubagent/difference.hpp"
#include "hubagent/marks.hpp"
#include "hubagent/target_operations.hpp"
#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::hubagent {

namespace {

/// What was sent, without what controllers of this hub own from then on.
json::object comparable(json::object sent, const Resource& resource) {
  sent.erase("status");
  if (resource != ocm::managed_clusters) return sent;
  kube::object_in(sent, "spec").erase("taints");
  auto* labels = kube::object_in(sent, "metadata").if_contains("labels");
  if (labels == nullptr || !labels->is_object()) return sent;
  json::object left;
  for (const auto& label : labels->get_object())
    if (!label.key().starts_with("feature.open-cluster-management.io/")) left[label.key()] = label.value();
  kube::object_in(sent, "metadata")["labels"] = std::move(left);
  return sent;
}

Awaitable<Result<>> verify_object(const Hub& hub, const CarriedResources& table, MigrationRef migration,
                                  std::string cluster, const CarriedObject& carried) {
  auto kind = admitted_kind(table, cluster, carried.object);
  if (!kind) co_return kind.error();
  const Key key = Object{carried.object}.key();
  const std::string what = described(*kind, key) + " on hub " + hub.name();
  auto found = co_await read_if_there(hub, *kind, key);
  if (!found) co_return found.error();
  if (!*found) co_return failure(reasons::differs, what + " is missing");
  if (!is_ours(migration, **found)) co_return failure(reasons::differs, what + " is not the one that was sent");
  if ((*found)->is_being_deleted()) co_return failure(reasons::differs, what + " is being deleted");
  const auto path = first_difference((*found)->json(), comparable(carried.object, *kind));
  if (path) co_return failure(reasons::differs, what + " differs from what the source has, at " + *path);
  co_return Result<>{};
}

Awaitable<Result<>> verify_one(const Hub& hub, MigrationRef migration, const ClusterResources& resources, Slot slot) {
  for (const auto& carried : resources.objects) {
    auto verified = co_await verify_object(hub, hub.carried(), migration, resources.cluster, carried);
    if (!verified) co_return verified.error();
  }
  slot.release();
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> verify(Hub& hub, MigrationRef migration, Bundle bundle) {
  std::map<std::string, const ClusterResources*> by_name;
  for (const auto& cluster : bundle.clusters) by_name.emplace(cluster.cluster, &cluster);
  auto treat = [&](std::string cluster, Slot slot) {
    return verify_one(hub, migration, *by_name.at(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, names_of(bundle), treat);
}

}  // namespace hubferry::hubagent
