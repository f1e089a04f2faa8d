#pragma once

#include "app/manager/manager_options.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/obs/health.hpp"

namespace hubferry::app {

/// What the manager's controllers need.
/// Lifetime: everything outlives run_controllers().
struct ControllerSurroundings {
  const ManagerOptions& options;
  kube::Api& global;
  const kube::ClientConfig& global_config;
  async::LoopPool& loops;  // of the connections to hubs
  kube::Env env;
  std::shared_ptr<const hubagent::CarriedResources> carried;  // null: the default
  obs::CheckState& caches;  // passes while the controllers that run have seen what there is
};

/// Runs the controllers that --controllers names, until cancelled: what the leader does. All that they had begun is in
/// the API then, for the next leader.
async::Awaitable<> run_controllers(ControllerSurroundings around);

}  // namespace hubferry::app
