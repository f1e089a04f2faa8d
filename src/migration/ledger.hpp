#pragma once

#include <map>
#include <set>

#include "migration/migration.hpp"

namespace hubferry::migration {

/// Why a cluster failed, and in which phase.
struct Failure {
  std::string stage;  // the phase
  std::string reason;
  std::string message;

  bool operator==(const Failure&) const = default;
};

using Failures = std::map<std::string, Failure>;  // by cluster

/// The ledger of a migration: what became of each cluster, for thousands of which a status has no room. It is kept in
/// the data of a ConfigMap, as JSON: `all-clusters`, `success`, `failure` are arrays of names.
struct Ledger {
  ClusterNames all;               // sorted, each once
  std::set<std::string> success;  // Available on the target
  Failures failures;
  std::set<std::string> rolled_back;  // of the failed ones: attached to the source again
  std::set<std::string> undone;       // of the failed ones: deleted from the target
  std::set<std::string> unverified;   // of the successful ones: not proven complete, so still on the source too
  std::set<std::string> released;     // of the successful ones: the target's controllers act on them
  std::set<std::string> cleaned;      // of the successful ones: deleted from the source
  std::map<std::string, std::string> waiting;  // what a pending rollback or cleanup waits for, by cluster
  std::set<std::string> left_behind;           // what a person gave up: "hub2/a", or "hub2"

  /// A cluster is successful or failed, never both.
  void succeed(const std::string& cluster);
  /// No effect on a cluster that has arrived.
  void fail(const std::string& cluster, Failure failure);
  /// A cluster that had arrived is not on the target any more: from now on it has failed, and returns to the source.
  void give_back(const std::string& cluster, Failure failure);

  /// What a person gave up in Cleaning, in place of what had been given up of arrived clusters, and of the migration's
  /// own objects, before: that may be done now.
  void leave_behind_arrived(const std::set<std::string>& given_up);

  /// Drops what is not in `all`: a count of arrived clusters must count none that somebody else has put in.
  void forget_unlisted();

  /// Neither arrived nor failed.
  [[nodiscard]] ClusterNames in_flight() const;
  /// Not arrived, and not yet rolled back on the source.
  [[nodiscard]] ClusterNames to_roll_back() const;
  /// Not arrived, and not yet deleted from the target.
  [[nodiscard]] ClusterNames to_undo() const;
  [[nodiscard]] bool all_arrived() const { return success.size() == all.size(); }

  bool operator==(const Ledger&) const = default;
};

/// The ConfigMap's data. Beyond the size that an API server accepts it is abbreviated: failures without their messages,
/// then the other lists as ranges of indices into `all-clusters`, at last those of `success` and `failure` too.
json::object to_data(const Ledger& ledger);
/// True if a ledger of these clusters fits into a ConfigMap, whatever becomes of them.
bool fits_ledger(const ClusterNames& clusters);
/// Reads what to_data() wrote, and whatever a person has made of it: a missing or malformed list is empty, and names
/// that are not in `all-clusters` are dropped, unless that is what is missing. `known`: the clusters of the migration,
/// whatever `all-clusters` says; empty: that counts.
Ledger ledger_from_data(const json::object& data, const ClusterNames& known = {});

}  // namespace hubferry::migration
