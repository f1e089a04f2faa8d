#pragma once

#include "hubferry/kube/cache_core.hpp"
#include "hubferry/kube/resource_version.hpp"

namespace hubferry::kube {

struct CacheSubscription::Slot {
  CacheCore::Handler handler;
  std::uint64_t since = 0;  // the changes up to this one were visible when it began
  bool active = true;
  bool running = false;
};

struct CacheCore::Instruments {
  Instruments(obs::Metrics& metrics, std::string_view server, std::string_view resource);

  Instruments(const Instruments&) = delete;
  Instruments& operator=(const Instruments&) = delete;
  ~Instruments() { count(0); }

  void restarted(std::string_view reason) { restarts.with({server, resource, reason}).increment(); }
  /// Several caches may follow one resource of a server: the gauge is their sum.
  void count(std::size_t held) {
    objects.add(static_cast<double>(held) - static_cast<double>(counted));
    counted = held;
  }

  std::string server;
  std::string resource;
  obs::Counter& events;
  obs::Family<obs::Counter>& restarts;
  obs::Gauge& objects;
  obs::Gauge& last_event;
  std::size_t counted = 0;
};

namespace detail {

/// While a handler runs: so that it can end its own subscription.
class Running {
 public:
  explicit Running(CacheSubscription::Slot& slot) : slot_(slot) { slot_.running = true; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    slot_.running = false;
    if (!slot_.active) slot_.handler = nullptr;
  }

 private:
  CacheSubscription::Slot& slot_;
};

}  // namespace detail

}  // namespace hubferry::kube
