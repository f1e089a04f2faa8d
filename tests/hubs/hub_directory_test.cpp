#include "hubferry/hubs/hub_directory.hpp"

#include <gmock/gmock.h>

#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::hubs {
namespace {

namespace json = kube::json;
using async::Awaitable;
using kube::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

const hubagent::MigrationRef migration{"default", "move", "uid-1"};

class HubDirectoryTest : public testing::Test {
 protected:
  HubDirectoryTest() {
    world_.spawn(directory_.run());
    world_.run_for(1s);
  }
  ~HubDirectoryTest() override { world_.stop(); }

  kube::Api& global() { return world_.global().api(); }

  Awaitable<> put_secret(std::string hub, std::string kubeconfig) {
    json::object patch;
    patch["data"] = json::object{{"kubeconfig", kube::encode_base64(kubeconfig)}};
    auto patched = co_await global().merge_patch(kube::resources::secrets, {hub, "hub-kubeconfig"}, patch);
    EXPECT_TRUE(patched) << patched.error();
    co_await world_.clock().sleep_for(1s);
  }
  double hubs(const char* way) {
    return world_.env()
        .metrics.gauge_family("hubferry_hubs", "Hubs that the global hub knows, by the way to them.", {"way"})
        .with({way})
        .value();
  }

  sim::VirtualWorld world_{sim::WorldOptions{.hubs = {"hub1", "hub2"}, .clusters = 3}};
  std::vector<std::string> connected_;
  Connect connect_ = [this](const std::string& hub, const kube::ClientConfig& config) {
    connected_.push_back(hub);
    return world_.network().connect(config);
  };
  HubDirectory directory_{
      global(), connect_, {.hub = {}, .global_server = "https://global", .global_ca_pem = "CA"}, world_.env()};
};

TEST_F(HubDirectoryTest, HubsAreFoundWithTheirWay) {
  auto test = [&]() -> Awaitable<> {
    auto hub1 = co_await directory_.find("hub1");
    EXPECT_TRUE(hub1.exists && hub1.available && hub1.is_hub);
    EXPECT_THAT(hub1.server_url, HasSubstr("hub1"));
    EXPECT_THAT(hub1.ca_pem, HasSubstr("BEGIN CERTIFICATE"));
    auto none = co_await directory_.find("nowhere");
    EXPECT_FALSE(none.exists || none.available || none.is_hub);
    EXPECT_THAT(connected_, testing::UnorderedElementsAre("hub1", "hub2"));
    EXPECT_EQ(hubs("direct"), 2);
    EXPECT_EQ(hubs("none"), 0);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, OrdersReachTheHub) {
  auto test = [&]() -> Awaitable<> {
    auto source = directory_.source("hub1");
    CO_ASSERT_TRUE(source);
    auto outcome = co_await (*source)->initialize(migration, world_.world().clusters(), obs::Secret{"kubeconfig"});
    CO_ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->done.size(), 3U);
    EXPECT_TRUE(world_.server("hub1").object(ocm::klusterlet_configs, {{}, "migration-move"}));
    auto target = directory_.target("hub2");
    CO_ASSERT_TRUE(target);
    auto validated = co_await (*target)->validate(migration, {"new"});
    CO_ASSERT_TRUE(validated);
    EXPECT_THAT(validated->done, ElementsAre("new"));
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, WhoeverAsksForAHubThatCannotBeReachedLearnsWhatToDo) {
  auto test = [&]() -> Awaitable<> {
    auto unknown = directory_.source("nowhere");
    CO_ASSERT_TRUE(!unknown);
    EXPECT_EQ(unknown.error().kind, ErrorKind::not_found);
    auto kept = directory_.target("hub2");
    CO_ASSERT_TRUE(kept);
    co_await global().remove(kube::resources::secrets, {"hub2", "hub-kubeconfig"});
    co_await world_.clock().sleep_for(1s);
    auto gone = directory_.target("hub2");
    CO_ASSERT_TRUE(!gone);
    EXPECT_EQ(gone.error().kind, ErrorKind::unreachable);
    EXPECT_THAT(gone.error().message, HasSubstr("create a Secret in namespace hub2"));
    auto late = co_await (*kept)->validate(migration, {});
    CO_ASSERT_TRUE(!late);
    EXPECT_EQ(late.error().kind, ErrorKind::unreachable);
    EXPECT_EQ(hubs("direct"), 1);
    EXPECT_EQ(hubs("none"), 1);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, AKubeconfigThatCannotBeUsedIsToldWithoutItsContent) {
  auto test = [&]() -> Awaitable<> {
    const auto good = kube::to_kubeconfig(world_.world().admin_config("hub1"));
    for (const std::string text : {"token: hunter2: oops", "", "a"}) {
      co_await put_secret("hub1", text);
      auto source = directory_.source("hub1");
      CO_ASSERT_TRUE(!source);
      EXPECT_THAT(source.error().message, HasSubstr("Secret hub1/hub-kubeconfig"));
      EXPECT_THAT(source.error().message, testing::Not(HasSubstr("hunter2")));
    }
    co_await put_secret("hub1", good);
    EXPECT_TRUE(directory_.source("hub1"));
  };
  world_.run(test());
}

// A rotated credential must not fail what is under way: the order is given again on the new connection.
TEST_F(HubDirectoryTest, AnOrderUnderWaySurvivesAChangeOfTheSecret) {
  auto test = [&]() -> Awaitable<> {
    auto source = directory_.source("hub1");
    CO_ASSERT_TRUE(source);
    const auto clusters = world_.world().clusters();
    world_.server("hub1").faults().on({"update", "managedclusters"}).times(3).delay(sim::Latency::fixed(1h));
    std::optional<kube::Result<hubagent::Outcome>> outcome;
    auto order = [&]() -> Awaitable<> {
      outcome = co_await (*source)->initialize(migration, clusters, obs::Secret{"kubeconfig"});
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(order());
      co_await world_.clock().sleep_for(5s);
      EXPECT_FALSE(outcome);
      co_await put_secret("hub1", kube::to_kubeconfig(world_.world().admin_config("hub1")) + "\n");
      co_await world_.clock().sleep_for(30s);
      CO_ASSERT_TRUE(outcome.has_value());
      CO_ASSERT_TRUE(*outcome);
      EXPECT_EQ((*outcome)->done.size(), 3U);
      scope.stop();
    };
    co_await async::with_scope(both);
    EXPECT_THAT(connected_, testing::UnorderedElementsAre("hub1", "hub2", "hub1"));
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, WhetherAHubAnswersIsAMetric) {
  auto reachable = [&] {
    return world_.env()
        .metrics.gauge_family("hubferry_hub_reachable", "Whether a hub answered when it was last asked.", {"hub"})
        .with({"hub1"})
        .value();
  };
  auto test = [&]() -> Awaitable<> {
    EXPECT_EQ(reachable(), 1);
    auto source = directory_.source("hub1");
    CO_ASSERT_TRUE(source);
    world_.server("hub1").outage(true);
    auto asked = co_await (*source)->validate(migration, {});
    EXPECT_FALSE(asked);
    EXPECT_EQ(reachable(), 0);
    world_.server("hub1").outage(false);
    auto again = co_await (*source)->validate(migration, {});
    EXPECT_TRUE(again);
    EXPECT_EQ(reachable(), 1);
    co_await global().remove(kube::resources::secrets, {"hub1", "hub-kubeconfig"});
    co_await world_.clock().sleep_for(1s);
    EXPECT_EQ(reachable(), 0);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, LocalClusterIsTheGlobalHubItself) {
  auto test = [&]() -> Awaitable<> {
    json::object cluster;
    cluster["metadata"] = json::object{{"name", "local"}, {"labels", json::object{{"local-cluster", "true"}}}};
    cluster["spec"] = json::object{{"hubAcceptsClient", true}};
    auto made = co_await global().create(ocm::managed_clusters, cluster);
    CO_ASSERT_TRUE(made);
    co_await world_.clock().sleep_for(1s);
    auto info = co_await directory_.find("local");
    EXPECT_TRUE(info.exists && info.available && info.is_hub);
    EXPECT_EQ(info.server_url, "https://global");
    EXPECT_EQ(info.ca_pem, "CA");
    auto source = directory_.source("local");
    CO_ASSERT_TRUE(source);
    auto outcome = co_await (*source)->validate(migration, {"local", "hub1", "other"});
    CO_ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->failed.size(), 3U) << "itself, a hub, and one that is not there";
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, AClusterThatIsNoHubIsNone) {
  auto test = [&]() -> Awaitable<> {
    json::object cluster;
    cluster["metadata"] = json::object{{"name", "plain"}};
    cluster["spec"] = json::object{{"hubAcceptsClient", true}};
    auto made = co_await global().create(ocm::managed_clusters, cluster);
    CO_ASSERT_TRUE(made);
    co_await world_.clock().sleep_for(1s);
    auto info = co_await directory_.find("plain");
    EXPECT_TRUE(info.exists);
    EXPECT_FALSE(info.is_hub);
    EXPECT_FALSE(directory_.source("plain"));
  };
  world_.run(test());
}

// When the manager stops, nobody may hang on an order to a hub.
TEST_F(HubDirectoryTest, OrdersUnderWayEndWithTheDirectory) {
  HubDirectory second{global(), connect_, {}, world_.env()};
  auto test = [&]() -> Awaitable<> {
    EXPECT_FALSE(second.source("hub1")) << "nobody has looked yet";
    std::optional<kube::Result<>> waited;
    std::shared_ptr<hubagent::TargetHub> target;
    auto wait = [&]() -> Awaitable<> {
      waited = co_await target->await_arrivals(migration, {"c"}, world_.clock().wall_now(), [](const std::string&) {});
    };
    auto outer = [&](async::TaskScope& scope) -> Awaitable<> {
      auto inner = [&](async::TaskScope& life) -> Awaitable<> {
        life.spawn(second.run());
        co_await world_.clock().sleep_for(1s);
        auto found = second.target("hub2");
        CO_ASSERT_TRUE(found);
        target = *found;
        scope.spawn(wait());
        co_await world_.clock().sleep_for(10s);
        EXPECT_FALSE(waited);
        life.stop();
      };
      co_await async::with_scope(inner);
    };
    co_await async::with_scope(outer);
    CO_ASSERT_TRUE(waited.has_value());
    EXPECT_FALSE(*waited);
    EXPECT_THAT(waited->error().message, HasSubstr("stopping"));
    EXPECT_FALSE(second.source("hub1"));
  };
  world_.run(test());
}

}  // namespace
}  // namespace hubferry::hubs
