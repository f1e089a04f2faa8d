#pragma once

#include "migration/ledger.hpp"
#include "migration/step.hpp"

/// Where the ledger is kept: a ConfigMap with the migration's name, owned by the migration.
namespace hubferry::migration {

/// Absent: there is no such ConfigMap. Errors: foreign_config_map.
Awaitable<OperationResult<std::optional<Ledger>>> read_ledger(kube::Api& api, const Migration& migration);

using LedgerChange = std::function<void(Ledger&)>;
/// Applies `change` to the ledger on the server, or to `known` where there is none: steps that run concurrently do not
/// overwrite each other's changes. With a fence, it is not changed if another leader has taken the migration over, by
/// the status: superseded; the ConfigMap has the term of its last writer in annotations. Of a migration that was
/// deleted and is gone nothing is written, and that is no error. Errors: foreign_config_map, which is left as it is; a
/// transient one while the ledger of a deleted migration of the same name has not been garbage collected.
Awaitable<OperationResult<>> change_ledger(kube::Api& api, const Migration& migration, Ledger known,
                                           LedgerChange change, kube::Fence* fence);

// For handlers. Like the status, the ledger is retried without a deadline: without it nothing can continue. In
// Rollbacking and Cleaning that includes errors that a person has to resolve; the condition says what it waits for.

/// Rebuilds the ledger if somebody deleted it: from the spec if that is the one that was validated, else from what both
/// hubs have of this migration. While the migration's namespace is being deleted it is kept in memory.
Awaitable<OperationResult<Ledger>> load_ledger(Step& step);
/// Replaces the ledger, and puts the counts into the status.
Awaitable<OperationResult<>> save_ledger(Step& step, const Ledger& ledger);
/// Changes the ledger, here and on the server.
Awaitable<OperationResult<>> amend_ledger(Step& step, Ledger& ledger, LedgerChange change);

}  // namespace hubferry::migration
