#include "hubs/connections.hpp"

namespace hubferry::hubs {

namespace {

using hubagent::BootstrapIdentity;
using hubagent::Bundle;
using hubagent::ClusterNames;
using hubagent::MigrationRef;
using hubagent::Outcome;

class ConnectedTarget final : public hubagent::TargetHub {
 public:
  ConnectedTarget(std::shared_ptr<const Connections> connections, std::string hub)
      : connections_(std::move(connections)), hub_(std::move(hub)) {}

  Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override {
    return on_hub<Outcome>(connections_, hub_,
                           [=](Connection& to) { return to.target->validate(migration, clusters); });
  }
  Awaitable<Result<obs::Secret>> issue_token(MigrationRef migration, BootstrapIdentity identity) override {
    return on_hub<obs::Secret>(connections_, hub_,
                               [=](Connection& to) { return to.target->issue_token(migration, identity); });
  }
  Awaitable<Result<>> initialize(MigrationRef migration, BootstrapIdentity identity) override {
    return on_hub<void>(connections_, hub_, [=](Connection& to) { return to.target->initialize(migration, identity); });
  }
  Awaitable<Result<Outcome>> deploy(MigrationRef migration, Bundle bundle) override {
    return on_hub<Outcome>(connections_, hub_, [=](Connection& to) { return to.target->deploy(migration, bundle); });
  }
  Awaitable<Result<>> await_arrivals(MigrationRef migration, ClusterNames clusters, async::WallTime since,
                                     OnArrival on_arrival) override {
    return on_hub<void>(connections_, hub_, [=](Connection& to) {
      return to.target->await_arrivals(migration, clusters, since, on_arrival);
    });
  }
  Awaitable<Result<ClusterNames>> arrived(MigrationRef migration, ClusterNames clusters,
                                          async::WallTime since) override {
    return on_hub<ClusterNames>(connections_, hub_,
                                [=](Connection& to) { return to.target->arrived(migration, clusters, since); });
  }
  Awaitable<Result<Outcome>> verify(MigrationRef migration, Bundle bundle) override {
    return on_hub<Outcome>(connections_, hub_, [=](Connection& to) { return to.target->verify(migration, bundle); });
  }
  Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) override {
    return on_hub<Outcome>(connections_, hub_, [=](Connection& to) { return to.target->clean(migration, clusters); });
  }
  Awaitable<Result<Outcome>> roll_back(MigrationRef migration, hubagent::Stage stage, ClusterNames clusters) override {
    return on_hub<Outcome>(connections_, hub_,
                           [=](Connection& to) { return to.target->roll_back(migration, stage, clusters); });
  }
  Awaitable<Result<>> delete_migration_objects(MigrationRef migration, BootstrapIdentity identity) override {
    return on_hub<void>(connections_, hub_,
                        [=](Connection& to) { return to.target->delete_migration_objects(migration, identity); });
  }

 private:
  std::shared_ptr<const Connections> connections_;
  std::string hub_;
};

}  // namespace

std::shared_ptr<hubagent::TargetHub> make_connected_target(std::shared_ptr<const Connections> connections,
                                                           std::string hub) {
  return std::make_shared<ConnectedTarget>(std::move(connections), std::move(hub));
}

}  // namespace hubferry::hubs
