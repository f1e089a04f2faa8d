#include "hubagent/target_operations.hpp"
#include "hubferry/hubagent/agents.hpp"

namespace hubferry::hubagent {

namespace {

class TargetAgent final : public TargetHub {
 public:
  explicit TargetAgent(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}

  Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override {
    return validate_on_target(*hub_, std::move(migration), std::move(clusters));
  }
  Awaitable<Result<obs::Secret>> issue_token(MigrationRef migration, BootstrapIdentity identity) override {
    return hubagent::issue_token(*hub_, std::move(migration), std::move(identity));
  }
  Awaitable<Result<>> initialize(MigrationRef migration, BootstrapIdentity identity) override {
    return initialize_on_target(*hub_, std::move(migration), std::move(identity));
  }
  Awaitable<Result<Outcome>> deploy(MigrationRef migration, Bundle bundle) override {
    return hubagent::deploy(*hub_, std::move(migration), std::move(bundle));
  }
  Awaitable<Result<>> await_arrivals(MigrationRef migration, ClusterNames clusters, async::WallTime since,
                                     OnArrival on_arrival) override {
    return hubagent::await_arrivals(*hub_, std::move(migration), std::move(clusters), since, std::move(on_arrival));
  }
  Awaitable<Result<ClusterNames>> arrived(MigrationRef migration, ClusterNames clusters,
                                          async::WallTime since) override {
    return find_arrived(*hub_, std::move(migration), std::move(clusters), since);
  }
  Awaitable<Result<Outcome>> verify(MigrationRef migration, Bundle bundle) override {
    return hubagent::verify(*hub_, std::move(migration), std::move(bundle));
  }
  Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) override {
    return clean_on_target(*hub_, std::move(migration), std::move(clusters));
  }
  Awaitable<Result<Outcome>> roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) override {
    return roll_back_on_target(*hub_, std::move(migration), stage, std::move(clusters));
  }
  Awaitable<Result<>> delete_migration_objects(MigrationRef migration, BootstrapIdentity identity) override {
    return delete_target_objects(*hub_, std::move(migration), std::move(identity));
  }

 private:
  std::shared_ptr<Hub> hub_;
};

}  // namespace

ClusterNames names_of(const Bundle& bundle) {
  ClusterNames names;
  for (const auto& cluster : bundle.clusters) names.push_back(cluster.cluster);
  return names;
}

std::shared_ptr<TargetHub> make_target_hub(std::shared_ptr<Hub> hub) {
  return std::make_shared<TargetAgent>(std::move(hub));
}

}  // namespace hubferry::hubagent
