#include "hubagent/source_operations.hpp"
#include "hubferry/hubagent/agents.hpp"

namespace hubferry::hubagent {

namespace {

class SourceAgent final : public SourceHub {
 public:
  explicit SourceAgent(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}

  Awaitable<Result<ClusterNames>> resolve_placement(std::string placement) override {
    return hubagent::resolve_placement(*hub_, std::move(placement));
  }
  Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override {
    return validate_on_source(*hub_, std::move(migration), std::move(clusters));
  }
  Awaitable<Result<Outcome>> initialize(MigrationRef migration, ClusterNames clusters,
                                        obs::Secret bootstrap_kubeconfig) override {
    return initialize_on_source(*hub_, std::move(migration), std::move(clusters), std::move(bootstrap_kubeconfig));
  }
  Awaitable<Result<Outcome>> collect(MigrationRef, ClusterNames clusters, BundleSink sink) override {
    return hubagent::collect(*hub_, std::move(clusters), std::move(sink));
  }
  Awaitable<Result<Outcome>> detach(MigrationRef migration, ClusterNames clusters) override {
    return detach_clusters(*hub_, std::move(migration), std::move(clusters));
  }
  Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) override {
    return clean_on_source(*hub_, std::move(migration), std::move(clusters));
  }
  Awaitable<Result<Outcome>> roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) override {
    return roll_back_on_source(*hub_, std::move(migration), stage, std::move(clusters));
  }
  Awaitable<Result<>> delete_migration_objects(MigrationRef migration) override {
    return delete_source_objects(*hub_, std::move(migration));
  }

 private:
  std::shared_ptr<Hub> hub_;
};

}  // namespace

std::shared_ptr<SourceHub> make_source_hub(std::shared_ptr<Hub> hub) {
  return std::make_shared<SourceAgent>(std::move(hub));
}

}  // namespace hubferry::hubagent
