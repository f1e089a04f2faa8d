#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hubferry/kube/cache_core.hpp"

namespace hubferry::kube {

/// An informer with its store: a copy of a collection that follows the server by list and watch. The typed interface of
/// CacheCore, which has the contract; T is the type of the decoder's objects.
///
///     Cache<ManagedCluster> clusters{api, managed_clusters, {}, managed_cluster_decoder(), env};
///     scope.spawn(clusters.run());
///     co_await clusters.wait_synced();
///     auto cluster = co_await clusters.wait_for(key, is_available, deadline);
template <typename T>
class Cache {
 public:
  using Pointer = std::shared_ptr<const T>;
  /// Old is null for a new object, now for a deleted one.
  using Handler = std::function<void(const Key& key, const Pointer& old, const Pointer& now)>;
  /// Gets null when there is no such object.
  using Predicate = std::function<bool(const T*)>;

  Cache(Api& api, Resource resource, CacheOptions options, const Decoder& decoder, Env env)
      : core_(api, std::move(resource), std::move(options), decoder, std::move(env)) {}

  /// Follows the server until cancelled.
  Awaitable<> run() { return core_.run(); }

  [[nodiscard]] Pointer get(const Key& key) const { return cast(core_.get(key)); }
  [[nodiscard]] std::size_t size() const { return core_.size(); }
  [[nodiscard]] bool synced() const { return core_.synced(); }
  Awaitable<> wait_synced() { return core_.wait_synced(); }
  [[nodiscard]] CacheStatus status() const { return core_.status(); }

  /// Calls `visit(const Key&, const Pointer&)` for each object, in no order.
  template <typename Visit>
  void for_each(Visit visit) const {
    core_.for_each([&](const Key& key, const CacheCore::Pointer& object) { visit(key, cast(object)); });
  }

  [[nodiscard]] CacheSubscription subscribe(Handler handler, Replay replay = Replay::nothing) {
    return core_.subscribe(
        [handler = std::move(handler)](const Key& key, const CacheCore::Pointer& old, const CacheCore::Pointer& now) {
          handler(key, cast(old), cast(now));
        },
        replay);
  }

  void add_index(std::string name, std::function<std::vector<std::string>(const T&)> values) {
    core_.add_index(std::move(name), [values = std::move(values)](const void* object) {
      return values(*static_cast<const T*>(object));
    });
  }

  [[nodiscard]] std::vector<Pointer> lookup(std::string_view index, const std::string& value) const {
    std::vector<Pointer> found;
    for (auto& object : core_.lookup(index, value)) found.push_back(cast(object));
    return found;
  }

  /// Waits until the predicate holds and returns the object for which it does.
  Awaitable<Pointer> wait_for(Key key, Predicate predicate, TimePoint deadline) {
    CacheCore::Predicate untyped = [predicate = std::move(predicate)](const void* object) {
      return predicate(static_cast<const T*>(object));
    };
    auto found = co_await core_.wait_for(std::move(key), std::move(untyped), deadline);
    co_return cast(found);
  }

  [[nodiscard]] bool has_seen(const Key& key, std::string_view resource_version) const {
    return core_.has_seen(key, resource_version);
  }
  Awaitable<> wait_until_seen(Key key, std::string resource_version, TimePoint deadline) {
    return core_.wait_until_seen(std::move(key), std::move(resource_version), deadline);
  }

 private:
  static Pointer cast(const CacheCore::Pointer& object) { return std::static_pointer_cast<const T>(object); }

  CacheCore core_;
};

}  // namespace hubferry::kube
