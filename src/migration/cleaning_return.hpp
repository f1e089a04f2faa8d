#pragma once

#include "migration/pending.hpp"
#include "migration/transitions.hpp"

/// The rollback from Cleaning: clusters had arrived, and then the target lost them, or was lost itself, before they
/// were deleted from the source. They return only if a person wants that, by the annotation for a rollback or by
/// deleting the migration: by itself the manager waits for the target. And even then each stays on at most one hub:
///
///   proven on the target now         stays there, and is deleted from the source
///   the target says it is not there  returns, if the source still has it; one without a renewed lease there only once
///                                    its agent had the time to renew it since the cut-over
///   the target does not say          it may be there, while only the manager cannot reach that hub: it stays denied on
///                                    the source until the person requests the rollback and gives the target up too
///                                    (names::leave_annotation); with a deletion, giving it up returns nothing
///   the source has it no more        stays: there is nothing to return to
///   the source has begun to delete   stays, unless the target has no such cluster any more, or was given up
///   another hub accepts it           it has moved on since, so it stays there; also while that hub does not say
namespace hubferry::migration {

/// Clusters that arrived, and of which the last look at the target did not prove that they are there.
struct Unproven {
  Failures absent;   // the target has answered: they are not there, or not alive
  Failures unknown;  // it has not
  /// Of those that would return: a third hub accepts them, or may do so.
  Failures elsewhere = {};

  void add(const Failures& failures);
};

/// Those that return to the source now, with the reason.
Awaitable<Failures> find_returning(Step& step, Unproven& unproven, Pending& pending);

/// Of these clusters, which are on neither hub of the migration as far as it knows: those that a third hub accepts, or
/// of which one does not say. The source must not accept them as well. With what a person can do.
Awaitable<Failures> find_elsewhere(Step& step, ClusterNames clusters);

/// Those of which the ledger says so already: a manager died after it had written that, and before the phase changed.
Failures find_unfinished_returns(const Migration& migration, const Ledger& ledger);

/// Why a rollback that a person wants does not begin yet: for the end of a message; empty: nothing keeps it.
std::string why_not_returning(const Migration& migration, const Unproven& unproven);

/// Ends Cleaning; Rollbacking returns these clusters, and leads back to Cleaning for what is on the target.
ReconcileState return_from_cleaning(Step& step, const Failures& returning);

}  // namespace hubferry::migration
