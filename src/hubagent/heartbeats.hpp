#pragma once

#include <functional>

#include "hubagent/arrival.hpp"

/// A renewal is seen as a change of the lease. The time in it is by the clock of the agent, which may be hours ahead of
/// ours: it says nothing about when.
namespace hubferry::hubagent {

using OnRenewal = std::function<void(const std::string& cluster)>;

/// Calls `on_renewal` for each cluster that renews its lease from now on; ends when all have.
Awaitable<> await_renewals_of(Hub& hub, ClusterNames clusters, OnRenewal on_renewal);

}  // namespace hubferry::hubagent
