#pragma once

#include <memory>
#include <string>

#include "hubferry/async/wait_list.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

struct WorkAgentOptions {
  std::string cluster;
  /// What a hub has deployed stays this long after the agent has left it.
  async::Duration eviction_grace = std::chrono::minutes{60};
};

/// The work agent of one managed cluster: applies the ManifestWorks of its hub on the cluster's own API server, as Open
/// Cluster Management v1.3.1 was recorded to do.
///
/// - One AppliedManifestWork for each work and hub owns what was applied; with the deletion option Orphan nothing is
///   owned. An object that works of two hubs have applied has two owners.
/// - A ReadOnly manifest is reported as applied, but is not; with CreateOnly an object that exists is only owned.
/// - A deleted work keeps a finalizer until its objects are deleted.
/// - What no work of the current hub accounts for is evicted after the grace period, which starts when the agent joins
///   that hub: objects without another owner are deleted then.
/// - Without a hub, that is while the agent registers, it does nothing.
///
/// Not included: availability and status feedback of the applied objects, executors, ServerSideApply, kinds whose
/// plural is not the kind with an "s".
///
/// Lifetime: the Apis and what `env` refers to outlive run(). Executor: one loop. Cancellation: terminal.
class WorkAgent {
 public:
  WorkAgent(kube::Api& own_cluster, WorkAgentOptions options, kube::Env env);
  WorkAgent(const WorkAgent&) = delete;
  WorkAgent& operator=(const WorkAgent&) = delete;
  ~WorkAgent();

  /// The hub whose works are applied from now on, with the agent's credential; null: none.
  void set_hub(std::string server, std::shared_ptr<kube::Api> hub);

  async::Awaitable<> run();

 private:
  class Session;

  kube::Api& own_cluster_;
  WorkAgentOptions options_;
  kube::Env env_;
  std::string server_;
  std::shared_ptr<kube::Api> hub_;
  std::uint64_t version_ = 0;
  async::WaitList changed_;
};

}  // namespace hubferry::sim
