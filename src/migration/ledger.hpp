#pragma once

#include <functional>
#include <map>
#include <set>

#include "hubferry/kube/api.hpp"
#include "migration/migration.hpp"

namespace hubferry::migration {

/// Why one cluster failed, and how far it had come.
struct Failure {
  std::string stage;  // a phase
  std::string reason;
  std::string message;

  bool operator==(const Failure&) const = default;
};

/// What became of each cluster: the lists that do not fit into a status. They live in a ConfigMap that is named like
/// the migration and owned by it, as JSON: `all-clusters`, `success`, `failure` are arrays of names.
struct Ledger {
  ClusterNames all;               // sorted, each once
  std::set<std::string> success;  // Available on the target
  std::map<std::string, Failure> failures;
  std::set<std::string> rolled_back;  // of the failed: back on the source
  std::set<std::string> undone;       // of the failed: nothing of them is left on the target
  std::set<std::string> unverified;   // of the successful: not proven to be complete, so still on the source too
  std::set<std::string> cleaned;      // of the successful: gone from the source

  /// A cluster is successful or failed, never both.
  void succeed(const std::string& cluster);
  /// A cluster that has arrived does not fail any more.
  void fail(const std::string& cluster, Failure failure);

  /// Neither arrived nor failed.
  [[nodiscard]] ClusterNames under_way() const;
  /// Not arrived, and not brought back to the source yet.
  [[nodiscard]] ClusterNames to_roll_back() const;
  /// Not arrived, and not yet removed from the target.
  [[nodiscard]] ClusterNames to_undo() const;
  /// Arrived and verified, and still on the source.
  [[nodiscard]] ClusterNames to_clean() const;
  [[nodiscard]] bool all_arrived() const { return success.size() == all.size(); }

  bool operator==(const Ledger&) const = default;
};

/// The ConfigMap's data. What does not fit into what a server accepts is told in fewer words: failures without their
/// messages, then the other lists as places in `all-clusters`.
json::object to_data(const Ledger& ledger);
/// Reads what to_data() wrote; what is missing or damaged is empty.
Ledger ledger_from_data(const json::object& data);

/// Absent: there is no such ConfigMap. Errors: conflict where one of that name is not the migration's.
async::Awaitable<kube::Result<std::optional<Ledger>>> read_ledger(kube::Api& api, const Migration& migration);
/// Creates or changes the migration's ConfigMap. Errors: conflict where one of that name is not the migration's, which
/// is left as it is.
async::Awaitable<kube::Result<>> write_ledger(kube::Api& api, const Migration& migration, Ledger ledger);

using LedgerChange = std::function<void(Ledger&)>;
/// The same for a part of it, on top of what is on the server: steps that work side by side lose nothing of each
/// other's. `known` takes the place of lists that are gone.
async::Awaitable<kube::Result<>> change_ledger(kube::Api& api, const Migration& migration, Ledger known,
                                               LedgerChange change);

}  // namespace hubferry::migration
