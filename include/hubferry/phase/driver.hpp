#pragma once

#include <memory>

#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/phase/key_source.hpp"
#include "hubferry/phase/machine.hpp"

namespace hubferry::phase {

struct DriverOptions {
  /// Maximum number of machines at once. One that waits inside a handler counts, and costs only memory.
  std::size_t max_concurrent = 1000;
  /// How long stop() lets running machines continue before it cancels them.
  async::Duration grace = std::chrono::seconds{10};
};

/// Runs many machines of one definition at once, each for one key of a source.
///
///   co_await driver.run();   // until stop() has done its work, the source has ended, or cancellation
///
/// Lifetime: machine and source outlive run(). Executor: all calls on the loop of run(); not thread-safe.
/// Cancellation of run(): every machine is cancelled where it waits; run() ends when all have unwound.
class Driver {
 public:
  Driver(MachineCore& machine, KeySource& source, DriverOptions options = {});
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver();

  Awaitable<> run();

  /// Graceful: starts no new machines; running ones have `grace` to come to rest, then are cancelled.
  void stop();
  /// Immediate, for a leader that lost its lease: every machine is cancelled where it waits. One that was woken in this
  /// very turn may still write once, which the precondition of its write makes harmless.
  void abort();
  /// Cancels the machine of a resource that is being deleted, or must start over; its key is queued again. False if it
  /// is not running.
  bool cancel(const Key& key);

  [[nodiscard]] std::size_t running() const { return running_.size(); }
  [[nodiscard]] bool is_running(const Key& key) const { return running_.contains(key); }

 private:
  class Turn;

  Awaitable<> work(async::TaskScope& scope);
  Awaitable<> take_keys(async::TaskScope& scope);
  Awaitable<> run_one(std::unique_ptr<Turn> turn);
  void conclude(const Key& key, const Reconciled& result);

  MachineCore& machine_;
  KeySource& source_;
  DriverOptions options_;
  obs::Gauge& running_gauge_;
  obs::Family<obs::Counter>& reconciles_;
  async::Semaphore permits_;
  std::unordered_map<Key, Turn*> running_;
  async::TaskScope* intake_ = nullptr;  // while keys are taken
  async::TaskScope* all_ = nullptr;     // while run() runs: each machine is a child of it
  bool stopping_ = false;
  async::WaitList idle_;  // wait for running_ to be empty
};

}  // namespace hubferry::phase
