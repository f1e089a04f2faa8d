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
  std::string identity;  // of this process: unique, not even reused by the next process in the same pod

  /// How long others wait, from the last renewal that they saw, before they take over.
  Duration lease_duration = std::chrono::seconds{15};
  /// How long a leader keeps leading without a renewal.
  Duration renew_deadline = std::chrono::seconds{10};
  /// Between two tries to take or renew the Lease.
  Duration retry_period = std::chrono::seconds{2};
  /// Give the Lease back when the work has ended, so that the next leader need not wait.
  bool release_on_stop = true;

  /// Throws std::invalid_argument naming the value that cannot work.
  void validate() const;
};

/// A term of leadership. Its number only grows and is a fencing token: what the leader writes should carry it or be
/// conditional on it, so that the late write of a deposed leader fails. A Lease alone is not a lock.
struct LeaderEpoch {
  std::string identity;
  std::int64_t number = 0;  // leaseTransitions of the Lease
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
  /// The holder of the Lease as last read; empty if there was none.
  [[nodiscard]] std::string leader() const;

 private:
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
  std::string last_error_;  // why the last try failed: part of the message when leadership is lost
};

}  // namespace hubferry::kube
