#pragma once

#include "hubferry/obs/secret.hpp"
#include "migration/step.hpp"

/// The credential with which clusters first knock at the target. Its secret is only ever in memory, and in the Secret
/// on the source hub that the clusters' agents get.
namespace hubferry::migration {

/// Which way there is: a ManagedServiceAccount where the global hub serves that kind and the target runs its add-on,
/// else a ServiceAccount on the target whose token is asked for directly.
Awaitable<kube::Result<Credential>> choose_credential(Step& step);

/// Sees to it that the ManagedServiceAccount exists. Nothing to do for the other way.
/// Errors: conflict where one of that name is not this migration's.
Awaitable<kube::Result<>> create_credential(Step& step, Credential credential);

/// A kubeconfig with a token for the target. Waits for the token where somebody else makes it.
/// Errors: invalid where nothing says how clusters reach the target.
Awaitable<kube::Result<obs::Secret>> make_bootstrap_kubeconfig(Step& step, Credential credential);

/// Takes the ManagedServiceAccount away, and its token. Nothing to do for the other way: the target's helpers go with
/// TargetHub::delete_migration_objects. Where it is gone, or not ours, nothing happens.
Awaitable<kube::Result<>> delete_credential(Step& step, Credential credential);

/// The ManagedServiceAccount of a migration.
json::object managed_service_account(const Migration& migration);

}  // namespace hubferry::migration
