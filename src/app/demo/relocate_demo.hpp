#pragma once

#include <iosfwd>

#include "hubferry/async/event.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::app {

/// Moves `count` ClusterDeployments from one simulated hub with Hive to another, both on local sockets, and prints each
/// step. Returns the exit code: 0 if all have moved and nothing was deprovisioned, 1 otherwise, 130 if stopped.
/// Executor: the caller's loop; the connections have a thread of their own.
async::Awaitable<int> run_relocate_demo(int count, async::Event& stop, kube::Env env, std::ostream& out);

}  // namespace hubferry::app
