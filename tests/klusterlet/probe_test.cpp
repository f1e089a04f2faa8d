#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "hubferry/kube/edit.hpp"
#include "klusterlet_test.hpp"

namespace hubferry::klusterlet::test {
namespace {

using testing::HasSubstr;
using ProbeTest = KlusterletTest;
namespace json = boost::json;

// Scenario 12.
TEST_F(ProbeTest, AHubOnWhichAnyOfTheSixPermissionsIsMissingIsRejected) {
  struct Right {
    std::size_t rule;
    const char* verb;
  };
  for (const auto& right : {Right{0, "create"}, Right{0, "get"}, Right{1, "create"}, Right{1, "get"}, Right{1, "list"},
                            Right{1, "watch"}}) {
    const auto set = [&](bool without) -> Awaitable<> {
      const kube::Mutation mutate = [&](json::object& role) {
        auto& verbs = role.at("rules").as_array().at(right.rule).at("verbs").as_array();
        if (without)
          verbs.erase(std::find(verbs.begin(), verbs.end(), json::value(right.verb)));
        else
          verbs.push_back(right.verb);
        return true;
      };
      co_await hub1_.must(kube::edit(hub1_.server.api(), kube::resources::cluster_roles, {{}, "bootstrap"}, mutate));
    };
    loop_.run(set(true));
    const auto cluster = std::string{"without-"} + right.verb + std::to_string(right.rule);
    MemoryStore store{{hub1_.bootstrap(), hub2_.bootstrap()}};
    Agent agent{options(cluster), store, connect(), env_};
    async::TaskScope scope{loop_.executor()};
    scope.spawn(agent.run());
    EXPECT_TRUE(until([&] { return hub2_.is_available(cluster); }, 30s)) << right.verb;
    EXPECT_FALSE(hub1_.cluster(cluster)) << right.verb;
    scope.stop();
    loop_.run(scope.join());
    loop_.run(set(false));
  }
}

TEST_F(ProbeTest, AHubIsProbedByTwoRequests) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  std::vector<std::string> first;
  for (const auto& request : hub1_.server.requests())
    if (request.user == "bootstrap" && first.size() < 3) first.push_back(request.verb + " " + request.resource);
  EXPECT_THAT(first, testing::ElementsAre("create selfsubjectrulesreviews.authorization.k8s.io",
                                          "get managedclusters.cluster.open-cluster-management.io",
                                          "create managedclusters.cluster.open-cluster-management.io"));
}

TEST_F(ProbeTest, AHubThatDoesNotListRulesIsAskedForEachPermission) {
  hub1_.server.faults().on({"create", "selfsubjectrulesreviews"}).always().fail(403);
  start();
  ASSERT_TRUE(until_available(hub1_));
  EXPECT_EQ(hub1_.count("create", "selfsubjectaccessreviews"), 6U);
}

// Listing rules needs every authorizer of a hub; a webhook that cannot do it makes the request fail.
TEST_F(ProbeTest, AHubThatFailsToListRulesIsAskedForEachPermission) {
  hub1_.server.faults().on({"create", "selfsubjectrulesreviews"}).always().fail(500);
  start();
  ASSERT_TRUE(until_available(hub1_, 15s));
  EXPECT_EQ(hub1_.count("create", "selfsubjectaccessreviews"), 6U);
  EXPECT_FALSE(hub2_.cluster("cluster1"));
}

// It fails all requests: more of them do not help.
TEST_F(ProbeTest, AHubThatFailsEveryReviewIsRejectedAfterItsTime) {
  hub1_.server.faults().on({"create", "selfsubjectrulesreviews"}).always().fail(503);
  hub1_.server.faults().on({"create", "selfsubjectaccessreviews"}).always().fail(503);
  start();
  EXPECT_TRUE(until_available(hub2_, 15s));
  EXPECT_LE(hub1_.count("create", "selfsubjectaccessreviews"), 60U);
}

TEST(ListedPermissionsTest, OnlyACompleteListProvesThatAPermissionIsMissing) {
  const auto read = [](const char* text) { return read_rules(kube::Object{json::parse(text).as_object()}); };
  const auto all = read(R"({"status": {"incomplete": true, "resourceRules": [
    {"verbs": ["*"], "apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"]},
    {"verbs": ["get", "list"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["create", "watch"], "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"]}
  ]}})");
  EXPECT_TRUE(all.missing.empty()) << "what is listed is allowed, whatever else may be";
  const auto some = [&](const char* incomplete) {
    return read((R"({"status": {)" + std::string{incomplete} + R"("resourceRules": [
      {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["one"]},
      {"verbs": ["*"], "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"]}]}})")
                    .c_str());
  };
  for (const auto* incomplete : {"", "\"incomplete\": false,"}) {
    const auto listed = some(incomplete);
    ASSERT_EQ(listed.missing.size(), 2U) << "a rule for some names is not enough";
    EXPECT_EQ(std::string{listed.missing[0].verb} + listed.missing[0].resource->plural, "createmanagedclusters");
    EXPECT_TRUE(listed.complete);
  }
  EXPECT_FALSE(some("\"incomplete\": true,").complete);
  EXPECT_FALSE(read("{}").complete);
  EXPECT_EQ(read("{}").missing.size(), 6U);
}

// A hub to which a fleet has just moved is busy.
TEST_F(ProbeTest, ABusyHubIsProbedAgainWithinItsTime) {
  hub1_.server.faults().on({"create", "selfsubjectrulesreviews"}).times(2).fail(429, 1);
  hub1_.server.faults().on({"get", "managedclusters"}).times(2).fail(500);
  start();
  EXPECT_TRUE(until_available(hub1_, 10s));
  EXPECT_FALSE(hub2_.cluster("cluster1"));
}

TEST_F(ProbeTest, AHubThatStaysBusyIsRejectedAfterItsTime) {
  hub1_.server.faults().on({"create", "selfsubjectrulesreviews"}).always().fail(429, 1);
  auto& agent = start();
  EXPECT_TRUE(until_available(hub2_, 15s));
  EXPECT_EQ(agent.view().bootstrap, "hub2-bootstrap");
  EXPECT_LE(hub1_.count("create", "selfsubjectrulesreviews"), 10U);
}

// Scenario 14.
TEST_F(ProbeTest, AHubThatFailsToReturnTheClusterIsRejected) {
  hub1_.server.faults().on({"get", "managedclusters"}).always().fail(403);
  start();
  EXPECT_TRUE(until_available(hub2_, 30s));
}

// Scenarios 8 and 16.
TEST_F(ProbeTest, WhenNoHubAnswersTheAgentReportsItAndRetries) {
  hub1_.server.outage(true);
  hub2_.server.outage(true);
  auto& agent = start();
  loop_.run_for(10min);
  EXPECT_EQ(agent.view().phase, "Selecting");
  EXPECT_THAT(agent.view().problem, testing::AllOf(HasSubstr("hub1-bootstrap"), HasSubstr("hub2-bootstrap")));
  EXPECT_THAT(agent.states()["Selecting"].error, HasSubstr("no hub can be selected"));
  hub2_.server.outage(false);
  EXPECT_TRUE(until_available(hub2_, 3min));
  EXPECT_TRUE(agent.view().problem.empty());
}

// A firewall that drops packets.
TEST_F(ProbeTest, AHubThatNeverAnswersCostsTenSeconds) {
  hub1_.server.faults().on({"create", "selfsubjectrulesreviews"}).always().delay(sim::Latency::fixed(24h));
  start();
  EXPECT_TRUE(until_available(hub2_, 15s));
}

// Scenario 10.
TEST_F(ProbeTest, ADenialThatCameWhileTheAgentWasAwayIsNoticedWhenItStarts) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  stop_agents();
  loop_.run(hub1_.accept("cluster1", false));
  start();
  EXPECT_TRUE(until_available(hub2_, 30s));
}

TEST_F(ProbeTest, ANewListEndsTheWaitForAHub) {
  hub1_.server.outage(true);
  store_.set_bootstraps({hub1_.bootstrap()});
  start();
  loop_.run_for(10min);
  store_.set_bootstraps({hub1_.bootstrap(), hub2_.bootstrap()});
  EXPECT_TRUE(until_available(hub2_, 5s));
}

TEST_F(ProbeTest, ANewListThatComesWhileHubsAreProbedIsTriedNext) {
  hub1_.server.faults().on({}).always().delay(sim::Latency::fixed(24h));
  store_.set_bootstraps({hub1_.bootstrap()});
  int probes = 0;
  const Connect counted = [&, inner = connect()](const kube::ClientConfig& config) {
    ++probes;
    return inner(config);
  };
  Agent agent{options(), store_, counted, env_};
  agent_scope_.emplace(loop_.executor());
  agent_scope_->spawn(agent.run());
  loop_.run_for(10min);
  const auto before = probes;
  ASSERT_TRUE(until([&] { return probes > before; }, 5min));
  store_.set_bootstraps({hub1_.bootstrap(), hub2_.bootstrap()});
  EXPECT_TRUE(until_available(hub2_, 25s)) << "after the probe that was under way, and that of hub1 in the new list";
  stop_agents();
}

// Scenario 15.
TEST_F(ProbeTest, AnUnreadableKubeconfigIsSkipped) {
  BootstrapConfig broken{"broken", obs::Secret{"{ no yaml"}, std::nullopt};
  store_.set_bootstraps({broken, hub2_.bootstrap()});
  start();
  EXPECT_TRUE(until_available(hub2_, 30s));
}

// A hub that revokes the bootstrap credential while we wait, as the rollback of a migration does.
TEST_F(ProbeTest, AHubThatRefusesTheRegistrationIsLeftBeforeTheTimeout) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  hub2_.approves = false;
  loop_.run(hub1_.accept("cluster1", false));
  ASSERT_TRUE(until([&] { return hub2_.requests().size() == 1; }, 10s));
  loop_.run(hub2_.must(hub2_.server.api().remove(kube::resources::cluster_role_bindings, {{}, "bootstrap"})));
  const auto old = hub1_.renew_time("cluster1");
  loop_.run(hub1_.accept("cluster1", true));
  EXPECT_TRUE(until([&] { return hub1_.renew_time("cluster1") != old; }, 2min));
  EXPECT_EQ(switches("bootstrap_refused"), 1);
}

// Agents probe a hub rarely while it is unreachable, so that it is not flooded when it returns.
TEST_F(ProbeTest, AnUnreachableHubIsProbedRarely) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  hub1_.server.outage(true);
  hub2_.server.outage(true);
  loop_.run_for(30min);
  hub1_.server.forget_requests();
  hub2_.server.forget_requests();
  loop_.run_for(30min);
  std::size_t asked = 0;
  for (const auto* hub : {&hub1_, &hub2_})
    asked += static_cast<std::size_t>(std::ranges::count_if(
        hub->server.requests(), [](const auto& request) { return request.user != sim::admin().name; }));
  EXPECT_LE(asked, 70U);
  EXPECT_GE(asked, 10U);
  hub1_.server.outage(false);
  const auto old = hub1_.renew_time("cluster1");
  EXPECT_TRUE(until([&] { return hub1_.renew_time("cluster1") != old; }, 3min));
}

}  // namespace
}  // namespace hubferry::klusterlet::test
