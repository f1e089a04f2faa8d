#pragma once

#include <functional>
#include <unordered_map>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/kube/fence.hpp"
#include "hubferry/phase/default_definition.hpp"

namespace hubferry::phase {

/// A custom resource as its handlers see it: as it was read, and its status, which they may change.
struct KubeResource {
  KubeResource() = default;
  explicit KubeResource(kube::Object object);

  kube::Object object;  // as read, or as the last write was answered
  json::object status;

  [[nodiscard]] Phase phase() const;
  void set_phase(const Phase& phase) { status["phase"] = phase; }
  [[nodiscard]] State state(const Phase& phase) const;
  /// An empty State removes the entry.
  void set_state(const Phase& phase, const State& state);
  /// Sets a condition of the status: lastTransitionTime moves only when the condition's status changes,
  /// observedGeneration is that of the object as read. Long messages are cut.
  void set_condition(std::string_view type, kube::ConditionStatus status, std::string_view reason,
                     std::string_view message, async::WallTime now);
  /// True if the status has changed since it was read.
  [[nodiscard]] bool is_modified() const;
  /// The term of the leader that last wrote the status, as read; absent: none, or none with a Fence.
  [[nodiscard]] std::optional<kube::LeaderEpoch> leader() const;
};

/// Changes metadata or spec of a resource, such as its finalizers, from inside a handler: reads, mutates, and writes
/// with the version that is known as a precondition. On a conflict it is repeated on the latest version if the status
/// is as the handler knows it; if somebody else has written the status, the handler's decision may be void: the error
/// is a transient one, so that the machine reads the resource and runs the handler again. Changes of the handler to the
/// status are kept. Errors: not_found also for another object of that name.
Awaitable<kube::Result<kube::Object>> edit_metadata(kube::Api& api, kube::Resource kind, KubeResource& resource,
                                                    kube::Mutation mutate);

/// The merge patch (RFC 7396) that turns `from` into `to`.
json::object merge_diff(const json::object& from, const json::object& to);
/// Applies a merge patch.
void merge_apply(json::object& target, const json::object& patch);
/// Re-applies to `fresh` what `mine` changed in the status `base`, except for phase and State, which are decided anew.
/// Of the conditions only those that `mine` changed: others may be those of another controller.
void carry_status(json::object& fresh, const json::object& base, const json::object& mine);

struct KubeStoreOptions {
  /// Reads from a cache; nullopt if it has no such object. Without this every read is a request.
  std::function<std::optional<kube::Object>(const Key&)> cached;
  /// A resource with a deletionTimestamp counts as gone.
  bool skip_deleted = true;
  /// Called with the resourceVersion of each successful write, and of each read from the server.
  std::function<void(const Key&, std::string_view version)> on_written = {};
  std::function<void(const Key&, std::string_view version)> on_read = {};
  /// Every status write records its term as status.state.leader, and replaces only lower ones. Null: there is one
  /// process only.
  kube::Fence* fence = nullptr;
};

/// Reads and writes one kind of custom resource for a phase machine.
///
/// The status is written as a merge patch of the changes, with the resourceVersion that was read as a precondition. A
/// cached object older than the server's last response, to our own write or to a fresh read, is ignored until the cache
/// has caught up: a machine never goes back to an older state.
/// With a Fence, status.state.leader has the term of the leader that wrote last: {"epoch": 3, "identity": "pod_uuid"}.
/// A new leader writes it before it does anything else, so that its predecessor, which may not know yet that it was
/// deposed, cannot write any more. Lifetime: the Api outlives it. Executor: one loop.
class KubeStore {
 public:
  KubeStore(kube::Api& api, kube::Resource resource, KubeStoreOptions options = {});

  Awaitable<Result<std::optional<KubeResource>>> fetch(Key key);
  /// Reads from the server. Later cached reads are at least as new.
  Awaitable<Result<std::optional<KubeResource>>> fetch_fresh(Key key);
  Awaitable<Written> persist(KubeResource& resource);
  /// Writes `changes` (a merge patch, without the status) on the condition that the resource is as it was read. As
  /// persist() it counts as our own write: its echo does not reconcile, and no later read is older. The changes to the
  /// status that are not written yet are kept.
  Awaitable<Written> patch(KubeResource& resource, json::object changes);
  /// Records our term, unless it is there already or nobody has worked on the resource yet.
  Awaitable<Written> claim(KubeResource& resource);
  /// False if the status was last written in another term than ours.
  [[nodiscard]] bool is_claimed(const KubeResource& resource) const;

  /// Forgets the last known version of an object that is gone: call it from the cache's delete events.
  void forget(const Key& key) { newest_.erase(key); }
  /// The number of objects of which we know a newer version than the cache.
  [[nodiscard]] std::size_t ahead_of_cache() const { return newest_.size(); }

 private:
  [[nodiscard]] std::optional<KubeResource> accept(kube::Object object) const;
  /// Sends a patch on the condition that the resource is as it was read.
  Awaitable<Written> send(KubeResource& resource, json::object patch, std::string subresource);
  /// Keeps the server's version unless one at least as new is known.
  void remember(const Key& key, const kube::Object& object);

  Awaitable<bool> outranks(std::optional<kube::LeaderEpoch> recorded);

  kube::Api& api_;
  kube::Resource resource_;
  KubeStoreOptions options_;
  std::unordered_map<Key, kube::Object> newest_;  // from the server, and newer than the cache
};

/// Makes a definition read and write its resources by `store`, which must outlive it. `Resource` is KubeResource, or
/// derived from it and made from one.
template <typename Services, std::derived_from<KubeResource> Resource>
void keep_in(DefaultDefinition<Services, Resource>& definition, KubeStore& store) {
  const auto typed = [](Result<std::optional<KubeResource>> read) -> Result<std::optional<Resource>> {
    if (!read) return std::move(read).error();
    if (!*read) return std::optional<Resource>{};
    return std::optional<Resource>{Resource(std::move(**read))};
  };
  definition.fetch_resource = [&store, typed](Services&, Key key) -> Awaitable<Result<std::optional<Resource>>> {
    co_return typed(co_await store.fetch(std::move(key)));
  };
  definition.fetch_fresh = [&store, typed](Services&, Key key) -> Awaitable<Result<std::optional<Resource>>> {
    co_return typed(co_await store.fetch_fresh(std::move(key)));
  };
  definition.persist_status = [&store](Services&, Resource& resource) { return store.persist(resource); };
  definition.claim_resource = [&store](Services&, Resource& resource) { return store.claim(resource); };
  definition.holds_claim = [&store](const Resource& resource) { return store.is_claimed(resource); };
  definition.status_modified = [](const Resource& resource) { return resource.is_modified(); };
  definition.same_object = [](const Resource& one, const Resource& other) {
    return one.object.uid() == other.object.uid();
  };
  definition.carry_changes = [](Resource& fresh, const Resource& mine) {
    const auto* before = mine.object.find({"status"});
    static const json::object nothing;
    const auto& base = before != nullptr && before->is_object() ? before->get_object() : nothing;
    carry_status(fresh.status, base, mine.status);
    // What a resource type keeps in memory beside the object.
    if constexpr (requires { fresh.carry_from(mine); }) fresh.carry_from(mine);
  };
}

}  // namespace hubferry::phase
