#pragma once

#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/phase/phase.hpp"

namespace hubferry::kube {
class WorkQueue;
}

namespace hubferry::phase {

using async::Awaitable;

/// Where a driver gets the keys to reconcile. A key belongs to the driver from get() to done(); if it is added
/// meanwhile, it is given out again afterwards.
class KeySource {
 public:
  virtual ~KeySource() = default;

  /// Nullopt: there are no more. Cancellation: terminal; a cancelled get() has taken nothing.
  virtual Awaitable<std::optional<Key>> get() = 0;
  virtual void done(const Key& key) = 0;
  virtual void add(Key key) = 0;
  virtual void add_after(Key key, async::Duration delay) = 0;
  /// Adds after a delay that grows with every failure since the last forget().
  virtual void add_rate_limited(Key key) = 0;
  virtual void forget(const Key& key) = 0;
};

/// The keys of a kube::WorkQueue, which must outlive it and be run() by its owner.
class WorkQueueSource final : public KeySource {
 public:
  explicit WorkQueueSource(kube::WorkQueue& queue) : queue_(queue) {}

  Awaitable<std::optional<Key>> get() override;
  void done(const Key& key) override;
  void add(Key key) override;
  void add_after(Key key, async::Duration delay) override;
  void add_rate_limited(Key key) override;
  void forget(const Key& key) override;

 private:
  kube::WorkQueue& queue_;
};

/// A source without Kubernetes, metrics or tasks of its own: for tests, tools and benchmarks.
class MemoryKeySource final : public KeySource {
 public:
  explicit MemoryKeySource(async::Clock& clock) : clock_(clock) {}

  Awaitable<std::optional<Key>> get() override;
  void done(const Key& key) override;
  void add(Key key) override;
  void add_after(Key key, async::Duration delay) override;
  void add_rate_limited(Key key) override;
  void forget(const Key& key) override { failures_.erase(key); }

  /// get() gives out what is queued, then nullopt.
  void close();
  /// Keys that are queued, delayed or with the driver.
  [[nodiscard]] std::size_t pending() const { return queue_.size() + delayed_.size() + processing_.size(); }

 private:
  void take_due();

  async::Clock& clock_;
  std::deque<Key> queue_;  // every element is in dirty_ and not in processing_
  std::unordered_set<Key> dirty_;
  std::unordered_set<Key> processing_;
  std::multimap<async::TimePoint, Key> delayed_;
  std::unordered_map<Key, unsigned> failures_;
  bool closed_ = false;
  async::Notify changed_;
};

}  // namespace hubferry::phase
