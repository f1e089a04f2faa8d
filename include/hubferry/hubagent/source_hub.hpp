#pragma once

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

  /// Detaches the clusters: hubAcceptsClient false. Where agents receive the bootstrap kubeconfig by a ManifestWork,
  /// each cluster is detached only after its agent has applied that work.
  virtual async::Awaitable<Result<Outcome>> detach(MigrationRef migration, ClusterNames clusters) = 0;

  /// Deletes clusters that arrived on the target and were verified; nothing is deprovisioned. Ends when they are gone,
  /// with their namespace, or at least all that was copied from it.
  virtual async::Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) = 0;

  /// Returns clusters to this hub. From Stage::registering on, ends when each is Available here again.
  virtual async::Awaitable<Result<Outcome>> roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) = 0;

  /// Deletes the migration's own objects: Secret, KlusterletConfig.
  virtual async::Awaitable<Result<>> delete_migration_objects(MigrationRef migration) = 0;
};

/// The operations, run directly on the hub's API server. Operations on clusters need Hub::run() beside them.
/// Lifetime: the returned object outlives its operations.
std::shared_ptr<SourceHub> make_source_hub(std::shared_ptr<Hub> hub);

}  // namespace hubferry::hubagent
