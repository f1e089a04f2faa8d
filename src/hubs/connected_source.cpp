#include "hubs/connections.hpp"

namespace hubferry::hubs {

namespace {

using hubagent::ClusterNames;
using hubagent::MigrationRef;
using hubagent::Outcome;

class ConnectedSource final : public hubagent::SourceHub {
 public:
  ConnectedSource(std::shared_ptr<const Connections> connections, std::string hub)
      : connections_(std::move(connections)), hub_(std::move(hub)) {}

  Awaitable<Result<ClusterNames>> resolve_placement(std::string placement) override {
    return on_hub<ClusterNames>(connections_, hub_,
                                [=](Connection& to) { return to.source->resolve_placement(placement); });
  }
  Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override {
    return on_hub<Outcome>(connections_, hub_,
                           [=](Connection& to) { return to.source->validate(migration, clusters); });
  }
  Awaitable<Result<Outcome>> initialize(MigrationRef migration, ClusterNames clusters,
                                        obs::Secret bootstrap_kubeconfig) override {
    return on_hub<Outcome>(connections_, hub_, [=](Connection& to) {
      return to.source->initialize(migration, clusters, bootstrap_kubeconfig);
    });
  }
  Awaitable<Result<Outcome>> collect(MigrationRef migration, ClusterNames clusters,
                                     hubagent::BundleSink sink) override {
    return on_hub<Outcome>(connections_, hub_,
                           [=](Connection& to) { return to.source->collect(migration, clusters, sink); });
  }
  Awaitable<Result<Outcome>> detach(MigrationRef migration, ClusterNames clusters) override {
    return on_hub<Outcome>(connections_, hub_, [=](Connection& to) { return to.source->detach(migration, clusters); });
  }
  Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) override {
    return on_hub<Outcome>(connections_, hub_, [=](Connection& to) { return to.source->clean(migration, clusters); });
  }
  Awaitable<Result<Outcome>> roll_back(MigrationRef migration, hubagent::Stage stage, ClusterNames clusters) override {
    return on_hub<Outcome>(connections_, hub_,
                           [=](Connection& to) { return to.source->roll_back(migration, stage, clusters); });
  }
  Awaitable<Result<>> delete_migration_objects(MigrationRef migration) override {
    return on_hub<void>(connections_, hub_,
                        [=](Connection& to) { return to.source->delete_migration_objects(migration); });
  }

 private:
  std::shared_ptr<const Connections> connections_;
  std::string hub_;
};

}  // namespace

std::shared_ptr<hubagent::SourceHub> make_connected_source(std::shared_ptr<const Connections> connections,
                                                           std::string hub) {
  return std::make_shared<ConnectedSource>(std::move(connections), std::move(hub));
}

}  // namespace hubferry::hubs
