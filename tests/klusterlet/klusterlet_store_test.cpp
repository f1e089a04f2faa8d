#include "hubferry/klusterlet/klusterlet_store.hpp"

#include <boost/json/parse.hpp>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/sim/crds.hpp"
#include "klusterlet_store_fixture.hpp"

namespace hubferry::klusterlet::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace json = boost::json;

KlusterletSettings settings_of(const std::string& registration) {
  return read_klusterlet(
      kube::Object{json::parse(R"({"metadata": {"name": "klusterlet"}, "spec": {"registrationConfiguration": )" +
                               registration + "}}")
                       .as_object()});
}

const std::string gate_on = R"("featureGates": [{"feature": "MultipleHubs", "mode": "Enable"}])";

// Scenario 4: what upstream's operator renders into arguments.
TEST(KlusterletSettingsTest, TheSecretsAreTakenInOrderWithTheDefaultTimeout) {
  const auto settings =
      settings_of("{" + gate_on + R"(, "bootstrapKubeConfigs": {"type": "LocalSecrets", "localSecretsConfig":
    {"kubeConfigSecrets": [{"name": "bootstraphub1"}, {"name": "bootstraphub2"}]}}})");
  EXPECT_THAT(settings.problem, IsEmpty());
  EXPECT_TRUE(settings.multiple_hubs);
  EXPECT_THAT(settings.secrets, ElementsAre("bootstraphub1", "bootstraphub2"));
  EXPECT_EQ(settings.timeout, 600s);
}

TEST(KlusterletSettingsTest, WithTheGateOffTheListIsIgnored) {
  for (const auto* registration : {"{}", R"({"featureGates": [{"feature": "MultipleHubs", "mode": "Disable"}]})",
                                   R"({"bootstrapKubeConfigs": {"type": "LocalSecrets", "localSecretsConfig":
           {"kubeConfigSecrets": [{"name": "a"}, {"name": "b"}]}}})"}) {
    const auto settings = settings_of(registration);
    EXPECT_FALSE(settings.multiple_hubs);
    EXPECT_THAT(settings.secrets, ElementsAre("bootstrap-hub-kubeconfig"));
    EXPECT_THAT(settings.problem, IsEmpty());
  }
}

// Scenario 5.
TEST(KlusterletSettingsTest, TheGateWithoutAListIsInvalidAndTheMessageSaysWhatToDo) {
  for (const auto& configs : {std::string{}, std::string{R"(, "bootstrapKubeConfigs": {"type": "None"})"},
                              std::string{R"(, "bootstrapKubeConfigs": {})"}}) {
    const auto settings = settings_of("{" + gate_on + configs + "}");
    EXPECT_EQ(settings.problem_reason, "BootstrapKubeConfigsMissing");
    EXPECT_THAT(settings.problem, HasSubstr("LocalSecrets"));
  }
  const auto one =
      settings_of("{" + gate_on + R"(, "bootstrapKubeConfigs": {"type": "LocalSecrets", "localSecretsConfig":
    {"kubeConfigSecrets": [{"name": "a"}]}}})");
  EXPECT_EQ(one.problem_reason, "TooFewBootstrapKubeConfigs");
}

TEST_F(KlusterletStoreTest, TheKlusterletListsTheHubsAndTheCredentialIsKeptInItsNamespace) {
  EXPECT_EQ(resource_store_->cluster_name(), "cluster1");
  EXPECT_EQ(resource_store_->connection_timeout(), 300s);
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  const auto secret = own_.object(kube::resources::secrets, {names::agent_namespace, "hub-kubeconfig-secret"});
  ASSERT_TRUE(secret);
  for (const auto* key : {"kubeconfig", "tls.crt", "tls.key", "cluster-name", "agent-name"})
    EXPECT_FALSE(secret->string_at({"data", key}).empty()) << key;
  EXPECT_EQ(condition_of_klusterlet("Applied"), "True");
  EXPECT_TRUE(until([&] { return condition_of_klusterlet("HubConnectionDegraded") == "False"; }, 10s));
  EXPECT_EQ(condition_of_klusterlet("HubConnectionDegraded", "reason"), "HubConnectionFunctional");
  stop_agents();
  start_on_klusterlet();
  loop_.run_for(1min);
  EXPECT_EQ(hub1_.requests().size(), 1U) << "the secret is used after a restart";
}

// Scenario 5.
TEST_F(KlusterletStoreTest, AnInvalidKlusterletGetsAConditionAndTheAgentContinues) {
  auto& agent = start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(patch_registration(R"({"bootstrapKubeConfigs": {"type": "None", "localSecretsConfig": null}})"));
  ASSERT_TRUE(until([&] { return condition_of_klusterlet("Applied") == "False"; }, 10s));
  EXPECT_EQ(condition_of_klusterlet("Applied", "reason"), "BootstrapKubeConfigsMissing");
  loop_.run_for(1min);
  EXPECT_EQ(agent.view().hub, hub1_.url());
  EXPECT_EQ(agent.view().phase, "Joined");
}

TEST_F(KlusterletStoreTest, AShortenedTimeoutAppliesToTheCurrentOutage) {
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  hub1_.server.outage(true);
  loop_.run_for(120s);
  loop_.run(
      patch_registration(R"({"bootstrapKubeConfigs": {"localSecretsConfig": {"hubConnectionTimeoutSeconds": 180}}})"));
  loop_.run_for(90s);
  EXPECT_EQ(switches("connection_lost"), 1);
}

TEST_F(KlusterletStoreTest, TheGateTakesEffectImmediatelyForAnEarlierDenial) {
  loop_.run(put_secret("bootstrap-hub-kubeconfig", hub1_.bootstrap()));
  loop_.run(patch_registration(R"({"featureGates": []})"));
  loop_.run_for(1s);
  auto& agent = start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub1_.accept("cluster1", false));
  loop_.run_for(5min);
  EXPECT_EQ(agent.view().hub, hub1_.url()) << "without the gate there is no other hub";
  loop_.run(patch_registration(R"({"featureGates": [{"feature": "MultipleHubs", "mode": "Enable"}]})"));
  ASSERT_TRUE(until_available(hub2_));
  EXPECT_EQ(switches("denied"), 1);
}

TEST_F(KlusterletStoreTest, FailingHeartbeatsAreReportedBeforeTheHubIsLeft) {
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  ASSERT_TRUE(until([&] { return condition_of_klusterlet("HubConnectionDegraded") == "False"; }, 10s));
  hub1_.server.outage(true);
  ASSERT_TRUE(until([&] { return condition_of_klusterlet("HubConnectionDegraded") == "True"; }, 5s));
  EXPECT_EQ(condition_of_klusterlet("HubConnectionDegraded", "reason"), "HubUnreachable");
  ASSERT_TRUE(until(
      [&] { return condition_of_klusterlet("HubConnectionDegraded", "reason") == "HubLeaseUpdateFailed"; }, 2min));
  EXPECT_THAT(condition_of_klusterlet("HubConnectionDegraded", "message"), HasSubstr(hub1_.url()));
  EXPECT_EQ(switches("connection_lost"), 0);
  hub1_.server.outage(false);
  EXPECT_TRUE(until([&] { return condition_of_klusterlet("HubConnectionDegraded") == "False"; }, 2min));
}

TEST_F(KlusterletStoreTest, CertificatesAndAnnotationsFollowTheKlusterlet) {
  loop_.run(patch_registration(R"({"clientCertExpirationSeconds": 7200, "clusterAnnotations":
    {"agent.open-cluster-management.io/site": "north", "example.com/other": "ignored"}})"));
  loop_.run_for(1s);
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  EXPECT_EQ(hub1_.requests().front().find({"spec", "expirationSeconds"})->to_number<int>(), 7200);
  EXPECT_EQ(hub1_.cluster("cluster1")->annotation("agent.open-cluster-management.io/site"), "north");
  EXPECT_EQ(hub1_.cluster("cluster1")->annotation("example.com/other"), "");
}

// Without it the cluster's name is not known, and a random one would be used.
TEST_F(KlusterletStoreTest, AnAgentWaitsForItsKlusterlet) {
  KlusterletStoreOptions late;
  late.klusterlet = "late";
  KlusterletStore store{own_.api(), late, env_};
  async::TaskScope scope{loop_.executor()};
  bool ready = false;
  auto wait = [&]() -> Awaitable<> {
    co_await store.wait_ready();
    ready = true;
  };
  scope.spawn(store.run());
  scope.spawn(wait());
  loop_.run_for(1h);
  EXPECT_FALSE(ready);
  auto klusterlet = json::parse(R"({"metadata": {"name": "late"}, "spec": {"clusterName": "cluster7"}})");
  loop_.run(hub1_.must(own_.api().create(ocm::klusterlets, klusterlet.as_object())));
  loop_.run_for(1s);
  EXPECT_TRUE(ready);
  EXPECT_EQ(store.cluster_name(), "cluster7");
  scope.stop();
  loop_.run(scope.join());
}

// Scenario 6: the API's part.
TEST_F(KlusterletStoreTest, ATimeoutBelowTheMinimumIsRejectedByTheServer) {
  auto patch = [&]() -> Awaitable<> {
    json::object change{{"spec", json::parse(R"({"registrationConfiguration": {"bootstrapKubeConfigs":
      {"localSecretsConfig": {"hubConnectionTimeoutSeconds": 179}}}})")}};
    auto answer = co_await own_.api().merge_patch(ocm::klusterlets, {{}, "klusterlet"}, std::move(change));
    EXPECT_FALSE(answer);
    if (!answer) {
      EXPECT_EQ(answer.error().kind, kube::ErrorKind::invalid);
    }
  };
  loop_.run(patch());
}

TEST_F(KlusterletStoreTest, AnEditOfTheSecretInUseTriggersANewSelectionAndOneOfAnotherDoesNot) {
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(put_secret("hub2", hub2_.bootstrap("hub", "bootstrap2")));
  loop_.run_for(30s);
  EXPECT_EQ(switches("bootstrap_changed"), 0);
  loop_.run(put_secret("hub1", hub1_.bootstrap("rebuilt")));
  loop_.run_for(30s);
  EXPECT_EQ(switches("bootstrap_changed"), 1);
  EXPECT_EQ(hub1_.requests().size(), 2U);
}

TEST_F(KlusterletStoreTest, AMissingSecretIsNamedInTheReason) {
  hub2_.server.outage(true);
  auto remove = [&]() -> Awaitable<> {
    co_await hub1_.must(own_.api().remove(kube::resources::secrets, {names::agent_namespace, "hub1"}));
  };
  loop_.run(remove());
  restart_store();
  auto& agent = start_on_klusterlet();
  loop_.run_for(1min);
  EXPECT_THAT(agent.view().problem, HasSubstr("open-cluster-management-agent/hub1: the Secret does not exist"));
  EXPECT_EQ(condition_of_klusterlet("HubConnectionDegraded"), "True");
}

TEST_F(KlusterletStoreTest, AListThatAHubSendsIsWrittenToTheCluster) {
  std::vector<BootstrapConfig> list{hub2_.bootstrap(), hub1_.bootstrap()};
  list[0].name = "bootstrap-m1";
  list[1].name = std::string{names::agent_namespace} + "/hub1";
  auto put = [&]() -> Awaitable<> {
    auto written = co_await resource_store_->put_bootstraps(list, 180s);
    EXPECT_TRUE(written) << written.error();
  };
  loop_.run(put());
  loop_.run_for(1s);
  const auto stored = resource_store_->bootstraps();
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(stored[0].kubeconfig, list[0].kubeconfig);
  EXPECT_EQ(stored[1].kubeconfig, list[1].kubeconfig);
  EXPECT_EQ(resource_store_->connection_timeout(), 180s);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
