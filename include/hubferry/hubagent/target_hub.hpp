#pragma once

#include <functional>

#include "hubferry/hubagent/bundle.hpp"
#include "hubferry/kube/error.hpp"
#include "hubferry/obs/secret.hpp"

namespace hubferry::hubagent {

/// Who a cluster is when it first knocks at the target.
struct BootstrapIdentity {
  std::string ns;  // of the ServiceAccount on the target
  std::string name;

  /// "system:serviceaccount:<ns>:<name>"
  [[nodiscard]] std::string user() const { return "system:serviceaccount:" + ns + ":" + name; }
};

/// What can be asked of the hub that clusters come to. The rules of SourceHub hold: idempotent, parallel within the
/// hub's bound, errors are the hub's, failures the clusters', cancellation is terminal.
class TargetHub {
 public:
  virtual ~TargetHub() = default;

  /// No cluster of that name exists here (other than by this migration), nor a namespace of that name with anything in
  /// it that the move would overwrite.
  virtual async::Awaitable<kube::Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) = 0;

  /// A token for `identity`, whose ServiceAccount is created where missing: the way without ManagedServiceAccount.
  virtual async::Awaitable<kube::Result<obs::Secret>> issue_token(MigrationRef migration,
                                                                  BootstrapIdentity identity) = 0;

  /// Lets `identity` register clusters: RBAC, automatic approval where that is served.
  virtual async::Awaitable<kube::Result<>> initialize(MigrationRef migration, BootstrapIdentity identity) = 0;

  /// Creates the objects of a bundle. What exists and is not this migration's fails its cluster untouched.
  virtual async::Awaitable<kube::Result<Outcome>> deploy(MigrationRef migration, Bundle bundle) = 0;

  /// Called for each cluster as it arrives.
  using OnArrival = std::function<void(const std::string& cluster)>;

  /// Ends when every cluster has joined and is Available here by a sign of life later than `since`. Woken by watch
  /// events; whoever wants an end sooner cancels it.
  virtual async::Awaitable<kube::Result<>> await_arrivals(MigrationRef migration, ClusterNames clusters,
                                                          async::WallTime since, OnArrival on_arrival) = 0;

  /// Which of them are here now, by the same test: read from the server, not from memory.
  virtual async::Awaitable<kube::Result<ClusterNames>> arrived(MigrationRef migration, ClusterNames clusters,
                                                               async::WallTime since) = 0;

  /// Every object of the bundle is here with the content that was sent.
  virtual async::Awaitable<kube::Result<Outcome>> verify(MigrationRef migration, Bundle bundle) = 0;

  /// Takes the marks of the move off clusters that arrived.
  virtual async::Awaitable<kube::Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) = 0;

  /// Removes what this migration created for these clusters, and nothing else.
  virtual async::Awaitable<kube::Result<Outcome>> roll_back(MigrationRef migration, Stage stage,
                                                            ClusterNames clusters) = 0;

  /// Takes away the identity's rights, its automatic approval, and its ServiceAccount where it was ours.
  virtual async::Awaitable<kube::Result<>> delete_migration_objects(MigrationRef migration,
                                                                    BootstrapIdentity identity) = 0;
};

}  // namespace hubferry::hubagent
