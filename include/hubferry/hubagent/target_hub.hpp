#pragma once

#include <functional>

#include "hubferry/hubagent/bundle.hpp"
#include "hubferry/hubagent/outcome.hpp"
#include "hubferry/obs/secret.hpp"

namespace hubferry::hubagent {

class Hub;

/// The ServiceAccount on the target that clusters bootstrap with.
struct BootstrapIdentity {
  std::string ns;
  std::string name;

  /// "system:serviceaccount:<ns>:<name>"
  [[nodiscard]] std::string user() const { return "system:serviceaccount:" + ns + ":" + name; }
};

/// The operations on the hub that clusters move to. The contract of SourceHub holds: idempotent, parallel within the
/// hub's limit, a cluster's failure is in the Outcome, cancellation is terminal.
class TargetHub {
 public:
  virtual ~TargetHub() = default;

  /// No cluster of that name exists here (other than by this migration), and its namespace, if there is one, has no
  /// object that the migration would overwrite.
  virtual async::Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) = 0;

  /// This hub has the KlusterletConfigs that the clusters refer to.
  virtual async::Awaitable<Result<Outcome>> check_klusterlet_configs(KlusterletConfigUses uses) = 0;

  /// A token for `identity`, whose ServiceAccount is created if missing: for hubs without ManagedServiceAccount.
  virtual async::Awaitable<Result<obs::Secret>> issue_token(MigrationRef migration, BootstrapIdentity identity) = 0;

  /// Prepares this hub for `identity`: it may review its own permissions, but not register clusters yet.
  virtual async::Awaitable<Result<>> initialize(MigrationRef migration, BootstrapIdentity identity) = 0;

  /// Lets `identity` register clusters, by RBAC. Until then an agent that loses the source cannot register here, where
  /// no copy of its cluster is yet. Their certificate requests are approved by await_arrivals().
  virtual async::Awaitable<Result<>> permit_registration(MigrationRef migration, BootstrapIdentity identity) = 0;

  /// Creates the objects of a bundle. An object that exists and is not this migration's is left untouched, and its
  /// cluster fails.
  virtual async::Awaitable<Result<Outcome>> deploy(MigrationRef migration, Bundle bundle) = 0;

  /// Waits until this hub has shown that it takes these clusters: the identity may register, and the hub's controllers
  /// have accepted each copy and, with an import controller, prepared its import. A cluster that has registered here by
  /// itself, since its copy was deleted, becomes the migration's own. One that the hub does not take in time
  /// fails, and must not be detached: an agent in the middle of a registration cannot be reached from the source.
  virtual async::Awaitable<Result<Outcome>> await_ready(MigrationRef migration, ClusterNames clusters) = 0;

  /// Called for each cluster.
  struct OnArrival {
    std::function<void(const std::string& cluster)> arrived;
    /// Its agent is here: joined, Available, and its lease renewed. The cluster has a hub again, and waits no more
    /// than that it would come back here after a restart. Before `arrived`, possibly several times. May be null.
    std::function<void(const std::string& cluster)> joined = nullptr;
  };

  /// Ends when every cluster has joined, is Available, and its agent has renewed its lease here after `since`, and, on
  /// a hub with an import controller, its agent has this hub's own bootstrap kubeconfig and is alive with it: the
  /// cluster would come back here if its agent restarted. Approves the certificate requests of the migration's identity
  /// for these clusters meanwhile, and lets the import controller finish with each that has joined. Woken by watch
  /// events; a caller that wants a timeout cancels it.
  virtual async::Awaitable<Result<>> await_arrivals(MigrationRef migration, ClusterNames clusters,
                                                    async::WallTime since, OnArrival on_arrival) = 0;

  /// Which of them have arrived, by the same criteria: read from the API server, not from the cache. The others fail:
  /// cluster_not_available or cluster_not_found are known not to be here; with works_not_applied or cluster_unhealthy
  /// the agent is here, and has renewed its lease after `since`; of any other it is not known. Changes nothing.
  virtual async::Awaitable<Result<Outcome>> arrived(MigrationRef migration, ClusterNames clusters,
                                                    async::WallTime since) = 0;

  /// Called for each cluster that is meant.
  using OnFound = std::function<void(const std::string& cluster)>;

  /// Makes those the migration's own that have registered here by themselves, with its credential and without a copy;
  /// `on_adopted` is called for each. arrived() judges it from then on. Done: all of which it is known.
  virtual async::Awaitable<Result<Outcome>> adopt(MigrationRef migration, ClusterNames clusters,
                                                  OnFound on_adopted) = 0;

  /// Calls `on_found` for each of them whose agent has registered here, or has begun to, with the migration's
  /// credential: it may not be on the source any more. Done: all of which it is known. Changes nothing.
  virtual async::Awaitable<Result<Outcome>> find_registered(MigrationRef migration, ClusterNames clusters,
                                                            OnFound on_found) = 0;

  /// As SourceHub::await_renewals(), here.
  virtual async::Awaitable<Result<>> await_renewals(ClusterNames clusters, OnFound on_renewal) = 0;

  /// As arrived(), for one cluster, immediately before it is deleted from the source: three requests, none from a
  /// cache.
  virtual async::Awaitable<Result<>> confirm(MigrationRef migration, std::string cluster, async::WallTime since) = 0;

  /// Every object of the bundle is here with the content that was sent.
  virtual async::Awaitable<Result<Outcome>> verify(MigrationRef migration, Bundle bundle) = 0;

  /// For clusters that clean() has released to this hub's controllers, which change their objects: every object of the
  /// bundle is here. What somebody has deleted is created again; what is here is not changed.
  virtual async::Awaitable<Result<Outcome>> complete(MigrationRef migration, Bundle bundle) = 0;

  /// Removes the migration's annotations and pauses from clusters that arrived.
  virtual async::Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) = 0;

  /// Deletes from clusters that are this hub's alone what the source's import controller has left on them: the Secrets
  /// with the bootstrap kubeconfigs of the migration and of the source. By a ManifestWork, where we may create one and
  /// the cluster has a work agent. Failed: those on which they stay, with the reason.
  virtual async::Awaitable<Result<Outcome>> delete_outdated_secrets(MigrationRef migration, ClusterNames clusters) = 0;

  /// Denies clusters that this migration created here: an agent that registers, or has registered, leaves again.
  /// Its machines' copies are paused: after clean() this hub's controllers acted on them. With `unless_alive_since`,
  /// one whose agent has joined and renewed its lease after that time stays accepted, and fails: with this hub's
  /// klusterlet work an agent knows no other hub.
  virtual async::Awaitable<Result<Outcome>> deny(MigrationRef migration, ClusterNames clusters,
                                                 std::optional<async::WallTime> unless_alive_since) = 0;

  /// Deletes what this migration created for these clusters, and nothing else. In Stage::deploying, whose clusters were
  /// not detached, the copy of one whose agent has registered here after all stays, and the cluster fails.
  virtual async::Awaitable<Result<Outcome>> roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) = 0;

  /// The clusters of which the migration has created a copy here, sorted: what a lost ledger is rebuilt from.
  virtual async::Awaitable<Result<ClusterNames>> copied(MigrationRef migration) = 0;

  /// Deletes the migration's own objects: the identity's RBAC, and its ServiceAccount if it was ours.
  virtual async::Awaitable<Result<>> delete_migration_objects(MigrationRef migration, BootstrapIdentity identity) = 0;
};

/// As make_source_hub().
std::shared_ptr<TargetHub> make_target_hub(std::shared_ptr<Hub> hub);

}  // namespace hubferry::hubagent
