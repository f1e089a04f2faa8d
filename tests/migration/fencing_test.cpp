#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "../worlds/wire.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "simulated_manager.hpp"
#include "snapshot.hpp"

/// Several managers in one world: one acts, the others do no harm.
namespace hubferry::migration::test {
namespace {

namespace json = boost::json;
using hubagent::ClusterNames;
using namespace std::chrono_literals;

sim::WorldOptions small_world(std::uint64_t seed) {
  sim::WorldOptions options;
  options.clusters = 6;
  options.seed = seed;
  // Between any two requests there is a moment at which something can happen.
  options.server.latency = sim::Latency::uniform(1ms, 15ms);
  return options;
}

class Managers {
 public:
  explicit Managers(std::uint64_t seed) : world(small_world(seed)), names(world.world().clusters()) {
    world.run(world.world().wait_settled());
    for (const auto& server : world.world().servers()) before_[server] = snapshot(server);
  }

  SimulatedManager& start(const std::string& identity, bool leader_elect = true) {
    SimulatedManagerOptions options;
    options.identity = identity;
    options.leader_elect = leader_elect;
    return start(std::move(options));
  }
  SimulatedManager& start(SimulatedManagerOptions options) {
    managers_.push_back(std::make_unique<SimulatedManager>(world, std::move(options)));
    return *managers_.back();
  }
  void migrate(const std::string& name, const ClusterNames& clusters) {
    json::object spec{
        {"from", "hub1"}, {"to", "hub2"}, {"includedManagedClusters", json::array(clusters.begin(), clusters.end())}};
    json::object object{{"metadata", json::object{{"name", name}, {"namespace", "default"}}},
                        {"spec", std::move(spec)}};
    auto created = world.run(world.api("global").create(managed_cluster_migrations, std::move(object)));
    EXPECT_TRUE(created) << created.error();
  }
  [[nodiscard]] kube::Object migration(const std::string& name) {
    return world.global().object(managed_cluster_migrations, {"default", name}).value_or(kube::Object{});
  }
  std::string phase(const std::string& name) { return std::string{migration(name).string_at({"status", "phase"})}; }
  bool ledger_exists(const std::string& name) {
    return world.global().object(kube::resources::config_maps, {"default", name}).has_value();
  }
  /// Who wrote the status last.
  std::string worker(const std::string& name) {
    return std::string{migration(name).string_at({"status", "state", "leader", "identity"})};
  }
  template <typename Condition>
  void run_until(Condition holds) {
    const auto end = world.clock().now() + 2h;
    while (!holds() && world.clock().now() < end) world.run_for(10ms);
    EXPECT_TRUE(holds());
  }
  void run_until_ended(const std::vector<std::string>& migrations) {
    run_until([&] {
      return std::ranges::all_of(
          migrations, [&](const auto& name) { return phase(name) == "Completed" || phase(name) == "Failed"; });
    });
  }
  /// Every cluster is on one hub, and accepted there.
  void expect_moved(const std::vector<std::string>& migrations, std::size_t moved) {
    for (const auto& name : migrations) EXPECT_EQ(phase(name), "Completed") << json::serialize(migration(name).json());
    world.run_for(5min);
    for (std::size_t at = 0; at < names.size(); ++at) {
      EXPECT_EQ(is_on("hub1", names[at]), at >= moved) << names[at];
      EXPECT_EQ(is_on("hub2", names[at]), at < moved) << names[at];
    }
    const auto not_moved = [&](const Snapshot& snapshot) {
      Snapshot rest;
      for (const auto& entry : snapshot)
        if (std::none_of(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(moved),
                         [&](const auto& name) { return belongs_to(entry.first, name); }))
          rest.insert(entry);
      return rest;
    };
    EXPECT_EQ(differences(not_moved(before_["hub1"]), snapshot("hub1")), "");
    EXPECT_EQ(differences(before_["hub2"], not_moved(snapshot("hub2"))), "");
    std::vector<std::string> ours;
    for (const auto& name : migrations) ours.push_back("default/" + name);
    EXPECT_EQ(differences(before_["global"], without(snapshot("global"), ours)), "");
  }

  bool has_ended(const std::string& name) {
    return phase(name) == "Completed" || phase(name) == "Failed" || migration(name).name().empty();
  }
  /// Whatever became of its migration.
  void expect_on_one_hub() {
    world.run_for(10min);
    for (const auto& name : names) EXPECT_NE(is_on("hub1", name), is_on("hub2", name)) << name;
  }

  sim::VirtualWorld world;
  ClusterNames names;

 private:
  Snapshot snapshot(const std::string& server) { return world.run(take_snapshot(world.api(server))); }
  bool is_on(const std::string& hub, const std::string& cluster) {
    const auto object = world.server(hub).object(ocm::managed_clusters, {"", cluster});
    const auto* accepted = object ? object->find({"spec", "hubAcceptsClient"}) : nullptr;
    return accepted != nullptr && *accepted == true && kube::is_condition_true(*object, ocm::names::available);
  }

  std::map<std::string, Snapshot> before_;
  std::vector<std::unique_ptr<SimulatedManager>> managers_;
};

std::string text_of(const SimulatedManager& manager, async::TimePoint since) {
  std::string text;
  for (const auto& write : manager.writes())
    if (write.at >= since) text += write.what + "\n";
  return text;
}

/// The deletions of clusters among its writes from this one on.
std::string deletions_of(const SimulatedManager& manager, std::size_t from) {
  std::string text;
  for (std::size_t at = from; at < manager.writes().size(); ++at)
    if (const auto& what = manager.writes()[at].what; what.starts_with("delete managedclusters ")) text += what + "\n";
  return text;
}

TEST(TwoManagers, WithoutLeaderElectionOneActsAndTheOtherKnows) {
  Managers managers{1};
  auto& first = managers.start("first", false);
  managers.run_until([&] { return first.leads(); });
  auto& second = managers.start("second", false);
  managers.migrate("m1", {managers.names[0], managers.names[1]});
  managers.run_until([&] { return managers.phase("m1") == "Registering"; });
  EXPECT_EQ(second.leader(), "first");
  managers.migrate("m2", {managers.names[2]});
  managers.run_until_ended({"m1", "m2"});
  EXPECT_EQ(text_of(second, {}), "");
  EXPECT_EQ(managers.worker("m1"), "first");
  managers.expect_moved({"m1", "m2"}, 3);
  // When the first one ends, the second one takes over.
  first.stop();
  managers.run_until([&] { return second.leads(); });
}

// It crashed, and its Lease has not expired: the successor of a single manager does not wait for that.
TEST(TwoManagers, WithoutLeaderElectionASuccessorWaitsForThreeRenewalsOnly) {
  Managers managers{2};
  auto& first = managers.start("first", false);
  managers.run_until([&] { return first.leads(); });
  first.pause();
  auto& second = managers.start("second", false);
  const auto began = managers.world.clock().now();
  managers.run_until([&] { return second.leads(); });
  EXPECT_LT(managers.world.clock().now() - began, 10s);
  first.resume();
  managers.world.run_for(10s);
  EXPECT_TRUE(second.leads());
  EXPECT_EQ(first.leader(), "second");
}

TEST(TwoManagers, TheLeaderOfATermIsRecordedInTheStatusAndTheLedger) {
  Managers managers{3};
  auto& first = managers.start("first");
  managers.migrate("m1", {managers.names[0], managers.names[1]});
  managers.run_until([&] { return managers.phase("m1") == "Registering"; });
  const auto epoch_of = [&] {
    return managers.migration("m1").find({"status", "state", "leader", "epoch"})->as_int64();
  };
  const auto term = epoch_of();
  EXPECT_EQ(managers.worker("m1"), "first");
  first.pause();
  auto& second = managers.start("second");
  managers.run_until([&] { return second.leads(); });
  // Before anything else: it waits in the same phase.
  managers.run_until([&] { return managers.worker("m1") == "second"; });
  EXPECT_GT(epoch_of(), term);
  managers.run_until_ended({"m1"});
  const auto ledger = managers.world.global().object(kube::resources::config_maps, {"default", "m1"});
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->annotation("hubferry.io/leader-epoch"), std::to_string(epoch_of()));
  managers.expect_moved({"m1"}, 2);
}

// With a different --namespace each has a Lease of its own, and outranks the other. The first one is still validating,
// without a connection to the source, when the second one has moved the clusters: then it finds none on the source.
TEST(TwoManagers, ALateDecisionDoesNotReplaceTheLedgerOfAnotherLeader) {
  Managers managers{5};
  auto& world = managers.world;
  worlds::Wire to_source{async::Random{5}};
  to_source.down = true;
  SimulatedManagerOptions options;
  options.identity = "late";
  options.lease_namespace = "hub1";
  options.wire = [&](std::shared_ptr<kube::Api> api) -> std::shared_ptr<kube::Api> {
    if (api->name() != "hub1") return api;
    return worlds::make_faulty_api(std::move(api), to_source, world.clock(), [](Awaitable<>) {});
  };
  auto& late = managers.start(std::move(options));
  managers.migrate("m1", {managers.names[0], managers.names[1]});
  managers.run_until([&] { return managers.phase("m1") == "Validating" && managers.ledger_exists("m1"); });
  EXPECT_EQ(managers.worker("m1"), "late");
  // The second one stays in Cleaning, with all clusters deleted from the source.
  auto& source = world.server("hub1");
  source.faults().on({"delete", "klusterletconfigs"}).always().fail(500);
  managers.start("second");
  managers.run_until([&] {
    return managers.phase("m1") == "Cleaning" && !source.object(ocm::managed_clusters, {"", managers.names[0]}) &&
           !source.object(ocm::managed_clusters, {"", managers.names[1]});
  });
  const auto connected = world.clock().now();
  to_source.down = false;
  world.run_for(3min);
  EXPECT_GT(late.writes_since(connected), 0U) << "it has noticed";
  source.faults().clear();
  managers.run_until_ended({"m1"});
  managers.expect_moved({"m1"}, 2);
}

// Its numbers start over: the new leader takes one above those in the resources.
TEST(TwoManagers, ALeaseThatWasDeletedDoesNotLockTheNextLeaderOut) {
  Managers managers{4};
  auto& zeroth = managers.start("zeroth");
  managers.run_until([&] { return zeroth.leads(); });
  zeroth.stop();
  auto& first = managers.start("first");
  managers.migrate("m1", {managers.names[0], managers.names[1]});
  managers.run_until([&] { return managers.phase("m1") == "Registering"; });
  // Not in the middle of a write: by its own clock its term goes on, and what it had begun to send is sent.
  managers.run_until([&] { return text_of(first, managers.world.clock().now() - 100ms).empty(); });
  first.pause();
  managers.world.run(managers.world.api("global").remove(kube::resources::leases, {"default", "hubferry-manager"}));
  auto& second = managers.start("second");
  managers.run_until([&] { return managers.worker("m1") == "second"; });
  const auto woke = managers.world.clock().now();
  first.resume();
  managers.run_until_ended({"m1"});
  // By its own clock its term goes on, so it may still report what it waits for: on a version that is no more.
  EXPECT_THAT(text_of(first, woke), testing::AnyOf("", "patch managedclustermigrations default/m1 on global\n"));
  EXPECT_EQ(managers.worker("m1"), "second");
  EXPECT_THAT(first.end(), testing::HasSubstr("lost Lease"));
  EXPECT_TRUE(second.leads());
  managers.expect_moved({"m1"}, 2);
}

// As SIGSTOP does, or a node that swaps: it wakes up in the middle of something and believes that it leads.
class PausedLeader : public testing::TestWithParam<int> {};

TEST_P(PausedLeader, WakesUpAndDoesNoHarm) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  Managers managers{seed};
  async::Random random{seed};
  auto& first = managers.start("first");
  managers.run_until([&] { return first.leads(); });
  auto& second = managers.start("second");
  managers.migrate("m1", {managers.names[0], managers.names[1], managers.names[2]});
  managers.migrate("m2", {managers.names[3]});
  // Most of the work is done in the first second of a phase.
  managers.world.run_for(random.chance(0.7) ? random.between(1ms, 2s) : random.between(2s, 40s));
  first.pause();
  managers.run_until([&] { return second.leads(); });
  managers.world.run_for(random.chance(0.5) ? random.between(0ms, 500ms) : random.between(500ms, 60s));
  const auto woke = managers.world.clock().now();
  first.resume();
  managers.run_until_ended({"m1", "m2"});
  managers.run_until([&] { return !first.end().empty(); });
  EXPECT_EQ(text_of(first, woke), "");
  EXPECT_THAT(first.end(), testing::HasSubstr("lost Lease"));
  managers.expect_moved({"m1", "m2"}, 4);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PausedLeader, testing::Range(1, 11));

// Its clock is slow and the Lease out of its reach: it leads on for a minute, beside its successor. In half of the
// worlds it is about to delete clusters from the source then; in a third a person cancels, so that one of them returns
// clusters that the other still moves.
class DeceivedLeader : public testing::TestWithParam<int> {};

TEST_P(DeceivedLeader, LeadsBesideItsSuccessorAndDoesNoHarm) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  const bool deletes = seed % 2 == 1;
  const bool cancels = seed % 3 == 0;
  Managers managers{seed};
  async::Random random{seed};
  auto& first = managers.start("first");
  managers.run_until([&] { return first.leads(); });
  auto& second = managers.start("second");
  managers.migrate("m1", {managers.names[0], managers.names[1], managers.names[2]});
  if (deletes) {
    // What comes between the last look and the deletion is answered late.
    auto& source = managers.world.server("hub1").faults();
    managers.run_until([&] { return managers.phase("m1") == "Cleaning"; });
    source.on({"list", "observabilityaddons"}).times(1).delay(sim::Latency::fixed(40s));
  } else {
    managers.world.run_for(random.between(1ms, 5s));
  }
  first.deceive(true);
  managers.run_until([&] { return second.leads(); });
  if (cancels) managers.world.run(managers.world.api("global").remove(managed_cluster_migrations, {"default", "m1"}));
  // A second of its clock, for which it relies on what it has read of the Lease.
  managers.world.run_for(10s);
  const auto known = first.writes().size();
  managers.world.run_for(50s);
  EXPECT_EQ(deletions_of(first, known), "");
  first.deceive(false);
  managers.run_until([&] { return managers.has_ended("m1"); });
  managers.run_until([&] { return !first.end().empty(); });
  EXPECT_THAT(first.end(), testing::HasSubstr("lost Lease"));
  if (managers.migration("m1").name().empty())
    managers.expect_on_one_hub();
  else
    managers.expect_moved({"m1"}, 3);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeceivedLeader, testing::Range(1, 7));

// The Role of manifests/base lets a manager create and patch ConfigMaps, and not update them.
TEST(FencedLedger, IsWrittenWithoutThePermissionToUpdate) {
  Managers managers{1};
  managers.world.server("global").faults().on({"update", "configmaps"}).always().fail(403);
  managers.start("first");
  managers.migrate("m1", {managers.names[0], managers.names[1]});
  managers.run_until_ended({"m1"});
  managers.expect_moved({"m1"}, 2);
}

// With a different --namespace neither waits for the other: both lead all the time. In half of the worlds a person
// cancels one of the migrations.
// Returns who was noticed by the other.
std::set<std::string> lead_with_two_leases(std::uint64_t seed) {
  const bool cancels = seed % 2 == 0;
  std::set<std::string> noticed;
  Managers managers{seed};
  async::Random random{seed};
  SimulatedManagerOptions one;
  one.identity = "first";
  SimulatedManagerOptions other;
  other.identity = "second";
  other.lease_namespace = "hub1";
  for (auto* options : {&one, &other})
    options->controller.on_rival = [&](const std::string& identity) { noticed.insert(identity); };
  auto& first = managers.start(std::move(one));
  managers.migrate("m1", {managers.names[0], managers.names[1], managers.names[2]});
  managers.world.run_for(random.between(0ms, 4s));
  auto& second = managers.start(std::move(other));
  managers.migrate("m2", {managers.names[3]});
  if (cancels) {
    managers.world.run_for(random.between(0ms, 10s));
    managers.world.run(managers.world.api("global").remove(managed_cluster_migrations, {"default", "m2"}));
  }
  managers.run_until([&] { return managers.has_ended("m1") && managers.has_ended("m2"); });
  EXPECT_TRUE(first.leads());
  EXPECT_TRUE(second.leads());
  EXPECT_EQ(managers.phase("m1"), "Completed") << json::serialize(managers.migration("m1").json());
  if (cancels)
    managers.expect_on_one_hub();
  else
    managers.expect_moved({"m1", "m2"}, 4);
  return noticed;
}

class TwoLeases : public testing::TestWithParam<int> {};

TEST_P(TwoLeases, BothManagersLeadAndDoNoHarm) {
  lead_with_two_leases(static_cast<std::uint64_t>(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, TwoLeases, testing::Range(1, 9));

// It depends on the moment whether one sees that the other writes: not in every world.
TEST(TwoLeasesOfOneGlobalHub, AManagerWhoseLedgerIsTakenOverSaysSo) {
  std::set<std::string> noticed;
  for (std::uint64_t seed = 1; seed <= 8 && noticed.empty(); ++seed) noticed = lead_with_two_leases(seed);
  EXPECT_FALSE(noticed.empty());
}

}  // namespace
}  // namespace hubferry::migration::test
