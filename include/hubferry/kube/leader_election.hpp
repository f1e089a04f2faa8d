#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::kube {

class EventRecorder;
class LeaseMachine;

struct LeaderElectionOptions {
  std::string name;      // of the Lease
  std::string ns;        // of the Lease
  std::string identity;  // of this process: no other may ever use it, not even the next one in the same pod

  /// How long others wait, from the last renewal that they saw, before they take over.
  Duration lease_duration = std::chrono::seconds{15};
  /// How long a leader goes on without a renewal.
  Duration renew_deadline = std::chrono::seconds{10};
  /// Between two tries to take or renew the Lease.
  Duration retry_period = std::chrono::seconds{2};
  /// Give the Lease back when the work has ended, so that the next leader need not wait.
  bool release_on_stop = true;

  /// Throws std::invalid_argument with a sentence for whoever set the values.
  void validate() const;
};

/// A term of leadership. Terms of one Lease have growing numbers: what the leader writes should carry the number or
/// be conditional on it, so that the late write of a deposed leader fails. A Lease alone is no lock.
struct LeaderEpoch {
  std::string identity;
  std::int64_t number = 0;  // leaseTransitions of the Lease
};

/// This process led and does so no more. It should end: what it knows may be out of date.
class LeadershipLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Lets one of several processes work at a time, by a coordination.k8s.io/v1 Lease.
///
/// A leader that cannot renew for renew_deadline, counted on the monotonic clock from the start of the last request
/// that succeeded, cancels its work and waits for it to unwind. Others take over lease_duration after the last change
/// that they saw, by their own clocks; nobody trusts a time that another machine wrote. So the work has
/// lease_duration - renew_deadline to unwind before another starts.
///
/// Lifetime: outlives run(); `api`, `events` and the references in `env` outlive it. Executor: one loop.
class LeaderElector {
 public:
  /// Throws std::invalid_argument for options that cannot work. `events` may be null.
  LeaderElector(Api& api, LeaderElectionOptions options, Env env, EventRecorder* events = nullptr);
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;
  ~LeaderElector();

  /// Waits to become leader, then runs `lead` once, renewing the Lease beside it.
  /// Returns when `lead` returned. Errors: LeadershipLost; what `lead` throws.
  /// Cancellation: terminal. In all cases the work has been joined first, then, if we still held it, the Lease has been
  /// released.
  Awaitable<> run(std::function<Awaitable<>(LeaderEpoch)> lead);

  [[nodiscard]] bool is_leader() const;
  /// The identity that held the Lease when we last looked; empty when nobody did.
  [[nodiscard]] std::string leader() const;

 private:
  /// Obeys the machine until it leads (returns), or, from then on, until leadership is lost (throws).
  Awaitable<> acquire();
  Awaitable<> renew();
  Awaitable<> step_write(json::object lease, bool create);
  Awaitable<> read();
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
  std::string last_error_;  // why the last try failed: the end of the sentence when leadership is lost
};

}  // namespace hubferry::kube
