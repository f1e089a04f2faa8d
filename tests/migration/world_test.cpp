#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>

#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "snapshot.hpp"

/// The real controller and hub operations on simulated hubs with real klusterlets, on virtual time.
namespace hubferry::migration::test {
namespace {

namespace json = boost::json;
using async::Awaitable;
using hubagent::ClusterNames;
using namespace std::chrono_literals;

sim::WorldOptions options_of(std::size_t clusters, std::uint64_t seed, bool accounts,
                             sim::ImportController import_controller) {
  sim::WorldOptions options;
  options.clusters = clusters;
  options.seed = seed;
  options.managed_service_accounts = accounts;
  options.import_controller = import_controller;
  // Between any two requests there is a moment at which something can happen.
  options.server.latency = sim::Latency::uniform(1ms, 15ms);
  return options;
}

class WholeWorld {
 public:
  explicit WholeWorld(std::size_t clusters, std::uint64_t seed = 1, bool accounts = true,
                      sim::ImportController import_controller = sim::ImportController::mce_2_17)
      : world(options_of(clusters, seed, accounts, import_controller)) {
    world.run(world.world().wait_settled());
  }
  ~WholeWorld() { stop_manager(); }

  /// The parts of the manager. May be stopped at any point, and started again.
  void start_manager() { manager_ = std::make_unique<Manager>(*this); }
  void stop_manager() {
    if (!manager_) return;
    world.run(manager_->end());
    manager_.reset();
  }

  void migrate(const std::string& name, const ClusterNames& clusters, const std::string& from = "hub1",
               const std::string& to = "hub2") {
    json::object spec{
        {"from", from}, {"to", to}, {"includedManagedClusters", json::array(clusters.begin(), clusters.end())}};
    json::object object{{"metadata", json::object{{"name", name}, {"namespace", "default"}}},
                        {"spec", std::move(spec)}};
    auto created = world.run(world.api("global").create(managed_cluster_migrations, std::move(object)));
    EXPECT_TRUE(created) << created.error();
  }
  std::string phase(const std::string& name) {
    const auto object = world.global().object(managed_cluster_migrations, {"default", name});
    return object ? std::string{object->string_at({"status", "phase"})} : "gone";
  }
  std::string describe(const std::string& name) {
    const auto object = world.global().object(managed_cluster_migrations, {"default", name});
    return object ? json::serialize(*object->find({"status"})) : "gone";
  }
  /// Until all of them have ended.
  void run_until_ended(const std::vector<std::string>& names, async::Duration limit = 2h) {
    const auto end = world.clock().now() + limit;
    const auto ended = [&](const std::string& name) {
      return phase(name) == "Completed" || phase(name) == "Failed" || phase(name) == "gone";
    };
    while (!std::ranges::all_of(names, ended) && world.clock().now() < end) world.run_for(1s);
  }
  bool is_available(const std::string& hub, const std::string& cluster) {
    const auto object = world.server(hub).object(ocm::managed_clusters, {"", cluster});
    return object && kube::is_condition_true(*object, ocm::names::available);
  }
  bool exists(const std::string& hub, const std::string& cluster) {
    return world.server(hub).object(ocm::managed_clusters, {"", cluster}).has_value();
  }
  /// As a new pod: with what the cluster has stored, and nothing else.
  void restart_agent(const std::string& cluster) {
    auto& agents = world.world().agents();
    const auto* store = agents.store_of(cluster);
    sim::FleetMember again{cluster, store->bootstraps(), store->secret()};
    EXPECT_TRUE(agents.remove(cluster));
    world.run_for(1s);
    agents.add(std::move(again));
  }
  std::string renewal(const std::string& hub, const std::string& cluster) {
    const auto lease = world.server(hub).object(kube::resources::leases, ocm::lease_key(cluster));
    return lease ? std::string{lease->string_at({"spec", "renewTime"})} : "";
  }
  Snapshot snapshot(const std::string& server) { return world.run(take_snapshot(world.api(server))); }

  sim::VirtualWorld world;

 private:
  struct Manager {
    explicit Manager(WholeWorld& whole)
        : hubs(
              whole.world.api("global"),
              [&whole](const std::string&, const kube::ClientConfig& config) {
                return whole.world.network().connect(config);
              },
              {}, whole.world.env()),
          controller(whole.world.api("global"), hubs, {}, whole.world.env()),
          scope(whole.world.loop().executor()) {
      scope.spawn(hubs.run());
      scope.spawn(controller.run());
    }
    Awaitable<> end() {
      scope.stop();
      co_await scope.join();
    }

    hubs::HubDirectory hubs;
    Controller controller;
    async::TaskScope scope;
  };

  std::unique_ptr<Manager> manager_;
};

/// Secrets and ConfigMaps are copied if they are labelled, known by name, or referenced; the others stay, and are
/// deleted with the cluster's namespace.
bool stays_behind(const std::string& key, const std::string& value) {
  if (!key.starts_with("secrets ") && !key.starts_with("configmaps ")) return false;
  if (value.find("siteconfig.open-cluster-management.io/") != std::string::npos) return false;
  for (const auto* part :
       {"-admin-password", "-admin-kubeconfig", "-metadata-json", "-seed-reconfiguration", "bmc", "pull", "manifest"})
    if (key.find(part) != std::string::npos) return false;
  return true;
}

/// What must be left: the moved clusters' objects on the target and not on the source, the migrations with their
/// ledgers, and nothing else. `part` is the part of the source that is compared now.
void expect_clean_move(
    WholeWorld& whole, const std::map<std::string, Snapshot>& before, const std::vector<std::string>& moved,
    const std::vector<std::string>& migrations,
    const std::function<Snapshot(const Snapshot&)>& part = [](const Snapshot& all) { return all; }) {
  auto source = before.at("hub1");
  Snapshot travelled;
  for (auto entry = source.begin(); entry != source.end();) {
    const bool moves = std::ranges::any_of(moved, [&](const auto& name) { return belongs_to(entry->first, name); });
    if (moves) travelled.insert(*entry);
    entry = moves ? source.erase(entry) : std::next(entry);
  }
  EXPECT_EQ(differences(source, part(whole.snapshot("hub1"))), "");

  const auto after = part(whole.snapshot("hub2"));
  Snapshot rest;
  Snapshot arrived;
  for (const auto& [key, value] : after) {
    const bool moves = std::ranges::any_of(moved, [&](const auto& name) { return belongs_to(key, name); });
    (moves ? arrived : rest).emplace(key, value);
  }
  EXPECT_EQ(differences(before.at("hub2"), rest), "");
  for (const auto& [key, value] : travelled)
    EXPECT_TRUE(arrived.contains(key) || stays_behind(key, value)) << "did not arrive: " << key;
  for (const auto& [key, value] : arrived) EXPECT_TRUE(travelled.contains(key)) << "was not there before: " << key;

  std::vector<std::string> ours;
  for (const auto& name : migrations) ours.push_back("default/" + name);
  EXPECT_EQ(differences(before.at("global"), without(whole.snapshot("global"), ours)), "");
}

class WholeWorldTest : public testing::TestWithParam<bool> {};

TEST_P(WholeWorldTest, FiveMigrationsAtOnceMoveTheirClustersAndLeaveNothingElse) {
  WholeWorld whole{24, 3, GetParam()};
  const auto names = whole.world.world().clusters();
  std::map<std::string, Snapshot> before;
  for (const auto& server : whole.world.world().servers()) before[server] = whole.snapshot(server);
  whole.start_manager();
  std::vector<std::string> migrations;
  std::vector<std::string> moved;
  for (int index = 0; index < 5; ++index) {
    ClusterNames clusters{names.begin() + index * 4, names.begin() + index * 4 + 4};
    moved.insert(moved.end(), clusters.begin(), clusters.end());
    migrations.push_back("m" + std::to_string(index));
    whole.migrate(migrations.back(), clusters);
  }
  whole.run_until_ended(migrations);
  for (const auto& name : migrations) EXPECT_EQ(whole.phase(name), "Completed") << whole.describe(name);
  whole.world.run_for(5min);
  whole.world.run(whole.world.world().wait_settled());
  for (const auto& name : names) {
    const bool should_move = std::ranges::find(moved, name) != moved.end();
    EXPECT_EQ(whole.is_available("hub2", name), should_move) << name;
    EXPECT_EQ(whole.exists("hub1", name), !should_move) << name;
  }
  std::size_t accounts = 0;
  for (const auto& request : whole.world.global().requests())
    accounts += request.verb == "create" && request.resource.starts_with("managedserviceaccounts") ? 1 : 0;
  EXPECT_EQ(accounts, GetParam() ? 5u : 0u);
  EXPECT_EQ(whole.world.world().agents().available_at("https://hub2.sim"), moved.size());
  expect_clean_move(whole, before, moved, migrations);
}

INSTANTIATE_TEST_SUITE_P(Credentials, WholeWorldTest, testing::Bool(),
                         [](const auto& with) { return with.param ? "ManagedServiceAccount" : "TokenRequest"; });

// The manager crashes at random points, again and again.
class DyingManagerTest : public testing::TestWithParam<int> {};

TEST_P(DyingManagerTest, ItsSuccessorsReachTheSameEnd) {
  WholeWorld whole{9, static_cast<std::uint64_t>(GetParam()), GetParam() % 2 == 0};
  async::Random random{static_cast<std::uint64_t>(GetParam())};
  const auto names = whole.world.world().clusters();
  std::map<std::string, Snapshot> before;
  for (const auto& server : whole.world.world().servers()) before[server] = whole.snapshot(server);
  whole.migrate("m1", {names[0], names[1], names[2]});
  whole.migrate("m2", {names[3], names[4]});
  whole.migrate("m3", {names[5], names[6], names[7]});
  for (int life = 0; life < 12; ++life) {
    whole.start_manager();
    // Most of the work is done in the first second of a phase.
    whole.world.run_for(random.chance(0.7) ? random.between(1ms, 1s) : random.between(1s, 60s));
    whole.stop_manager();
  }
  whole.start_manager();
  whole.run_until_ended({"m1", "m2", "m3"});
  for (const auto* name : {"m1", "m2", "m3"}) EXPECT_EQ(whole.phase(name), "Completed") << whole.describe(name);
  whole.world.run_for(5min);
  whole.world.run(whole.world.world().wait_settled());
  expect_clean_move(whole, before, {names.begin(), names.begin() + 8}, {"m1", "m2", "m3"});
}

INSTANTIATE_TEST_SUITE_P(Seeds, DyingManagerTest, testing::Range(1, 21));

TEST(WholeWorldStories, ClustersMoveThereAndBackAgain) {
  WholeWorld whole{3, 5};
  const auto names = whole.world.world().clusters();
  whole.start_manager();
  whole.migrate("there", {names[0], names[1]});
  whole.run_until_ended({"there"});
  ASSERT_EQ(whole.phase("there"), "Completed") << whole.describe("there");
  whole.migrate("back", {names[1]}, "hub2", "hub1");
  whole.run_until_ended({"back"});
  EXPECT_EQ(whole.phase("back"), "Completed") << whole.describe("back");
  EXPECT_TRUE(whole.is_available("hub1", names[1]));
  EXPECT_FALSE(whole.exists("hub2", names[1]));
  EXPECT_TRUE(whole.is_available("hub2", names[0]));
}

TEST(WholeWorldStories, AClusterThatIsSwitchedOffIsRolledBackAndTheOthersMove) {
  WholeWorld whole{4, 6};
  const auto names = whole.world.world().clusters();
  std::map<std::string, Snapshot> before;
  for (const auto& server : whole.world.world().servers()) before[server] = whole.snapshot(server);
  whole.start_manager();
  whole.migrate("m1", {names[0], names[1], names[2]});
  while (whole.phase("m1") != "Registering") whole.world.run_for(10ms);
  whole.world.world().agents().remove(names[1]);
  whole.world.run_for(1h);
  EXPECT_EQ(whole.phase("m1"), "Rollbacking") << "it is not back";
  EXPECT_FALSE(whole.exists("hub1", names[0])) << "the others do not wait for it";
  EXPECT_TRUE(whole.exists("hub2", names[1])) << "its agent may still be registering there";
  // It will never come back: a person says so.
  json::object annotations{{migration::names::leave_annotation, "hub1/" + names[1] + ",hub2/" + names[1]}};
  json::object left{{"metadata", json::object{{"annotations", std::move(annotations)}}}};
  EXPECT_TRUE(whole.world.run(
      whole.world.api("global").merge_patch(managed_cluster_migrations, {"default", "m1"}, std::move(left))));
  whole.run_until_ended({"m1"});
  EXPECT_EQ(whole.phase("m1"), "Failed") << whole.describe("m1");
  EXPECT_TRUE(whole.is_available("hub2", names[0]));
  EXPECT_TRUE(whole.is_available("hub2", names[2]));
  EXPECT_TRUE(whole.exists("hub1", names[1]));
  EXPECT_FALSE(whole.exists("hub1", names[0]));
  // What stays of the one that is off is what was named.
  const auto of_the_others = [&](const Snapshot& snapshot) {
    Snapshot others;
    for (const auto& entry : snapshot)
      if (!belongs_to(entry.first, names[1])) others.insert(entry);
    return others;
  };
  before["hub1"] = of_the_others(before["hub1"]);
  before["hub2"] = of_the_others(before["hub2"]);
  expect_clean_move(whole, before, {names[0], names[2]}, {"m1"}, of_the_others);
}

TEST(WholeWorldStories, DeletingARunningMigrationLeavesTheWorldAsItWas) {
  for (const std::chrono::milliseconds span : {300ms, 600ms, 1200ms, 5000ms, 20000ms, 60000ms}) {
    SCOPED_TRACE(std::to_string(span.count()));
    WholeWorld whole{3, 7};
    const auto names = whole.world.world().clusters();
    std::map<std::string, Snapshot> before;
    for (const auto& server : whole.world.world().servers()) before[server] = whole.snapshot(server);
    whole.start_manager();
    whole.migrate("m1", {names[0], names[1]});
    whole.world.run_for(span);
    EXPECT_TRUE(whole.world.run(whole.world.api("global").remove(managed_cluster_migrations, {"default", "m1"})));
    whole.run_until_ended({"m1"});
    EXPECT_EQ(whole.phase("m1"), "gone");
    whole.world.run_for(10min);
    std::vector<std::string> moved;
    for (const auto& name : names)
      if (whole.is_available("hub2", name)) moved.push_back(name);
    for (const auto& name : names)
      EXPECT_NE(whole.is_available("hub1", name), whole.is_available("hub2", name)) << name;
    expect_clean_move(whole, before, moved, {});
  }
}

// The two differ in what disable-auto-import does (see ImportController): a migration must not depend on it. After its
// end each agent survives a restart.
TEST(WholeWorldStories, ClustersMoveThereAndBackWithEachImportController) {
  for (const auto controller : {sim::ImportController::mce_2_17, sim::ImportController::mce_5_x}) {
    SCOPED_TRACE(controller == sim::ImportController::mce_5_x ? "5.x" : "2.17");
    WholeWorld whole{3, 11, true, controller};
    const auto names = whole.world.world().clusters();
    whole.start_manager();
    const auto move = [&](const std::string& name, const std::string& from, const std::string& to) {
      whole.migrate(name, {names[0], names[1]}, from, to);
      whole.run_until_ended({name});
      EXPECT_EQ(whole.phase(name), "Completed") << whole.describe(name);
      for (const auto& cluster : {names[0], names[1]}) {
        EXPECT_FALSE(whole.exists(from, cluster));
        whole.restart_agent(cluster);
        const auto before = whole.renewal(to, cluster);
        whole.world.run_for(2min);
        EXPECT_NE(whole.renewal(to, cluster), before) << cluster << " must be on " << to;
        EXPECT_TRUE(whole.is_available(to, cluster));
      }
    };
    move("there", "hub1", "hub2");
    move("back", "hub2", "hub1");
  }
}

}  // namespace
}  // namespace hubferry::migration::test
