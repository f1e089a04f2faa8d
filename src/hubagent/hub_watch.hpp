#pragma once

#include <functional>
#include <memory>

#include "hubagent/hub_wide_rights.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"

namespace hubferry::hubagent {

/// One watch of a kind on the whole hub, for all clusters that wait for something of it: instead of a read, a list and
/// a watch for each. It runs while so many clusters need it that it costs the hub less than they would alone, and
/// somewhat longer; memory is given back then.
///
/// What it shows was so at some time, and may not be so any more. So it serves those that wait for something to happen,
/// and whose next write is conditional or is proven anew; what decides about a deletion is read from the API server. A
/// watch that has stalled shows nothing new: those that wait have a time limit, after which they read.
/// Executor: one loop. Lifetime: outlives run() and all uses.
template <typename T>
class HubWatch {
 public:
  using Cache = kube::Cache<T>;

  struct Settings {
    kube::Resource resource;
    kube::CacheOptions cache;
    const kube::Decoder& decoder;
    /// How many clusters the hub may have for each one that needs the watch.
    std::size_t most_for_one;
    /// Of all objects that `cache` selects, if they share one: permissions may be granted for that name alone.
    std::string name{};
  };

  /// Clusters that need the watch, until destroyed.
  class [[nodiscard]] Use {
   public:
    Use(HubWatch& watch, std::size_t clusters) : watch_(watch), clusters_(clusters) {
      watch_.wanted_ += clusters_;
      watch_.changed_.wake_all();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      watch_.wanted_ -= clusters_;
      watch_.changed_.wake_all();
    }

    /// Waits a moment for the first list, if the watch is worth it.
    async::Awaitable<> ready() {
      auto& clock = watch_.env_.clock;
      co_await async::before_deadline(clock, clock.now() + first_list, watch_.wait_synced());
    }

   private:
    HubWatch& watch_;
    std::size_t clusters_;
  };

  HubWatch(kube::Api& api, HubWideRights& rights, Settings settings, std::function<std::size_t()> clusters_on_hub,
           kube::Env env)
      : api_(api),
        rights_(rights),
        settings_(std::move(settings)),
        clusters_on_hub_(std::move(clusters_on_hub)),
        env_(std::move(env)) {}

  /// Watches while it is needed, until cancelled.
  async::Awaitable<> run() {
    while (true) {
      while (!is_worth_it()) co_await changed_.wait();
      const bool may_list = co_await rights_.may("list", settings_.resource, settings_.name);
      const bool may_watch = co_await rights_.may("watch", settings_.resource, settings_.name);
      if (may_list && may_watch)
        co_await watch_while_used();
      else
        co_await pause();
    }
  }

  /// Null: it does not run, or has not seen everything yet. The caller holds a Use.
  [[nodiscard]] std::shared_ptr<Cache> current() const {
    return cache_ != nullptr && cache_->synced() ? cache_ : nullptr;
  }

 private:
  /// Fewer clusters are read one by one.
  static constexpr std::size_t fewest = 10;
  static constexpr auto first_list = std::chrono::seconds{5};
  static constexpr auto linger = std::chrono::seconds{30};
  static constexpr auto pause_if_forbidden = std::chrono::minutes{1};

  [[nodiscard]] bool is_worth_it() const {
    return wanted_ >= fewest && wanted_ * settings_.most_for_one >= clusters_on_hub_();
  }

  /// Nobody waits for a watch that is forbidden.
  async::Awaitable<> pause() {
    forbidden_ = true;
    changed_.wake_all();
    co_await env_.clock.sleep_for(pause_if_forbidden);
    forbidden_ = false;
  }

  async::Awaitable<> wait_synced() {
    while (cache_ == nullptr && is_worth_it() && !forbidden_) co_await changed_.wait();
    // It may be replaced meanwhile.
    if (const auto cache = cache_) co_await cache->wait_synced();
  }

  async::Awaitable<> wait_until_wanted() {
    while (wanted_ == 0) co_await changed_.wait();
  }

  async::Awaitable<> wait_until_unused() {
    while (true) {
      while (wanted_ > 0) co_await changed_.wait();
      co_await async::before_deadline(env_.clock, env_.clock.now() + linger, wait_until_wanted());
      // The time was over, but somebody may have come in the turns since.
      if (wanted_ == 0) co_return;
    }
  }

  /// With a new cache each time: what an old one knows is outdated.
  async::Awaitable<> watch_while_used() {
    struct Running {
      HubWatch& watch;
      explicit Running(HubWatch& of) : watch(of) {
        watch.cache_ = std::make_shared<Cache>(watch.api_, watch.settings_.resource, watch.settings_.cache,
                                               watch.settings_.decoder, watch.env_);
        watch.changed_.wake_all();
      }
      Running(const Running&) = delete;
      Running& operator=(const Running&) = delete;
      ~Running() { watch.cache_.reset(); }
    } const running{*this};
    const auto cache = cache_;
    auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
      scope.spawn(cache->run());
      co_await wait_until_unused();
      // A caller that begins to use it while it ends must not hold one that sees nothing any more.
      cache_.reset();
      scope.stop();
    };
    co_await async::with_scope(std::move(body));
  }

  kube::Api& api_;
  HubWideRights& rights_;
  Settings settings_;
  std::function<std::size_t()> clusters_on_hub_;
  kube::Env env_;
  std::size_t wanted_ = 0;  // clusters, over all uses
  bool forbidden_ = false;  // as reviewed less than a minute ago
  std::shared_ptr<Cache> cache_;
  async::WaitList changed_;  // wanted_, cache_ or forbidden_
};

}  // namespace hubferry::hubagent
