#pragma once

#include "hubferry/obs/secret.hpp"
#include "migration/step.hpp"

/// The credential with which clusters first register on the target. Its secret is only ever in memory, and in the
/// Secret on the source hub from which the clusters' agents get it.
namespace hubferry::migration {

/// A ManagedServiceAccount if the global hub serves that kind and the target runs its add-on, else a ServiceAccount on
/// the target whose token is requested directly.
Awaitable<OperationResult<Credential>> choose_credential(Step& step);

/// Creates the ManagedServiceAccount; nothing to do for a ServiceAccount. Errors: rejected if one of that name is not
/// this migration's.
Awaitable<OperationResult<>> create_credential(Step& step, Credential credential);

/// A kubeconfig with a token for the target. Waits for the token of a ManagedServiceAccount until the phase's deadline.
/// Errors: rejected if the URL by which clusters reach the target is not known.
Awaitable<OperationResult<obs::Secret>> make_bootstrap_kubeconfig(Step& step, Credential credential);

/// Deletes the ManagedServiceAccount and its token, if they exist and are this migration's. Nothing to do for a
/// ServiceAccount: the target deletes it with the migration's own objects.
Awaitable<OperationResult<>> delete_credential(Step& step, Credential credential);

/// The ManagedServiceAccount of a migration.
json::object managed_service_account(const Migration& migration);

}  // namespace hubferry::migration
