#pragma once

#include <memory>

#include "hubagent/clusters.hpp"
#include "hubferry/hubagent/source_hub.hpp"
#include "hubferry/hubagent/target_hub.hpp"

/// The operations, run directly on the hub's API server. Each is defined in the file named beside it.
namespace hubferry::hubagent {

class DirectSourceHub final : public SourceHub {
 public:
  explicit DirectSourceHub(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}

  // source_validate.cpp
  Awaitable<Result<ClusterNames>> resolve_placement(std::string placement) override;
  Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override;
  Awaitable<Result<KlusterletConfigUses>> klusterlet_configs(MigrationRef migration, ClusterNames clusters) override;
  // claimed_clusters.cpp
  Awaitable<Result<ClusterNames>> claimed(MigrationRef migration) override;
  // source_initialize.cpp
  Awaitable<Result<Outcome>> initialize(MigrationRef migration, ClusterNames clusters,
                                        obs::Secret bootstrap_kubeconfig) override;
  Awaitable<Result<>> delete_migration_objects(MigrationRef migration) override;
  // source_collect.cpp
  Awaitable<Result<Outcome>> collect(MigrationRef migration, ClusterNames clusters, BundleSink sink) override;
  // source_detach.cpp
  Awaitable<Result<Outcome>> detach(MigrationRef migration, ClusterNames clusters, OnDetach on_detach) override;
  Awaitable<Result<Outcome>> detach_arrived(MigrationRef migration, ClusterNames clusters,
                                            std::optional<async::WallTime> here_before) override;
  // source_finish.cpp
  Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters, ConfirmArrival confirm,
                                   OnDeletion on_deletion) override;
  Awaitable<Result<Outcome>> roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) override;
  // source_return.cpp
  Awaitable<Result<Outcome>> returnable(MigrationRef migration, ClusterNames clusters) override;
  Awaitable<Result<ClusterNames>> accepted(ClusterNames clusters) override;
  Awaitable<Result<Outcome>> accept(MigrationRef migration, ClusterNames clusters) override;
  Awaitable<Result<Outcome>> await_returns(MigrationRef migration, ClusterNames clusters, OnReturn on_return) override;
  // agent_restart.cpp
  Awaitable<Result<Outcome>> restart_agents(MigrationRef migration, ClusterNames clusters) override;
  Awaitable<Result<>> await_renewals(ClusterNames clusters, OnRenewal on_renewal) override;

 private:
  std::shared_ptr<Hub> hub_;
};

class DirectTargetHub final : public TargetHub {
 public:
  explicit DirectTargetHub(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}

  // claimed_clusters.cpp
  Awaitable<Result<ClusterNames>> copied(MigrationRef migration) override;
  // target_initialize.cpp
  Awaitable<Result<obs::Secret>> issue_token(MigrationRef migration, BootstrapIdentity identity) override;
  Awaitable<Result<>> initialize(MigrationRef migration, BootstrapIdentity identity) override;
  Awaitable<Result<>> permit_registration(MigrationRef migration, BootstrapIdentity identity) override;
  Awaitable<Result<>> delete_migration_objects(MigrationRef migration, BootstrapIdentity identity) override;
  // target_deploy.cpp
  Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override;
  Awaitable<Result<Outcome>> check_klusterlet_configs(KlusterletConfigUses uses) override;
  Awaitable<Result<Outcome>> deploy(MigrationRef migration, Bundle bundle) override;
  Awaitable<Result<Outcome>> verify(MigrationRef migration, Bundle bundle) override;
  Awaitable<Result<Outcome>> complete(MigrationRef migration, Bundle bundle) override;
  // target_ready.cpp
  Awaitable<Result<Outcome>> await_ready(MigrationRef migration, ClusterNames clusters) override;
  // target_arrivals.cpp
  Awaitable<Result<>> await_arrivals(MigrationRef migration, ClusterNames clusters, async::WallTime since,
                                     OnArrival on_arrival) override;
  Awaitable<Result<Outcome>> arrived(MigrationRef migration, ClusterNames clusters, async::WallTime since) override;
  Awaitable<Result<Outcome>> adopt(MigrationRef migration, ClusterNames clusters, OnFound on_adopted) override;
  Awaitable<Result<Outcome>> find_registered(MigrationRef migration, ClusterNames clusters, OnFound on_found) override;
  Awaitable<Result<>> await_renewals(ClusterNames clusters, OnFound on_renewal) override;
  Awaitable<Result<>> confirm(MigrationRef migration, std::string cluster, async::WallTime since) override;
  // outdated_secrets.cpp
  Awaitable<Result<Outcome>> delete_outdated_secrets(MigrationRef migration, ClusterNames clusters) override;
  // target_finish.cpp
  Awaitable<Result<Outcome>> deny(MigrationRef migration, ClusterNames clusters,
                                  std::optional<async::WallTime> unless_alive_since) override;
  Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) override;
  Awaitable<Result<Outcome>> roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) override;

 private:
  std::shared_ptr<Hub> hub_;
};

}  // namespace hubferry::hubagent
