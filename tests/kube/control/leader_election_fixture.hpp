#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hubferry/kube/leader_election.hpp"
#include "kube/control/control_test.hpp"

namespace hubferry::kube {

inline const Key lease_key{"ns", "lease"};

inline LeaderElectionOptions candidate(std::string identity) {
  LeaderElectionOptions options;
  options.name = lease_key.name;
  options.ns = lease_key.ns;
  options.identity = std::move(identity);
  return options;
}

class LeaderElectionTest : public ControlTest {
 protected:
  struct Term {
    std::string identity;
    std::int64_t epoch;
    TimePoint from;
    TimePoint to = async::never;
  };

  /// Works until cancelled, and keeps book of it.
  std::function<Awaitable<>(LeaderEpoch)> work() {
    return [this](LeaderEpoch epoch) -> Awaitable<> { return lead(std::move(epoch)); };
  }
  Awaitable<> lead(LeaderEpoch epoch) {
    const std::size_t term = terms_.size();
    terms_.push_back({epoch.identity, epoch.number, clock_.now()});
    std::exception_ptr end;
    try {
      co_await clock_.sleep_until(async::never);
    } catch (...) {
      end = std::current_exception();
    }
    terms_[term].to = clock_.now();
    std::rethrow_exception(end);
  }
  [[nodiscard]] std::string_view holder() const {
    return api_.find(resources::leases, lease_key)->string_at({"spec", "holderIdentity"});
  }
  /// Runs a candidate until it ends; keeps the message of a lost leadership.
  Awaitable<> compete(LeaderElector& elector, std::string& lost) {
    try {
      co_await elector.run(work());
    } catch (const LeadershipLost& e) {
      lost = e.what();
    }
  }

  std::vector<Term> terms_;
};

}  // namespace hubferry::kube
