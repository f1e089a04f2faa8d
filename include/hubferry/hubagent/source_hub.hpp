#pragma once

#include <functional>

#include "hubferry/hubagent/bundle.hpp"
#include "hubferry/hubagent/outcome.hpp"
#include "hubferry/obs/secret.hpp"

namespace hubferry::hubagent {

class Hub;

/// The operations on the hub that clusters leave. Together with TargetHub this is all that a migration knows of a hub:
/// make_source_hub() runs the operations on the hub's API server; another implementation may carry them to a remote
/// agent.
///
/// Every operation is idempotent: repeated after a crash, or without need, it completes what is unfinished and returns
/// the same result. Clusters are processed in parallel, bounded per hub over all migrations.
/// Errors: the operation could not be run at all (hub unreachable, forbidden). A failure of one cluster is in the
/// Outcome.
/// Cancellation: terminal, at any point; a repeated operation completes what was begun.
class SourceHub {
 public:
  virtual ~SourceHub() = default;

  /// The clusters that a Placement selected, sorted, without duplicates. Errors: placement_not_found, placement_empty.
  virtual async::Awaitable<Result<ClusterNames>> resolve_placement(std::string placement) = 0;

  /// Each cluster exists, is Available, is neither local-cluster, nor Hosted, nor a hub itself, and is not claimed by
  /// another migration.
  virtual async::Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) = 0;

  /// The users' own KlusterletConfigs that these clusters refer to.
  virtual async::Awaitable<Result<KlusterletConfigUses>> klusterlet_configs(MigrationRef migration,
                                                                            ClusterNames clusters) = 0;

  /// Gives the clusters the target's bootstrap kubeconfig (Secret, KlusterletConfig), claims them by annotation, and
  /// pauses the controllers that act on their machines. The settings of a KlusterletConfig that a cluster had before
  /// stay in force.
  virtual async::Awaitable<Result<Outcome>> initialize(MigrationRef migration, ClusterNames clusters,
                                                       obs::Secret bootstrap_kubeconfig) = 0;

  /// Passes the carried resources to `sink`, in bundles. Ends when the last sink call has ended.
  virtual async::Awaitable<Result<Outcome>> collect(MigrationRef migration, ClusterNames clusters, BundleSink sink) = 0;

  /// What the caller of detach() decides and learns for each cluster: from the write on it has no hub.
  struct OnDetach {
    /// Awaited immediately before the write. An error: the cluster is not detached, and fails with it.
    std::function<async::Awaitable<Result<>>(std::string cluster)> before;
    /// The answer to the write; also for a cluster that was detached already. Not called after a cancellation.
    std::function<void(const std::string& cluster, bool detached)> after;
  };

  /// Detaches the clusters: hubAcceptsClient false. Where agents receive the bootstrap kubeconfig by a ManifestWork,
  /// each cluster is detached only after its agent has applied that work.
  virtual async::Awaitable<Result<Outcome>> detach(MigrationRef migration, ClusterNames clusters,
                                                   OnDetach on_detach) = 0;
  /// All at once.
  async::Awaitable<Result<Outcome>> detach(MigrationRef migration, ClusterNames clusters) {
    return detach(std::move(migration), std::move(clusters), OnDetach{});
  }

  /// The same for clusters that were proven to be on the target: their agents have its bootstrap kubeconfig, and apply
  /// no work of this hub any more. Nothing is waited for.
  /// With `here_before`, a cluster whose claim was dropped meanwhile, and that nobody has claimed since, is claimed
  /// again, if this hub has had it since before that time: a later one may be another cluster of that name.
  virtual async::Awaitable<Result<Outcome>> detach_arrived(MigrationRef migration, ClusterNames clusters,
                                                           std::optional<async::WallTime> here_before) = 0;

  /// Proves now, on the target, that a cluster is there; an error says why it is not proven.
  using ConfirmArrival = std::function<async::Awaitable<Result<>>(std::string cluster)>;

  /// Called for each cluster that is gone from this hub; its namespace may not be yet.
  using OnDeletion = std::function<void(const std::string& cluster)>;

  /// Deletes clusters that arrived on the target; nothing is deprovisioned. Each is deleted only if it is still
  /// claimed, is not accepted here again, and `confirm` succeeds immediately before; and only in the version in which
  /// that was seen. One that the migration has claimed and never detached fails with cluster_attached if it is proven.
  /// Ends when they are gone, with their namespace, or at least all that was copied from it; one that finalizers hold
  /// fails.
  virtual async::Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters, ConfirmArrival confirm,
                                                  OnDeletion on_deletion) = 0;
  async::Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters, ConfirmArrival confirm) {
    return clean(std::move(migration), std::move(clusters), std::move(confirm), OnDeletion{});
  }

  /// Which of them could return to this hub: it has the cluster, the migration has claimed it, and it is not being
  /// deleted. Changes nothing.
  virtual async::Awaitable<Result<Outcome>> returnable(MigrationRef migration, ClusterNames clusters) = 0;

  /// Those that this hub has and accepts, for this migration or not. Changes nothing.
  virtual async::Awaitable<Result<ClusterNames>> accepted(ClusterNames clusters) = 0;

  /// Accepts clusters again that were detached; they stay claimed. Done: this hub has the cluster, accepts it, and is
  /// not deleting it.
  virtual async::Awaitable<Result<Outcome>> accept(MigrationRef migration, ClusterNames clusters) = 0;

  /// Called for each cluster as it returns.
  using OnReturn = std::function<void(const std::string& cluster)>;

  /// Ends when each cluster is back: its agent has renewed its lease here after accept(), and it is Available. Woken by
  /// watch events; a caller that wants a timeout cancels it.
  virtual async::Awaitable<Result<Outcome>> await_returns(MigrationRef migration, ClusterNames clusters,
                                                          OnReturn on_return) = 0;

  /// Restarts the agents of clusters that this hub accepts again, on the clusters themselves, with the admin
  /// kubeconfigs that this hub has of them: a new process asks the hubs anew, this one first. Only if the user wants
  /// it.
  virtual async::Awaitable<Result<Outcome>> restart_agents(MigrationRef migration, ClusterNames clusters) = 0;

  /// Called for each cluster as its agent renews its lease.
  using OnRenewal = std::function<void(const std::string& cluster)>;

  /// Ends when the agent of each cluster has renewed its lease here after this call: seen as a change of the lease,
  /// whatever the clock of the agent says. Woken by watch events; a caller that wants a timeout cancels it.
  virtual async::Awaitable<Result<>> await_renewals(ClusterNames clusters, OnRenewal on_renewal) = 0;

  /// Removes the claim and all that came with it. From Stage::registering on, accepts each cluster again and waits
  /// until it is back first.
  virtual async::Awaitable<Result<Outcome>> roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) = 0;

  /// The clusters that the migration has claimed and not released, sorted: what a lost ledger is rebuilt from.
  virtual async::Awaitable<Result<ClusterNames>> claimed(MigrationRef migration) = 0;

  /// Deletes the migration's own objects: Secret, KlusterletConfig.
  virtual async::Awaitable<Result<>> delete_migration_objects(MigrationRef migration) = 0;
};

/// The operations, run directly on the hub's API server. Operations on clusters need Hub::run() beside them.
/// Lifetime: the returned object outlives its operations.
std::shared_ptr<SourceHub> make_source_hub(std::shared_ptr<Hub> hub);

}  // namespace hubferry::hubagent
