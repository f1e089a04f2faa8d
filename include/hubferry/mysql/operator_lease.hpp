#pragma once

#include <functional>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/leader_election.hpp"
#include "hubferry/obs/health.hpp"

namespace hubferry::mysql {

/// Of the namespace with the databases. The same for every operator, however it was deployed.
inline constexpr const char* operator_lease = "hubferry-mysql";

/// Runs `work` while this process holds the Lease `hubferry-mysql` in `election.ns`, and waits while another one does.
/// Managers elect their leaders with Leases of their own: two deployments would both act on the same servers, and each
/// would make a primary. `work` gets the fence of that Lease, or null where the Lease cannot be used: no right to it.
/// Lifetime: everything given outlives the call. Errors: those of `work`. Cancellation: terminal.
async::Awaitable<> run_as_only_operator(kube::Api& api, kube::LeaderElectionOptions election,
                                        obs::CheckState* readiness, kube::Env env,
                                        std::function<async::Awaitable<>(kube::Fence*)> work);

}  // namespace hubferry::mysql
