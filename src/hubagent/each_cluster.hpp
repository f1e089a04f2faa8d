#pragma once

#include <functional>

#include "hubagent/calls.hpp"
#include "hubferry/hubagent/migration_ref.hpp"

namespace hubferry::hubagent {

/// Treats one cluster; gives the slot back early where it only waits. An error is the cluster's failure, unless it is
/// one of the whole hub (is_hub_error).
using Treatment = std::function<Awaitable<Result<>>(std::string cluster, Slot slot)>;

/// Treats clusters in parallel, as many as the hub has slots. It asks for one slot at a time, so that orders of several
/// migrations share the hub's slots in turn. An error of the hub stops all and is the answer.
Awaitable<Result<Outcome>> for_each_cluster(Hub& hub, ClusterNames clusters, Treatment treat);

}  // namespace hubferry::hubagent
