#pragma once

#include "migration/cleaning_return.hpp"
#include "migration/definition.hpp"

/// The migration's own objects on both hubs and on the global hub: how they go, at the end of Rollbacking and Cleaning.
namespace hubferry::migration {

/// Verifies the clusters that arrived, and deletes each from the source. Returns what to record of that; `unproven`, if
/// given, gets those that are not on the target. (In phase_cleaning.cpp; a rollback that is pending does not keep them
/// waiting.)
Awaitable<LedgerChange> clean_arrived(Step& step, const Ledger& ledger, Pending& pending, Unproven* unproven = nullptr);

/// The global hub, as a LeftBehind names it.
inline constexpr const char* global_hub_name = "global-hub";

/// On the source: its agents get no bootstrap kubeconfig of the target any more.
Awaitable<> delete_source_objects(Step& step, Pending& pending);

/// Those of the source, those of the target, then the credential: an agent that restarts before it has its final
/// credential still needs that one.
Awaitable<> delete_own_objects(Step& step, Pending& pending);

/// As a step.
Awaitable<ReconcileState> delete_own_objects_or_postpone(Step& step);

}  // namespace hubferry::migration
