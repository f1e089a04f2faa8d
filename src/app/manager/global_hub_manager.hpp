#pragma once

#include <functional>
#include <optional>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/obs/health.hpp"

/// multicluster-global-hub has a manager that reconciles ManagedClusterMigrations, too: the same objects of the same
/// kind. Two controllers that move the same clusters would take them from each other.
namespace hubferry::app {

/// Why we must not act on migrations: the MulticlusterGlobalHub by which it is installed. Absent: it is not installed.
/// Where its kind is served and may not be listed, it counts as installed.
async::Awaitable<kube::Result<std::optional<std::string>>> find_global_hub_manager(kube::Api& global);

/// Runs `work` while multicluster-global-hub is not installed. While it is, waits, says so in the log, and is not
/// ready; work that is running then is cancelled. Returns when `work` does. Cancellation: terminal.
async::Awaitable<> while_no_global_hub_manager(kube::Api& global, kube::Env env, obs::CheckState& readiness,
                                               std::function<async::Awaitable<>()> work);

}  // namespace hubferry::app
