#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/random.hpp"
#include "hubferry/kube/error.hpp"
#include "hubferry/kube/leader_election.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::kube {

/// following -> leading -> lost
/// `lost` is final: a process that has led does not run a second term.
enum class LeaseState {
  following,  // another process leads, or none does
  leading,    // our last renewal started less than renew_deadline ago
  lost,       // we led, and either time ran out or the Lease has another holder
};

/// Decides what a candidate does next. No I/O: the caller performs next() and reports the outcome.
class LeaseMachine {
 public:
  struct Read {};
  struct Create {
    json::object lease;
  };
  struct Update {
    json::object lease;  // carries the resourceVersion that it was decided on
  };
  struct Pause {
    TimePoint until;
  };
  struct Stop {};  // leadership is lost: nothing left to do
  using Action = std::variant<Read, Create, Update, Pause, Stop>;

  /// `transitions`: the highest number of a term that this process has seen before; -1: none.
  LeaseMachine(LeaderElectionOptions options, async::Random& random, std::int64_t transitions = -1);

  [[nodiscard]] Action next(TimePoint now, async::WallTime wall);

  void on_read(std::optional<Object> lease, TimePoint now);
  /// `started`: when the request was sent. The renewal counts from there, as others may have seen it that early.
  void on_written(Object lease, TimePoint started, TimePoint now);
  /// A read or a write failed. After an ambiguous write or a conflict the Lease is read.
  void on_failure(const Error& error, TimePoint now);

  [[nodiscard]] LeaseState state() const { return state_; }
  [[nodiscard]] bool is_leading(TimePoint now) const { return state_ == LeaseState::leading && now < leads_until_; }
  /// Until when we may act as leader.
  [[nodiscard]] TimePoint leads_until() const { return leads_until_; }
  [[nodiscard]] std::int64_t epoch() const { return epoch_; }
  /// The highest number of a term seen so far; -1: none. A deleted Lease comes back with a higher one:
  /// terms whose numbers start over could not be distinguished.
  [[nodiscard]] std::int64_t transitions() const { return transitions_; }
  [[nodiscard]] std::string holder() const;
  /// The next renewal takes a number above this one.
  void raise_above(std::int64_t number) { wanted_epoch_ = std::max(wanted_epoch_, number + 1); }
  /// True if that Lease is of our term.
  [[nodiscard]] bool is_of_our_term(const Object& lease) const;
  /// The Lease as it looks when given back; nullopt when it is not known to be ours.
  [[nodiscard]] std::optional<json::object> released(async::WallTime wall) const;

 private:
  [[nodiscard]] json::object claim(async::WallTime wall) const;
  [[nodiscard]] bool held_by_us() const { return holder() == options_.identity; }
  [[nodiscard]] TimePoint expiry() const;
  [[nodiscard]] TimePoint after_retry_period(TimePoint now);
  /// Replaces the known Lease.
  void take(std::optional<Object> lease);

  LeaderElectionOptions options_;
  async::Random& random_;

  LeaseState state_ = LeaseState::following;
  bool must_read_ = true;        // what we know may not be what the server holds
  std::optional<Object> lease_;  // as last seen; nullopt: there is none
  TimePoint seen_at_{};          // when its spec last changed, by our own clock: others' clocks are not trusted
  TimePoint not_before_{};       // of the next request
  TimePoint leads_until_{};
  std::int64_t epoch_ = 0;
  std::int64_t wanted_epoch_ = 0;  // above epoch_: to be taken with the next renewal
  std::int64_t transitions_;
  bool hurried_ = false;  // the last failure was answered at once; the next one waits
};

}  // namespace hubferry::kube
