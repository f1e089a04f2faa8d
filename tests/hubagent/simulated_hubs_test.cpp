#include <gmock/gmock.h>

#include "hubagent/content.hpp"
#include "hubferry/hubagent/hub.hpp"
#include "hubferry/hubagent/source_hub.hpp"
#include "hubferry/hubagent/target_hub.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::hubagent {
namespace {

namespace json = kube::json;
using async::Awaitable;
using testing::IsEmpty;
using namespace std::chrono_literals;

/// Hubs with their OCM controllers, and clusters with all carried kinds.
class WorldTest : public testing::Test {
 protected:
  explicit WorldTest(bool agents = false) : world_(options_of(agents)) {
    world_.spawn(hub1_->run());
    world_.spawn(hub2_->run());
    world_.run(world_.world().wait_settled());
  }
  ~WorldTest() override { world_.stop(); }

  static sim::WorldOptions options_of(bool agents) {
    sim::WorldOptions options;
    options.clusters = 30;
    options.agents = agents;
    // hubferry's own agents: they leave a target that does not register them, and no person is needed for that.
    options.upstream_agents = false;
    return options;
  }
  std::shared_ptr<Hub> make_hub(const std::string& name) {
    auto api = world_.network().connect(world_.world().admin_config(name));
    return std::make_shared<Hub>(name, std::move(api), HubOptions{}, world_.env());
  }
  /// Without what hubs and clusters write periodically.
  Content content(const std::string& hub) {
    auto all = content_of(world_.server(hub));
    std::erase_if(all, [](const auto& entry) { return entry.first.starts_with("Lease "); });
    return all;
  }

  const MigrationRef migration_{"default", "move", "uid-1"};
  const BootstrapIdentity identity_{ocm::names::addon_namespace, "move"};

  sim::VirtualWorld world_;
  std::shared_ptr<Hub> hub1_ = make_hub("hub1");
  std::shared_ptr<Hub> hub2_ = make_hub("hub2");
  std::shared_ptr<SourceHub> source_ = make_source_hub(hub1_);
  std::shared_ptr<TargetHub> target_ = make_target_hub(hub2_);
};

// Initialize, deploy and roll back, on hubs whose own controllers are running: both are as before.
TEST_F(WorldTest, ARollbackLeavesNothingBehind) {
  const auto source_before = content("hub1");
  const auto target_before = content("hub2");
  auto test = [&]() -> Awaitable<> {
    const auto names = world_.world().clusters();
    auto valid = co_await source_->validate(migration_, names);
    CO_ASSERT_TRUE(valid);
    EXPECT_EQ(valid->done.size(), 30U);
    auto free = co_await target_->validate(migration_, names);
    CO_ASSERT_TRUE(free);
    EXPECT_EQ(free->done.size(), 30U);
    auto granted = co_await target_->permit_registration(migration_, identity_);
    auto token = co_await target_->issue_token(migration_, identity_);
    auto begun = co_await source_->initialize(migration_, names, obs::Secret{"kubeconfig"});
    CO_ASSERT_TRUE(granted && token && begun);
    EXPECT_TRUE(begun->failed.empty());
    std::size_t deployed = 0;
    std::size_t verified = 0;
    BundleSink sink = [&](Bundle bundle) -> Awaitable<> {
      auto outcome = co_await target_->deploy(migration_, bundle);
      EXPECT_TRUE(outcome && outcome->failed.empty());
      if (outcome) deployed += outcome->done.size();
      co_await world_.clock().sleep_for(5s);
      auto compared = co_await target_->verify(migration_, bundle);
      EXPECT_TRUE(compared);
      if (compared) verified += compared->done.size();
      for (const auto& failure : compared->failed) ADD_FAILURE() << failure.message;
    };
    auto collected = co_await source_->collect(migration_, names, sink);
    CO_ASSERT_TRUE(collected);
    EXPECT_EQ(deployed, 30U);
    EXPECT_EQ(verified, 30U);
    auto here = co_await target_->arrived(migration_, names, world_.clock().wall_now());
    CO_ASSERT_TRUE(here);
    EXPECT_THAT(here->done, IsEmpty()) << "nobody has let them go";
    auto undone = co_await target_->roll_back(migration_, Stage::deploying, names);
    CO_ASSERT_TRUE(undone);
    EXPECT_TRUE(undone->failed.empty());
    auto back = co_await source_->roll_back(migration_, Stage::deploying, names);
    CO_ASSERT_TRUE(back);
    EXPECT_TRUE(back->failed.empty());
    auto source_deleted = co_await source_->delete_migration_objects(migration_);
    auto target_deleted = co_await target_->delete_migration_objects(migration_, identity_);
    CO_ASSERT_TRUE(source_deleted && target_deleted);
    co_await world_.world().wait_settled();
  };
  world_.run(test());
  EXPECT_THAT(differences(source_before, content("hub1")), IsEmpty());
  EXPECT_THAT(differences(target_before, content("hub2")), IsEmpty());
}

// The hub's own controllers clean up after a ManagedCluster, its namespace included; our operation ends when it is
// gone.
TEST_F(WorldTest, CleaningTheSourceEndsWhenTheClusterIsGone) {
  auto test = [&]() -> Awaitable<> {
    const ClusterNames names = world_.world().clusters();
    auto begun = co_await source_->initialize(migration_, names, obs::Secret{"kubeconfig"});
    CO_ASSERT_TRUE(begun);
    // There are no agents that would take the bootstrap kubeconfig first.
    for (const auto& name : names) {
      json::object denied{{"spec", json::object{{"hubAcceptsClient", false}}}};
      co_await world_.server("hub1").api().merge_patch(ocm::managed_clusters, {{}, name}, denied);
    }
    auto confirm = [](std::string) -> Awaitable<Result<>> { co_return Result<>{}; };
    auto cleaned = co_await source_->clean(migration_, names, confirm);
    CO_ASSERT_TRUE(cleaned);
    EXPECT_EQ(cleaned->done.size(), 30U);
    EXPECT_EQ(world_.server("hub1").count(ocm::managed_clusters), 0U);
    co_await world_.world().wait_settled();
    for (const auto& name : names)
      EXPECT_FALSE(world_.server("hub1").object(kube::resources::namespaces, {{}, name})) << name;
  };
  world_.run(test());
}

/// The same with the clusters' agents running.
class LivingWorldTest : public WorldTest {
 protected:
  LivingWorldTest() : WorldTest(true) {
    // All clusters have joined and are Available.
    world_.run_for(2min);
  }

  /// A bootstrap kubeconfig for hub2, as the manager creates it.
  Awaitable<obs::Secret> bootstrap_kubeconfig() {
    auto token = co_await target_->issue_token(migration_, identity_);
    EXPECT_TRUE(token);
    auto config = world_.network().address_of(world_.server("hub2"));
    if (token) config.token = token->reveal();
    co_return obs::Secret{kube::to_kubeconfig(config)};
  }

  /// Everything up to the moment before the clusters are detached.
  Awaitable<> prepare(ClusterNames names) {
    auto granted = co_await target_->permit_registration(migration_, identity_);
    auto kubeconfig = co_await bootstrap_kubeconfig();
    auto begun = co_await source_->initialize(migration_, names, kubeconfig);
    CO_ASSERT_TRUE(granted && begun);
    BundleSink sink = [&](Bundle bundle) -> Awaitable<> {
      auto outcome = co_await target_->deploy(migration_, std::move(bundle));
      EXPECT_TRUE(outcome && outcome->failed.empty());
    };
    auto collected = co_await source_->collect(migration_, names, sink);
    EXPECT_TRUE(collected && collected->failed.empty());
    // Time for the agents to get their new bootstrap kubeconfig.
    co_await world_.clock().sleep_for(1min);
  }
};

TEST_F(LivingWorldTest, ClustersMoveAndAreDeletedFromTheSource) {
  auto test = [&]() -> Awaitable<> {
    const ClusterNames names = world_.world().clusters();
    co_await prepare(names);
    const auto since = world_.clock().wall_now();
    auto detached = co_await source_->detach(migration_, names);
    CO_ASSERT_TRUE(detached);
    std::set<std::string> arrived;
    TargetHub::OnArrival on_arrival{[&](const std::string& name) { arrived.insert(name); }};
    auto waited = co_await target_->await_arrivals(migration_, names, since, on_arrival);
    CO_ASSERT_TRUE(waited);
    EXPECT_EQ(arrived.size(), 30U);
    auto here = co_await target_->arrived(migration_, names, since);
    CO_ASSERT_TRUE(here);
    EXPECT_EQ(here->done.size(), 30U);
    std::size_t verified = 0;
    BundleSink compare = [&](Bundle bundle) -> Awaitable<> {
      auto outcome = co_await target_->verify(migration_, std::move(bundle));
      CO_ASSERT_TRUE(outcome);
      verified += outcome->done.size();
      for (const auto& failure : outcome->failed) ADD_FAILURE() << failure.message;
    };
    auto compared = co_await source_->collect(migration_, names, compare);
    CO_ASSERT_TRUE(compared);
    EXPECT_EQ(verified, 30U);
    auto unmarked = co_await target_->clean(migration_, names);
    auto confirm = [&](std::string name) { return target_->confirm(migration_, std::move(name), since); };
    auto forgotten = co_await source_->clean(migration_, names, confirm);
    CO_ASSERT_TRUE(unmarked && forgotten);
    EXPECT_TRUE(unmarked->failed.empty() && forgotten->failed.empty());
    EXPECT_EQ(world_.server("hub1").count(ocm::managed_clusters), 0U);
    EXPECT_EQ(world_.world().agents().joined_at(world_.world().admin_config("hub2").server), 30U);
  };
  world_.run(test());
}

// The clusters cannot register on the target: they come back, which their renewed leases prove.
TEST_F(LivingWorldTest, DetachedClustersComeBack) {
  auto test = [&]() -> Awaitable<> {
    const ClusterNames names = world_.world().clusters();
    co_await prepare(names);
    auto detached = co_await source_->detach(migration_, names);
    CO_ASSERT_TRUE(detached);
    co_await world_.clock().sleep_for(5s);
    auto withdrawn = co_await target_->delete_migration_objects(migration_, identity_);
    CO_ASSERT_TRUE(withdrawn);
    auto undo = [&]() -> Awaitable<> {
      auto undone = co_await target_->roll_back(migration_, Stage::registering, names);
      EXPECT_TRUE(undone && undone->failed.empty());
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(undo());
      auto back = co_await source_->roll_back(migration_, Stage::registering, names);
      EXPECT_TRUE(back && back->failed.empty());
    };
    co_await async::with_scope(both);
    auto deleted = co_await source_->delete_migration_objects(migration_);
    EXPECT_TRUE(deleted);
    EXPECT_EQ(world_.world().agents().joined_at(world_.world().admin_config("hub1").server), 30U);
    EXPECT_EQ(world_.server("hub2").count(ocm::managed_clusters), 0U);
    auto valid = co_await source_->validate(migration_, names);
    CO_ASSERT_TRUE(valid);
    EXPECT_EQ(valid->done.size(), 30U) << "they could be moved again";
  };
  world_.run(test());
}

}  // namespace
}  // namespace hubferry::hubagent
