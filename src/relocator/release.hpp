#pragma once

#include <map>
#include <optional>

#include "hubferry/async/event.hpp"
#include "relocator/deployment.hpp"
#include "relocator/destinations.hpp"

namespace hubferry::relocator {

struct Services;

/// A ClusterDeployment that the destination has, and that the source has annotated as relocated.
struct Arrival {
  Key deployment;
  std::string relocator;
  std::string destination;  // the hub that it moved to; empty: not known
  Object copy;              // as this process has created it; empty: it has not
  bool has_zone = true;     // also if that is not known
};

/// Removes the annotations of an arrival from the copies of ClusterDeployment and DNSZone, and confirms the arrival. A
/// copy that is not there any more needs neither. Nullopt: done. Otherwise why not.
Awaitable<std::optional<Problem>> release_copies(Services& services, Arrival arrival);

/// Arrivals that could not be released, or not in time. They are retried until they are, and are in the status of their
/// relocators until then, so that a successor continues.
/// Lifetime: `services` outlive it. Executor: one loop.
class Releases {
 public:
  explicit Releases(Services& services) : services_(services) {}

  /// It is about to be annotated as relocated: if it is deleted before done(), it is retried.
  void expect(Arrival arrival);
  void done(const Key& key);
  void add(Arrival arrival, const std::string& problem);
  /// A ClusterDeployment is gone from the source. `last`: as it was.
  void gone(const Object& last);
  /// What the status of a relocator says: left by a predecessor.
  void restore(const Object& relocator);
  /// Looks soon at the destination of that relocator for copies that a predecessor has not released: it may have died
  /// when nothing was left on the source to say so.
  void look_for_forgotten(const std::string& relocator);
  /// Retries until cancelled.
  Awaitable<> run();

 private:
  struct Pending {
    Arrival arrival;
    std::string problem;
    unsigned failures = 0;
    async::TimePoint due{};
  };

  struct Search {
    unsigned failures = 0;
    async::TimePoint due{};
  };

  void report(const std::string& relocator);
  Awaitable<> retry(Key key);
  Awaitable<> search(std::string relocator);
  Awaitable<std::optional<Problem>> find_forgotten(std::string relocator);
  /// Nullopt: nothing is due, ever.
  [[nodiscard]] std::optional<async::TimePoint> next_due() const;
  /// True if nobody waits for that any more: its relocator is gone, or it is back on this hub.
  [[nodiscard]] bool is_obsolete(const Arrival& arrival) const;

  Services& services_;
  std::map<Key, Arrival> expected_;
  std::map<Key, Pending> pending_;
  std::map<std::string, Search> searches_;  // by relocator
  async::Notify changed_;
};

}  // namespace hubferry::relocator
