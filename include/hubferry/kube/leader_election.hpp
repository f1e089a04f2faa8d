#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/wait_list.hpp"
#include "hubferry/kube/fence.hpp"

namespace hubferry::kube {

class EventRecorder;
class LeaseMachine;

struct LeaderElectionOptions {
  std::string name;      // of the Lease
  std::string ns;        // of the Lease
  std::string identity;  // of this process: unique, not even reused by the next process in the same pod

  /// How long others wait, from the last renewal that they saw, before they take over.
  Duration lease_duration = std::chrono::seconds{15};
  /// How long a leader keeps leading without a renewal.
  Duration renew_deadline = std::chrono::seconds{10};
  /// Between two tries to take or renew the Lease.
  Duration retry_period = std::chrono::seconds{2};
  /// Give the Lease back when the work has ended, so that the next leader need not wait.
  bool release_on_stop = true;
  /// Not zero: take the Lease from a holder that has not renewed it for this long, whatever it promised. For a process
  /// that is meant to be the only one: it need not wait for the Lease of its crashed predecessor to expire.
  Duration takeover_after{0};
  /// A leader that loses the Lease becomes a candidate again, instead of throwing LeadershipLost.
  bool return_to_standby = false;
  /// Called when the Lease is seen to have another holder: its identity, or empty.
  std::function<void(const std::string& leader)> on_leader_change = {};

  /// Throws std::invalid_argument naming the value that cannot work.
  void validate() const;
};

/// This process has lost its leadership. It should exit: its state may be out of date.
class LeadershipLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Leader election by a coordination.k8s.io/v1 Lease: one of several processes works at a time.
///
/// A leader that cannot renew for renew_deadline, counted on the monotonic clock from the start of the last request
/// that succeeded, cancels its work and waits for it to unwind. Others take over lease_duration after the last change
/// that they saw, by their own clocks; timestamps of other machines are not trusted. So the work has
/// lease_duration - renew_deadline to unwind before another starts.
///
/// It is the Fence of the work that it runs.
/// Lifetime: outlives run(); `api`, `events` and the references in `env` outlive it. Executor: one loop.
class LeaderElector : public Fence {
 public:
  /// Throws std::invalid_argument for options that cannot work. `events` may be null.
  LeaderElector(Api& api, LeaderElectionOptions options, Env env, EventRecorder* events = nullptr);
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;
  ~LeaderElector() override;

  /// Waits to become leader, then runs `lead`, renewing the Lease beside it: once, or with return_to_standby again
  /// after each loss of the Lease. Returns when `lead` returned. Errors: LeadershipLost; what `lead` throws.
  /// Cancellation: terminal. In all cases the work has been joined first, then, if we still held it, the Lease has been
  /// released.
  Awaitable<> run(std::function<Awaitable<>(LeaderEpoch)> lead);

  [[nodiscard]] bool is_leader() const;
  /// The holder of the Lease as last read; empty if there was none.
  [[nodiscard]] std::string leader() const;

  [[nodiscard]] LeaderEpoch epoch() const override;
  [[nodiscard]] TimePoint until() const override;
  [[nodiscard]] Duration least_time() const override;
  Awaitable<bool> confirm() override;
  Awaitable<bool> outrank(std::int64_t number) override;

 private:
  Awaitable<> run_term(const std::function<Awaitable<>(LeaderEpoch)>& lead);
  /// Does the one thing that the machine wants next.
  Awaitable<> step();
  Awaitable<> read();
  Awaitable<> write(json::object lease, bool create);
  /// Returns when we lead.
  Awaitable<> acquire();
  /// Keeps the Lease; throws LeadershipLost when that fails.
  Awaitable<> renew();
  Awaitable<> release();
  void report_changes();

  Api& api_;
  LeaderElectionOptions options_;
  Env env_;
  EventRecorder* events_;
  std::unique_ptr<LeaseMachine> machine_;
  obs::Gauge master_status_;
  obs::Counter slow_path_;
  std::string reported_leader_;
  std::string last_error_;          // why the last try failed: part of the message when leadership is lost
  async::WaitList renewals_;        // woken after each request for the Lease
  async::Semaphore confirming_{1};  // one read for all who ask at the same time
  TimePoint confirmed_at_{};        // when the last request started that showed us as the holder
};

}  // namespace hubferry::kube
