#pragma once

#include "hubferry/hubagent/bundle.hpp"
#include "hubferry/kube/error.hpp"
#include "hubferry/obs/secret.hpp"

namespace hubferry::hubagent {

/// What can be asked of the hub that clusters leave. The seam between a migration and a hub: in-process the hub's
/// agent implements it, and a messenger to an agent elsewhere can.
///
/// Every order is idempotent: asked again, after a crash or without need, it finishes what is unfinished and gives the
/// same answer. Orders treat clusters in parallel, bounded per hub over all migrations.
/// Errors: the hub as a whole could not be asked (unreachable, forbidden). What concerns one cluster is in the Outcome.
/// Cancellation: terminal, at any point; a repeated order completes what was begun.
class SourceHub {
 public:
  virtual ~SourceHub() = default;

  /// The clusters that a Placement selected, sorted, without duplicates. Invalid or not_found where there is none.
  virtual async::Awaitable<kube::Result<ClusterNames>> resolve_placement(std::string placement) = 0;

  /// Each exists, is Available, is neither local-cluster, nor Hosted, nor a hub itself, and is in no other migration's
  /// hands.
  virtual async::Awaitable<kube::Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) = 0;

  /// Lays the way to the target out: bootstrap Secret, KlusterletConfig, annotations; pauses what would act on its own.
  virtual async::Awaitable<kube::Result<Outcome>> initialize(MigrationRef migration, ClusterNames clusters,
                                                             obs::Secret bootstrap_kubeconfig) = 0;

  /// Hands all that travels to `sink`, in bundles. Ends when the last sink call has ended.
  virtual async::Awaitable<kube::Result<Outcome>> collect(MigrationRef migration, ClusterNames clusters,
                                                          BundleSink sink) = 0;

  /// Lets the clusters go: hubAcceptsClient false. Where agents are told of the target by a ManifestWork, each cluster
  /// is let go only when its agent has applied that.
  virtual async::Awaitable<kube::Result<Outcome>> detach(MigrationRef migration, ClusterNames clusters) = 0;

  /// Removes clusters that arrived and were verified: nothing is deprovisioned. Ends when they are gone.
  virtual async::Awaitable<kube::Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) = 0;

  /// Gives clusters back to this hub. From Stage::registering on, ends when each is Available here again.
  virtual async::Awaitable<kube::Result<Outcome>> roll_back(MigrationRef migration, Stage stage,
                                                            ClusterNames clusters) = 0;

  /// Takes away the migration's own objects: Secret, KlusterletConfig.
  virtual async::Awaitable<kube::Result<>> delete_migration_objects(MigrationRef migration) = 0;
};

}  // namespace hubferry::hubagent
