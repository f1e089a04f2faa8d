#pragma once

#include "migration/ledger_store.hpp"
#include "migration/pending.hpp"

/// A round of Rollbacking over all clusters that did not arrive. What it cannot do now is pending, and done by a later
/// round.
namespace hubferry::migration {

/// One round, and what it has achieved.
struct Rollback {
  Step& step;
  Ledger& ledger;
  Pending& pending;
  hubagent::MigrationRef ref;
  std::set<std::string> returned = {};  // to the source
  std::set<std::string> reopened = {};  // counted as returned before, and found on the target
  std::set<std::string> undone = {};    // their copies are deleted from the target
  LedgerChange cleaned = {};            // of those that arrived

  [[nodiscard]] std::string source() const { return step.migration.from(); }
  [[nodiscard]] std::string target() const { return step.migration.to(); }
};

/// What is left to do for each cluster, by what the migration has done with it.
Awaitable<> roll_back_all(Rollback& rollback);

// Its parts: rollback_detached.cpp has the first, with rollback_settling.cpp, rollback_clusters.cpp the second.

/// Detached clusters return to the source. The order is what keeps each on exactly one hub: it is looked for on the
/// target; where it is not, the source accepts it again; only then the target denies it, unless it has arrived there
/// since. One that lives there stays, though its arrival is not complete: it may know no other hub. If the target does
/// not answer, the source comes first all the same, and the cluster is looked for again in the next round: until its
/// agent has renewed its lease on one of the two hubs, nothing is decided.
Awaitable<> return_detached(Rollback& rollback, ClusterNames clusters);

/// The source drops its claim: of clusters that were never detached, or that are back.
Awaitable<> release_attached(Rollback& rollback, hubagent::Stage stage, ClusterNames clusters);

}  // namespace hubferry::migration
