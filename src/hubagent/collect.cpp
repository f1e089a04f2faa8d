#include <algorithm>
#include <set>

#include "hubagent/bundle_packer.hpp"
#include "hubagent/clean_object.hpp"
#include "hubagent/references.hpp"
#include "hubagent/selection.hpp"
#include "hubagent/source_operations.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// Collected, but not handed over yet: what bounds memory while the target is slow.
constexpr std::size_t clusters_in_hand = 32;

/// The objects of one kind that travel with the cluster; one request.
Awaitable<Result<std::vector<Object>>> find_selected(const Hub& hub, const CarriedKind& kind, std::string cluster) {
  std::vector<Object> selected;
  if (selects_one_name(kind)) {
    const Key key{kind.resource.namespaced ? cluster : "", with_cluster(kind.names.front(), cluster)};
    auto found = co_await read_if_there(hub, kind.resource, key);
    if (!found) co_return found.error();
    if (*found) selected.push_back(**found);
  } else {
    auto found = co_await list(hub, kind.resource, cluster);
    if (!found) co_return found.error();
    for (const auto& object : *found)
      if (is_selected(kind, cluster, object)) selected.push_back(object);
  }
  // What is on its way out does not travel.
  std::erase_if(selected, [](const Object& object) { return object.is_being_deleted(); });
  co_return selected;
}

/// What travels of one cluster, in the making.
struct Collection {
  std::vector<CarriedObject> referenced;
  std::vector<CarriedObject> objects;
  std::set<std::pair<std::string, Key>> taken;  // kind and key

  bool take(const Resource& resource, const Key& key) { return taken.emplace(resource.display_name(), key).second; }
};

Awaitable<Result<>> collect_referenced(const Hub& hub, const CarriedKind& kind, Object object, Collection& into) {
  for (const auto& reference : kind.references) {
    for (const auto& name : names_at(object.json(), reference.path)) {
      const Key key{std::string{object.ns()}, name};
      if (!into.take(reference.resource, key)) continue;
      auto found = co_await read_if_there(hub, reference.resource, key);
      if (!found) co_return found.error();
      if (*found && !(*found)->is_being_deleted())
        into.referenced.push_back(clean_object(**found, reference.resource, false));
    }
  }
  co_return Result<>{};
}

Awaitable<Result<ClusterResources>> collect_cluster(const Hub& hub, const CarriedResources& kinds,
                                                    std::string cluster) {
  Collection collection;
  std::vector<std::pair<const CarriedKind*, Object>> found;
  for (const auto& kind : kinds) {
    auto selected = co_await find_selected(hub, kind, cluster);
    if (!selected) co_return selected.error();
    if (kind.resource == ocm::managed_clusters && selected->empty()) co_return no_such_cluster(hub, cluster);
    for (auto& object : *selected) found.emplace_back(&kind, std::move(object));
  }
  // References first: an object that is both referred to and selected stands at the front, once.
  for (const auto& [kind, object] : found) {
    auto added = co_await collect_referenced(hub, *kind, object, collection);
    if (!added) co_return added.error();
  }
  for (const auto& [kind, object] : found)
    if (collection.take(kind->resource, object.key()))
      collection.objects.push_back(clean_object(object, kind->resource, kind->with_status));

  ClusterResources resources{cluster, std::move(collection.referenced)};
  std::ranges::move(collection.objects, std::back_inserter(resources.objects));
  co_return resources;
}

Awaitable<Result<>> collect_one(Hub& hub, const CarriedResources& kinds, std::string cluster, Slot slot,
                                async::Semaphore& in_hand, BundlePacker& packer) {
  // The target's pace must not hold other orders on this hub up: who waits for the target holds no slot.
  slot.release();
  auto hand = co_await in_hand.acquire();
  slot = co_await hub.slot();
  auto resources = co_await collect_cluster(hub, kinds, std::move(cluster));
  if (!resources) co_return resources.error();
  slot.release();
  co_await packer.add(std::move(*resources));
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> collect(Hub& hub, ClusterNames clusters, BundleSink sink) {
  auto kinds = co_await served_kinds(hub);
  if (!kinds) co_return kinds.error();
  Result<Outcome> outcome{Outcome{}};
  async::Semaphore in_hand{clusters_in_hand};
  std::optional<BundlePacker> packer;
  auto treat = [&](std::string cluster, Slot slot) {
    return collect_one(hub, *kinds, std::move(cluster), std::move(slot), in_hand, *packer);
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    packer.emplace(scope, std::move(sink));
    outcome = co_await for_each_cluster(hub, std::move(clusters), treat);
    if (outcome) co_await packer->flush();
  };
  co_await async::with_scope(std::move(body));
  co_return outcome;
}

}  // namespace hubferry::hubagent
