#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/watch_machine.hpp"

namespace hubferry::klusterlet {

/// Lists and watches one object, as a cache does, but without keeping it: thousands of agents do this at once.
///
///   auto cluster = co_await follower.next();   // first the current object, or null
///
/// Of several changes that arrive together only the last is returned. Failures are retried forever, with backoff.
/// Lifetime: api, decoder and what `env` refers to outlive it. Executor: one loop. Cancellation: terminal.
class ObjectFollower {
 public:
  /// Null: the object does not exist.
  using Pointer = std::shared_ptr<const void>;

  ObjectFollower(kube::Api& api, const kube::Resource& resource, kube::Key key, const kube::Decoder& decoder,
                 const kube::Env& env);

  /// Where to watch without a list before it, which saves a request. Lists follow only if the watch cannot be resumed.
  struct Start {
    std::string resource_version = {};   // changes since this version; empty: the watch begins with the object
    std::string not_older_than = {};     // the object has had this version: an older one comes from a stale cache
    async::Duration longest_silence{0};  // if nothing has come, it is listed after all: it may not exist. Zero: never
  };
  /// Before the first next().
  void begin_with_watch(Start start) { start_ = std::move(start); }

  async::Awaitable<Pointer> next();

  /// Called when the object cannot be listed or watched, with the error, and with null when that works. Not for a watch
  /// that ends: servers and load balancers do that all the time.
  std::function<void(const kube::Error*)> on_state;

 private:
  struct Report {
    kube::WatchInput input = kube::WatchInput::start;
    kube::WatchMachine::Facts facts;
  };

  async::Awaitable<> list();
  async::Awaitable<> open(kube::OpenWatch request);
  async::Awaitable<> read();
  void take(std::vector<kube::WatchEvent> events);
  void failed(const kube::Error& error);
  [[nodiscard]] std::string selector() const;

  kube::Api& api_;
  const kube::Resource& resource_;
  kube::Key key_;
  const kube::Decoder& decoder_;
  const kube::Env& env_;
  kube::WatchMachine machine_;
  std::unique_ptr<kube::WatchStream> stream_;
  Report report_;
  std::optional<Pointer> news_;  // set by list() and read()
  std::optional<Start> start_;   // until the first object has come
  bool listed_ = false;          // or a watch took the list's place
};

}  // namespace hubferry::klusterlet
