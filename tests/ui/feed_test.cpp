#include "hubferry/ui/feed.hpp"

#include <gtest/gtest.h>

#include "app/status/migration_json.hpp"
#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/sim/virtual_world.hpp"

namespace hubferry::ui {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

sim::WorldOptions world_options() {
  sim::WorldOptions options;
  options.clusters = 20;
  // hubferry's own agents: they leave a target that does not register them, and no person is needed for that.
  options.upstream_agents = false;
  options.hub_connection_timeout = 10s;
  options.server.latency = sim::Latency::uniform(1ms, 15ms);
  return options;
}

/// The manager's controller and its page, in a world on virtual time; the page has no port.
class FeedTest : public testing::Test {
 protected:
  FeedTest() {
    world_.spawn(directory_.run());
    world_.spawn(controller_.run());
    world_.spawn(feed_.run());
  }
  ~FeedTest() override { world_.stop(); }

  void migrate() {
    const auto clusters = world_.world().clusters();
    json::object spec{{"from", "hub1"},
                      {"to", "hub2"},
                      {"includedManagedClusters", json::array(clusters.begin(), clusters.end())},
                      {"supportedConfigs", json::object{{"stageTimeout", "60s"}}}};
    json::object object{{"metadata", json::object{{"name", "move"}, {"namespace", "default"}}},
                        {"spec", std::move(spec)}};
    EXPECT_TRUE(world_.run(world_.api("global").create(migration::managed_cluster_migrations, std::move(object))));
  }
  json::object shown() {
    const auto migrations = console_.snapshot().at("migrations").as_array();
    return migrations.empty() ? json::object{} : migrations.front().as_object();
  }
  std::string states() { return json::value_to<std::string>(console_.clusters("default/move").at("states")); }
  std::shared_ptr<kube::Api> connect(const kube::ClientConfig& config) { return world_.network().connect(config); }
  static migration::ControllerOptions controller_options(Console& console) {
    migration::ControllerOptions options;
    options.on_arrival = [&console](const kube::Key& key, const std::string& cluster) { console.arrive(key, cluster); };
    return options;
  }
  static ConsoleOptions console_options() {
    ConsoleOptions options;
    options.address = "0";
    options.describe = app::migration_json;
    return options;
  }

  sim::VirtualWorld world_{world_options()};
  obs::Metrics metrics_;
  Console console_{world_.loop().executor(), world_.clock(), metrics_, console_options()};
  hubs::HubDirectory directory_{
      world_.api("global"),
      [this](const std::string&, const kube::ClientConfig& config) { return connect(config); },
      {},
      world_.env()};
  migration::Controller controller_{world_.api("global"), directory_, controller_options(console_), world_.env()};
  Feed feed_{world_.api("global"), console_, "", world_.env()};
};

TEST_F(FeedTest, ClustersAreShownAsTheyArriveNotWhenAllHave) {
  migrate();
  bool some = false;
  for (int step = 0; step < 3000 && (!shown().contains("ended") || !shown().at("ended").as_bool()); ++step) {
    world_.run_for(50ms);
    const auto now = console_.clusters("default/move").empty() ? "" : states();
    some = some || (now.find('d') != std::string::npos && now.find('m') != std::string::npos);
  }
  EXPECT_TRUE(some);
  EXPECT_EQ(shown().at("phase"), "Completed");
  EXPECT_EQ(states(), std::string(20, 'd'));
  EXPECT_EQ(shown().at("counts").at("migrated"), 20);
}

TEST_F(FeedTest, ARollbackIsShownForEachClusterFromTheLedger) {
  world_.server("hub2").faults().on({.verb = "create", .resource = "certificatesigningrequests"}).always().fail(422);
  migrate();
  for (int step = 0; step < 600 && (!shown().contains("ended") || !shown().at("ended").as_bool()); ++step)
    world_.run_for(1s);
  world_.run_for(3s);
  EXPECT_EQ(shown().at("phase"), "Failed");
  EXPECT_EQ(states(), std::string(20, 'r'));
}

TEST_F(FeedTest, ADeletedMigrationLeavesThePage) {
  migrate();
  world_.run_for(5min);
  ASSERT_FALSE(shown().empty());
  EXPECT_TRUE(world_.run(world_.api("global").remove(migration::managed_cluster_migrations, {"default", "move"})));
  world_.run_for(1min);
  EXPECT_TRUE(shown().empty());
}

}  // namespace
}  // namespace hubferry::ui
