#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "hubferry/async/event.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::kube {

using async::Awaitable;
using async::Duration;
using async::TimePoint;

struct WorkQueueOptions {
  std::string name;        // the metrics' label `name`
  std::string controller;  // the metrics' label `controller`; empty: the name

  /// add_rate_limited() waits first_delay for a key's first failure, then twice as long each time, up to most_delay.
  Duration first_delay = std::chrono::milliseconds{5};
  Duration most_delay = std::chrono::seconds{1000};
  /// Besides, all keys together are rate-limited to this many a second. Zero: they are not.
  double overall_per_second = 0;
  double overall_burst = 100;
};

/// A queue of keys to reconcile, first in first out; as client-go's workqueue.
///
/// A key is in the queue at most once, however often it is added, and is never given to two workers at once. A key
/// that is added while a worker has it is queued once more when that worker is done: the run in flight may have read
/// the old state.
///
///   while (auto key = co_await queue.get()) {
///     …  // then forget(*key) on success, add_rate_limited(*key) on failure
///     queue.done(*key);
///   }
///
/// Lifetime: outlives run() and every get(). Executor: all calls on one loop; not thread-safe.
/// Cancellation: terminal; a cancelled get() has taken nothing.
class WorkQueue {
 public:
  WorkQueue(WorkQueueOptions options, Env env);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue();

  void add(Key key);
  /// Adds when `delay` has passed and run() runs. Of several delays for one key the earliest end counts.
  void add_after(Key key, Duration delay);
  /// Adds after a delay that grows with each call for this key since its last forget().
  void add_rate_limited(Key key);
  /// The key succeeded: its next failure starts from the first delay again. Removes nothing from the queue.
  void forget(const Key& key);
  /// How often add_rate_limited() was called for this key since its last forget().
  [[nodiscard]] unsigned retries(const Key& key) const;

  /// The next key, which is the caller's until done(). Nullopt when shut down and empty.
  Awaitable<std::optional<Key>> get();
  void done(const Key& key);

  /// Adds are ignored from now on, and delayed keys dropped; get() gives out what is queued, then nullopt.
  void shut_down();
  /// shut_down(), then waits until the workers have taken all that was queued and are done with it. A key that
  /// changed during its last run is given out once more.
  Awaitable<> shut_down_with_drain();

  /// Queues delayed keys when they fall due, and keeps the gauges of unfinished work fresh, until cancelled or shut
  /// down.
  Awaitable<> run();

  [[nodiscard]] std::size_t size() const { return queue_.size(); }
  [[nodiscard]] std::size_t processing() const { return processing_.size(); }
  [[nodiscard]] std::size_t delayed() const { return delayed_.size(); }

 private:
  struct Metrics;
  struct Due {
    TimePoint when;
    std::uint64_t sequence;  // equal times fall due in the order of their calls
    auto operator<=>(const Due&) const = default;
  };
  using Schedule = std::map<Due, Key>;

  void enqueue(const Key& key);
  void queue_due_keys();
  void schedule(Key key, TimePoint when);
  Duration overall_delay();
  void update_gauges();
  [[nodiscard]] TimePoint next_wake_up() const;

  WorkQueueOptions options_;
  Env env_;
  std::unique_ptr<Metrics> metrics_;

  std::deque<Key> queue_;                          // every element is in dirty_ and not in processing_
  std::unordered_map<Key, TimePoint> dirty_;       // wants a run: in queue_, or in processing_; since when
  std::unordered_map<Key, TimePoint> processing_;  // given to a worker that is not done(); since when
  Schedule schedule_;                              // to be added later; same keys as delayed_
  std::unordered_map<Key, Schedule::iterator> delayed_;
  std::unordered_map<Key, unsigned> failures_;  // never holds a zero

  std::uint64_t next_sequence_ = 0;
  TimePoint next_token_ = TimePoint::min();  // of the overall limit: when the next one falls due
  bool shutting_down_ = false;
  async::WaitList workers_;  // wait for queue_ or shutdown
  async::WaitList drain_;    // wait for queue_ and processing_ to be empty
  async::Notify schedule_changed_;
};

}  // namespace hubferry::kube
