#include "hubferry/migration/phases.hpp"
#include "whole_world.hpp"

/// Agents have the target's bootstrap kubeconfig from Initializing on, and use it when they lose the source.
namespace hubferry::migration::test {
namespace {

struct Agents {
  bool upstream;  // they register until they succeed, whatever happens
  bool accounts;  // ManagedServiceAccounts
};

class EarlyRegistration : public testing::TestWithParam<Agents> {
 protected:
  static sim::WorldOptions options() {
    auto options = options_of(2, 21, GetParam().accounts, sim::ImportController::mce_2_17);
    options.upstream_agents = GetParam().upstream;
    return options;
  }

  EarlyRegistration() : whole_(options()), name_(whole_.world.world().clusters().front()) {}

  /// The manager stops when the cluster is claimed; then the source is away for longer than an agent waits.
  void lose_the_source_in_initializing() {
    const auto claimed = [&] {
      const auto cluster = whole_.world.server("hub1").object(ocm::managed_clusters, {"", name_});
      return !cluster->annotation(ocm::names::migrating_annotation).empty();
    };
    whole_.start_manager();
    whole_.migrate("m1", {name_});
    ASSERT_TRUE(whole_.run_until(claimed, 2h, 1ms));
    whole_.stop_manager();
    whole_.world.run_for(1min);
    ASSERT_EQ(whole_.world.world().agents().store_of(name_)->bootstraps().size(), 2u) << "it knows the target";
    whole_.world.server("hub1").outage(true);
    whole_.world.run_for(20min);
    EXPECT_FALSE(whole_.exists("hub2", name_)) << "it registered where no copy of it is";
    whole_.world.server("hub1").outage(false);
  }
  void expect_only_on(const std::string& hub, const std::string& other) {
    whole_.world.run_for(15min);
    EXPECT_TRUE(whole_.is_accepted(hub, name_)) << whole_.describe("m1");
    EXPECT_TRUE(whole_.is_available(hub, name_));
    EXPECT_FALSE(whole_.exists(other, name_));
    EXPECT_EQ(whole_.world.world().agents().find(name_)->view().hub, "https://" + hub + ".sim");
  }

  WholeWorld whole_;
  std::string name_;
};

TEST_P(EarlyRegistration, AnAgentThatLosesTheSourceWaitsForItAndTheMigrationGoesOn) {
  lose_the_source_in_initializing();
  whole_.start_manager();
  whole_.run_until_ended({"m1"});
  EXPECT_EQ(whole_.phase("m1"), "Completed") << whole_.describe("m1");
  expect_only_on("hub2", "hub1");
}

TEST_P(EarlyRegistration, AnAgentThatLosesTheSourceStaysThereIfTheMigrationIsDeleted) {
  const auto before = whole_.snapshot("hub2");
  lose_the_source_in_initializing();
  EXPECT_TRUE(whole_.world.run(whole_.world.api("global").remove(managed_cluster_migrations, {"default", "m1"})));
  whole_.start_manager();
  whole_.run_until_ended({"m1"});
  EXPECT_EQ(whole_.phase("m1"), "gone") << whole_.describe("m1");
  expect_only_on("hub1", "hub2");
  EXPECT_EQ(differences(before, whole_.snapshot("hub2")), "");
}

// The source is away for the manager from the cut-over on, and later for the agents: they leave it undetached. When it
// is back, it accepts clusters that live on the target.
TEST_P(EarlyRegistration, AgentsThatLeaveASourceWhichIsAwayUntilCleaningEndOnTheTargetOnly) {
  const auto names = whole_.world.world().clusters();
  whole_.start_manager();
  whole_.migrate("m1", {names.begin(), names.end()});
  ASSERT_TRUE(whole_.run_until([&] { return whole_.phase("m1") == phases::registering; }, 2h, 1ms));
  whole_.lines["hub1"].severed = true;
  whole_.world.run_for(1min);
  whole_.world.server("hub1").outage(true);
  ASSERT_TRUE(whole_.run_until([&] { return whole_.phase("m1") == phases::cleaning; })) << whole_.describe("m1");
  whole_.world.run_for(10min);
  whole_.world.server("hub1").outage(false);
  for (const auto& name : names) {
    EXPECT_TRUE(whole_.is_accepted("hub1", name)) << name;
    EXPECT_TRUE(whole_.is_available("hub2", name)) << name;
  }
  whole_.lines["hub1"].severed = false;
  whole_.run_until_ended({"m1"});
  EXPECT_EQ(whole_.phase("m1"), "Completed") << whole_.describe("m1");
  expect_only_on("hub2", "hub1");
}

// The other cluster's agent is away: Registering goes on, while the first one has arrived already.
TEST_P(EarlyRegistration, AnAgentThatRegistersAgainSinceItsCopyWasDeletedIsAdopted) {
  const auto names = whole_.world.world().clusters();
  whole_.start_manager();
  whole_.migrate("m1", {names.begin(), names.end()});
  ASSERT_TRUE(whole_.run_until([&] { return whole_.phase("m1") == phases::registering; }));
  EXPECT_TRUE(whole_.world.world().agents().remove(names[1]));
  ASSERT_TRUE(whole_.run_until([&] { return whole_.is_available("hub2", name_); }));
  whole_.world.run_for(20s);
  ASSERT_EQ(whole_.phase("m1"), phases::registering);
  EXPECT_TRUE(whole_.world.run(whole_.world.api("hub2").remove(ocm::managed_clusters, {"", name_})));
  whole_.world.run_for(3h);
  EXPECT_TRUE(whole_.is_available("hub2", name_)) << whole_.describe("m1");
  EXPECT_FALSE(whole_.exists("hub1", name_)) << whole_.describe("m1");
}

INSTANTIATE_TEST_SUITE_P(Agents, EarlyRegistration,
                         testing::Values(Agents{false, true}, Agents{true, true}, Agents{true, false}),
                         [](const auto& with) {
                           return std::string{with.param.upstream ? "Upstream" : "Own"} +
                                  (with.param.accounts ? "WithManagedServiceAccount" : "WithToken");
                         });

}  // namespace
}  // namespace hubferry::migration::test
