#include <gmock/gmock.h>

#include "hubagent/content.hpp"
#include "hubferry/hubagent/agents.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::hubagent {
namespace {

using async::Awaitable;
using testing::IsEmpty;
using namespace std::chrono_literals;

/// Hubs that behave as hubs do, with clusters that have everything a cluster can have.
class WorldTest : public testing::Test {
 protected:
  WorldTest() {
    world_.spawn(hub1_->run());
    world_.spawn(hub2_->run());
    world_.run(world_.world().wait_settled());
  }
  ~WorldTest() override { world_.stop(); }

  std::shared_ptr<Hub> make_hub(const std::string& name) {
    auto api = world_.network().connect(world_.world().admin_config(name));
    return std::make_shared<Hub>(name, std::move(api), HubOptions{}, world_.env());
  }
  /// Without what hubs and clusters write on their own as time goes by.
  Content content(const std::string& hub) {
    auto all = content_of(world_.server(hub));
    std::erase_if(all, [](const auto& entry) { return entry.first.starts_with("Lease "); });
    return all;
  }

  const MigrationRef migration_{"default", "move", "uid-1"};
  const BootstrapIdentity identity_{ocm::names::addon_namespace, "move"};

  sim::VirtualWorld world_{sim::WorldOptions{.clusters = 30}};
  std::shared_ptr<Hub> hub1_ = make_hub("hub1");
  std::shared_ptr<Hub> hub2_ = make_hub("hub2");
  std::shared_ptr<Source> source_ = make_source_agent(hub1_);
  std::shared_ptr<Target> target_ = make_target_agent(hub2_);
};

// Initialize, deploy and roll back, on hubs whose own controllers are at work all the time: both are as before.
TEST_F(WorldTest, ThereAndBackLeavesNothingBehind) {
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
    auto granted = co_await target_->initialize(migration_, identity_);
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
    EXPECT_THAT(*here, IsEmpty()) << "nobody has let them go";
    auto undone = co_await target_->roll_back(migration_, Stage::deploying, names);
    CO_ASSERT_TRUE(undone);
    EXPECT_TRUE(undone->failed.empty());
    auto back = co_await source_->roll_back(migration_, Stage::deploying, names);
    CO_ASSERT_TRUE(back);
    EXPECT_TRUE(back->failed.empty());
    auto source_helpers = co_await source_->remove_helpers(migration_);
    auto target_helpers = co_await target_->remove_helpers(migration_, identity_);
    CO_ASSERT_TRUE(source_helpers && target_helpers);
    co_await world_.world().wait_settled();
  };
  world_.run(test());
  EXPECT_THAT(differences(source_before, content("hub1")), IsEmpty());
  EXPECT_THAT(differences(target_before, content("hub2")), IsEmpty());
}

// The hub's own controllers clear up behind a ManagedCluster, its namespace included; our order ends when that is done.
TEST_F(WorldTest, CleaningTheSourceEndsWhenTheHubHasForgottenTheCluster) {
  auto test = [&]() -> Awaitable<> {
    const ClusterNames names = world_.world().clusters();
    auto begun = co_await source_->initialize(migration_, names, obs::Secret{"kubeconfig"});
    auto released = co_await source_->release(migration_, names);
    CO_ASSERT_TRUE(begun && released);
    auto cleaned = co_await source_->clean(migration_, names);
    CO_ASSERT_TRUE(cleaned);
    EXPECT_EQ(cleaned->done.size(), 30U);
    EXPECT_EQ(world_.server("hub1").count(ocm::managed_clusters), 0U);
    co_await world_.world().wait_settled();
    for (const auto& name : names)
      EXPECT_FALSE(world_.server("hub1").object(kube::resources::namespaces, {{}, name})) << name;
  };
  world_.run(test());
}

}  // namespace
}  // namespace hubferry::hubagent
