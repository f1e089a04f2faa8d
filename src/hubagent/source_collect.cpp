#include <algorithm>
#include <map>
#include <set>

#include "hubagent/direct_hubs.hpp"
#include "hubagent/known_clusters.hpp"
#include "hubagent/listed_configs.hpp"
#include "hubagent/object_copy.hpp"
#include "hubagent/selection.hpp"
#include "hubagent/works.hpp"
#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// Collected, but not sent yet: limits memory while the target is slow.
constexpr std::size_t clusters_buffered = 32;
/// One is written on the target while the next waits and a third is being filled.
constexpr std::size_t bundles_in_flight = 3;

/// About as many bytes as its JSON has.
std::size_t size_of(const json::value& value) {
  constexpr std::size_t punctuation = 4;
  if (const auto* text = value.if_string()) return text->size() + punctuation;
  std::size_t size = punctuation;
  if (const auto* fields = value.if_object())
    for (const auto& field : *fields) size += field.key().size() + punctuation + size_of(field.value());
  if (const auto* elements = value.if_array())
    for (const auto& element : *elements) size += size_of(element);
  return size;
}

/// The cluster's share of a bundle, in bytes of JSON.
std::size_t size_of(const ClusterResources& cluster) {
  std::size_t size = cluster.cluster.size();
  for (const auto& carried : cluster.objects)
    for (const auto& field : carried.object) size += size_of(field.value());
  return size;
}

/// Packs clusters into bundles and sends each as soon as it is full, a few at a time.
/// Lifetime: outlives `scope`'s tasks. Executor: one loop.
class BundlePacker {
 public:
  BundlePacker(async::TaskScope& scope, BundleSink sink)
      : scope_(scope), sink_(std::move(sink)), in_flight_(bundles_in_flight) {}

  /// Waits while too many bundles are in flight.
  Awaitable<> add(ClusterResources cluster) {
    const auto size = size_of(cluster);
    // Other tasks add meanwhile: check again after each wait.
    while (!filling_.clusters.empty() && size_ + size > bundle_limit) co_await flush();
    filling_.clusters.push_back(std::move(cluster));
    size_ += size;
  }

  /// Sends what is left; the scope's join() waits until it is sent.
  Awaitable<> flush() {
    auto permit = co_await in_flight_.acquire();
    if (filling_.clusters.empty()) co_return;
    size_ = 0;
    scope_.spawn(send(std::exchange(filling_, {}), std::move(permit)));
  }

 private:
  Awaitable<> send(Bundle bundle, async::Semaphore::Permit permit) {
    co_await sink_(std::move(bundle));
    permit.release();
  }

  async::TaskScope& scope_;
  BundleSink sink_;
  async::Semaphore in_flight_;
  Bundle filling_;
  std::size_t size_ = 0;
};

/// Objects by kind and key.
using Listed = std::map<std::pair<std::string, Key>, Object>;

/// The labels by which the hub can pick those objects of a kind that are copied, and few others: then one list of the
/// whole hub serves many clusters. Absent: their content or their name decides, or they hold secrets.
std::optional<std::string> deciding_labels(const Hub& hub, const CarriedKind& kind) {
  if (!kind.resource.namespaced || kind.resource == kube::resources::secrets) return std::nullopt;
  if (kind.resource == ocm::manifest_works)
    return kind.all && !hub.options().report_staying ? std::optional{users_works_selector()} : std::nullopt;
  const bool by_label = !kind.all && kind.names.empty() && kind.with_annotations.empty();
  return by_label && kind.with_labels.size() == 1 ? std::optional{kind.with_labels.front()} : std::nullopt;
}

/// The object of a kind of which each cluster has one. `first_copy`: what was read just before for many will do, since
/// it is compared before anything is deleted.
Awaitable<Result<std::optional<Object>>> find_one(const Hub& hub, const CarriedKind& kind, std::string cluster,
                                                  bool first_copy) {
  const Key key{kind.resource.namespaced ? cluster : "", expand_cluster(kind.names.front(), cluster)};
  const bool is_cluster = kind.resource == ocm::managed_clusters;
  if (is_cluster)
    if (auto known = hub.known_clusters().take(cluster)) co_return known;
  if (first_copy && kind.resource == ocm::klusterlet_addon_configs && key.name == cluster)
    if (auto listed = co_await hub.listed_configs().of(cluster)) co_return std::move(listed->config);
  auto found = co_await get_if_exists(hub, kind.resource, key);
  if (is_cluster && found && *found) hub.known_clusters().remember_denied(**found);
  co_return found;
}

/// The objects of one kind that are copied with the cluster; at most one request. Works of others are added to
/// `staying`. `listed`: what was read of the namespace beside them, for references.
Awaitable<Result<std::vector<Object>>> find_selected(const Hub& hub, const CarriedKind& kind, std::string cluster,
                                                     bool first_copy, std::vector<StayingObject>& staying,
                                                     Listed& listed) {
  std::vector<Object> selected;
  if (selects_one_name(kind)) {
    auto found = co_await find_one(hub, kind, cluster, first_copy);
    if (!found) co_return found.error();
    if (*found) selected.push_back(std::move(**found));
  } else {
    const auto labels = deciding_labels(hub, kind);
    auto listing = labels ? list_few(hub, kind.resource, cluster, *labels) : list(hub, kind.resource, cluster);
    auto found = co_await std::move(listing);
    if (!found) co_return found.error();
    for (const auto& object : *found) {
      listed.insert_or_assign({kind.resource.display_name(), object.key()}, object);
      if (is_selected(kind, cluster, object))
        selected.push_back(object);
      else if (kind.resource == ocm::manifest_works && !is_klusterlet_work(cluster, object))
        staying.push_back({kind.resource.kind, std::string{object.name()}, *why_work_stays(cluster, object)});
    }
  }
  // An object that is being deleted is not copied.
  std::erase_if(selected, [](const Object& object) { return object.is_being_deleted(); });
  co_return selected;
}

/// What is copied of one cluster, while it is collected.
struct Collection {
  std::vector<CarriedObject> referenced;
  std::vector<CarriedObject> objects;
  std::vector<StayingObject> staying;
  std::set<std::pair<std::string, Key>> taken;  // kind and key
  Listed listed;

  bool take(const Resource& resource, const Key& key) { return taken.emplace(resource.display_name(), key).second; }
};

Awaitable<Result<>> collect_referenced(const Hub& hub, const CarriedKind& kind, Object object, Collection& into) {
  for (const auto& reference : kind.references) {
    for (const auto& name : names_at(object.json(), reference.path)) {
      const Key key{std::string{object.ns()}, name};
      if (!into.take(reference.resource, key)) continue;
      if (const auto known = into.listed.find({reference.resource.display_name(), key}); known != into.listed.end()) {
        if (!known->second.is_being_deleted())
          into.referenced.push_back(clean_object(known->second, reference.resource, false));
        continue;
      }
      auto found = co_await get_if_exists(hub, reference.resource, key);
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
  std::vector<Result<std::vector<Object>>> answers(kinds.size(), std::vector<Object>{});
  const bool first_copy = hub.known_clusters().is_to_be_copied(cluster);
  auto find_kind = [&](std::size_t index) -> Awaitable<> {
    auto selected =
        co_await find_selected(hub, kinds[index], cluster, first_copy, collection.staying, collection.listed);
    answers[index] = std::move(selected);
  };
  auto find_all = [&](async::TaskScope& scope) -> Awaitable<> {
    for (std::size_t index = 0; index < kinds.size(); ++index) scope.spawn(find_kind(index));
    co_return;
  };
  co_await async::with_scope(find_all);

  std::vector<std::pair<const CarriedKind*, Object>> found;
  for (std::size_t index = 0; index < kinds.size(); ++index) {
    const auto& kind = kinds[index];
    auto& selected = answers[index];
    if (!selected) {
      // The permissions in a cluster's namespace go with it.
      auto there = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
      if (there && !*there) co_return no_such_cluster(hub, cluster);
      co_return selected.error();
    }
    if (kind.resource == ocm::managed_clusters && selected->empty()) co_return no_such_cluster(hub, cluster);
    for (auto& object : *selected) found.emplace_back(&kind, std::move(object));
  }
  // Referenced objects first: one that is both referenced and selected comes first, once.
  for (const auto& [kind, object] : found) {
    auto added = co_await collect_referenced(hub, *kind, object, collection);
    if (!added) co_return added.error();
  }
  for (const auto& [kind, object] : found)
    if (collection.take(kind->resource, object.key()))
      collection.objects.push_back(clean_object(object, kind->resource, kind->with_status));

  ClusterResources resources{cluster, std::move(collection.referenced), std::move(collection.staying)};
  std::ranges::move(collection.objects, std::back_inserter(resources.objects));
  co_return resources;
}

Awaitable<Result<>> collect_one(Hub& hub, const CarriedResources& kinds, std::string cluster, Slot slot,
                                async::Semaphore& buffer, BundlePacker& packer) {
  // A slow target must not block other operations on this hub: a task that waits for it holds no slot.
  slot.release();
  auto buffered = co_await buffer.acquire();
  slot = co_await hub.slot();
  auto resources = co_await collect_cluster(hub, kinds, std::move(cluster));
  if (!resources) co_return resources.error();
  slot.release();
  co_await packer.add(std::move(*resources));
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> DirectSourceHub::collect(MigrationRef, ClusterNames clusters, BundleSink sink) {
  auto& hub = *hub_;
  auto kinds = co_await served_carried_kinds(hub);
  if (!kinds) co_return kinds.error();
  Result<Outcome> outcome{Outcome{}};
  const auto is_first_copy = [&](const std::string& cluster) { return hub.known_clusters().is_to_be_copied(cluster); };
  const ListedConfigs::Use configs{hub.listed_configs(),
                                   static_cast<std::size_t>(std::ranges::count_if(clusters, is_first_copy))};
  async::Semaphore buffer{clusters_buffered};
  std::optional<BundlePacker> packer;
  auto process = [&](std::string cluster, Slot slot) {
    return collect_one(hub, *kinds, std::move(cluster), std::move(slot), buffer, *packer);
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    packer.emplace(scope, std::move(sink));
    outcome = co_await for_each_cluster(hub, std::move(clusters), process);
    if (outcome) co_await packer->flush();
  };
  co_await async::with_scope(std::move(body));
  co_return outcome;
}

}  // namespace hubferry::hubagent
