// A Klusterlet that administrators, GitOps and hubs edit, while its agent is joined.
#include "klusterlet_store_fixture.hpp"

namespace hubferry::klusterlet::test {
namespace {

using testing::HasSubstr;
namespace json = boost::json;
using KlusterletFaultsTest = KlusterletStoreTest;

TEST_F(KlusterletFaultsTest, MistypedSecretNamesLeaveAJoinedAgentOnItsHub) {
  auto& agent = start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(patch_registration(R"({"bootstrapKubeConfigs": {"localSecretsConfig": {"kubeConfigSecrets":
    [{"name": "hbu1"}, {"name": "hbu2"}]}}})"));
  loop_.run_for(1min);
  EXPECT_EQ(agent.view().phase, "Joined");
  EXPECT_EQ(agent.view().hub, hub1_.url());
  EXPECT_EQ(switches("bootstrap_changed"), 0);
  EXPECT_EQ(condition_of_klusterlet("Applied"), "False");
  EXPECT_EQ(condition_of_klusterlet("Applied", "reason"), "BootstrapSecretUnreadable");
  EXPECT_THAT(condition_of_klusterlet("Applied", "message"), HasSubstr("hbu1"));
  // The last valid list stays in effect: the agent can still switch.
  loop_.run(hub1_.accept("cluster1", false));
  EXPECT_TRUE(until_available(hub2_, 30s));
}

// `kubectl replace --force` deletes the Secret and creates it again.
TEST_F(KlusterletFaultsTest, ASecretThatIsReplacedByForceDoesNotMoveTheCluster) {
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(remove_secret("hub1"));
  loop_.run_for(5s);
  EXPECT_EQ(condition_of_klusterlet("Applied"), "False");
  EXPECT_THAT(condition_of_klusterlet("Applied", "message"), HasSubstr("hub1"));
  loop_.run(put_secret("hub1", hub1_.bootstrap()));
  loop_.run_for(1min);
  EXPECT_EQ(switches("bootstrap_changed"), 0);
  EXPECT_FALSE(hub2_.cluster("cluster1"));
  EXPECT_EQ(condition_of_klusterlet("Applied"), "True");
}

TEST_F(KlusterletFaultsTest, ASecretThatIsEmptyOrUnparsableForAMomentDoesNotMoveTheCluster) {
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  for (const auto* text : {"", "{ no yaml", "apiVersion: v1"}) {
    loop_.run(put_text("hub1", text));
    loop_.run_for(30s);
    EXPECT_EQ(switches("bootstrap_changed"), 0) << text;
    EXPECT_EQ(condition_of_klusterlet("Applied"), "False") << text;
  }
  loop_.run(put_secret("hub1", hub1_.bootstrap()));
  loop_.run_for(30s);
  EXPECT_EQ(switches("bootstrap_changed"), 0);
  EXPECT_EQ(condition_of_klusterlet("Applied"), "True");
}

TEST_F(KlusterletFaultsTest, WhatAHubSendsDoesNotOverwriteTheAdministratorsSecret) {
  const auto before = text_of_secret("hub1");
  std::vector<BootstrapConfig> list{hub1_.bootstrap("hub", "bootstrap2"), hub2_.bootstrap()};
  list[0].name = std::string{names::agent_namespace} + "/hub1";
  list[1].name = std::string{names::agent_namespace} + "/hub2";
  auto put = [&]() -> Awaitable<> {
    auto written = co_await resource_store_->put_bootstraps(list, std::nullopt);
    EXPECT_TRUE(written) << written.error();
  };
  loop_.run(put());
  loop_.run_for(1s);
  EXPECT_EQ(text_of_secret("hub1"), before) << "GitOps would write it back, and the agent again";
  ASSERT_EQ(resource_store_->bootstraps().size(), 2U);
  EXPECT_FALSE(resource_store_->bootstraps()[0].sent)
      << "its credential was renewed, it is still the administrator's hub";
  EXPECT_EQ(resource_store_->bootstraps()[0].kubeconfig, list[0].kubeconfig) << "the fresh credential is used";
  // An administrator who edits it later has the last word.
  loop_.run(put_secret("hub1", hub1_.bootstrap("hub", "bootstrap3")));
  loop_.run_for(1s);
  EXPECT_EQ(resource_store_->bootstraps()[0].kubeconfig, hub1_.bootstrap("hub", "bootstrap3").kubeconfig);
}

TEST_F(KlusterletFaultsTest, ADeletedHubKubeconfigSecretIsWrittenAgainWithANewCertificate) {
  auto& agent = start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(1min);
  loop_.run(remove_secret("hub-kubeconfig-secret"));
  ASSERT_TRUE(until([&] { return !text_of_secret("hub-kubeconfig-secret").empty(); }, 1min));
  EXPECT_EQ(agent.view().hub, hub1_.url());
  EXPECT_EQ(hub1_.requests().size(), 2U) << "as upstream: deleting it is how an administrator gets a new certificate";
  EXPECT_EQ(switches("bootstrap_changed"), 0);
}

// Its namespace is being deleted, for example, or a quota is used up.
TEST_F(KlusterletFaultsTest, ADeletedSecretThatCannotBeWrittenAgainCostsOneRequest) {
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  own_.faults().on({"create", "secrets"}).always().fail(403);
  loop_.run(remove_secret("hub-kubeconfig-secret"));
  loop_.run_for(10min);
  EXPECT_EQ(hub1_.requests().size(), 2U);
  EXPECT_EQ(agents_.back()->view().phase, "Joined");
  own_.faults().clear();
  EXPECT_TRUE(until([&] { return !text_of_secret("hub-kubeconfig-secret").empty(); }, 2min));
  loop_.run_for(1min);
  EXPECT_EQ(hub1_.requests().size(), 2U);
}

TEST_F(KlusterletFaultsTest, EditedExternalServerUrlsReachTheHub) {
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(patch_spec(R"({"externalServerURLs": [{"url": "https://api.example:6443"}]})"));
  loop_.run_for(30s);
  EXPECT_THAT(json::serialize(hub1_.cluster("cluster1")->json()), HasSubstr("https://api.example:6443"));
}

TEST_F(KlusterletFaultsTest, ADeletedManagedClusterIsReportedAtOnce) {
  start_on_klusterlet();
  ASSERT_TRUE(until_available(hub1_));
  ASSERT_TRUE(until([&] { return condition_of_klusterlet("HubConnectionDegraded") == "False"; }, 10s));
  loop_.run(hub1_.must(hub1_.server.api().remove(ocm::managed_clusters, {{}, "cluster1"})));
  EXPECT_TRUE(until([&] { return condition_of_klusterlet("HubConnectionDegraded") == "True"; }, 5s));
  EXPECT_EQ(condition_of_klusterlet("HubConnectionDegraded", "reason"), "ManagedClusterMissing");
}

/// What follow() has started, with the cluster's name, and what it has ended.
class FollowedKlusterletTest : public KlusterletStoreTest {
 protected:
  FollowedKlusterletTest() {
    auto work = [this](std::string cluster) -> Awaitable<> {
      runs_.push_back(cluster);
      ++running_;
      struct Ended {
        int& running;
        ~Ended() { --running; }
      } ended{running_};
      co_await loop_.clock().sleep_until(async::never);
    };
    store_scope_->spawn(resource_store_->follow(work));
    loop_.run_for(1s);
  }

  Awaitable<> remove_klusterlet() { co_await hub1_.must(own_.api().remove(ocm::klusterlets, {{}, "klusterlet"})); }
  Awaitable<> create_klusterlet() {
    auto klusterlet = json::parse(R"({"metadata": {"name": "klusterlet"}, "spec": {"clusterName": "cluster1"}})");
    co_await hub1_.must(own_.api().create(ocm::klusterlets, klusterlet.as_object()));
  }

  std::vector<std::string> runs_;
  int running_ = 0;
};

TEST_F(FollowedKlusterletTest, ANewClusterNameStartsTheAgentAnew) {
  EXPECT_THAT(runs_, testing::ElementsAre("cluster1"));
  loop_.run(patch_spec(R"({"clusterName": "cluster2"})"));
  loop_.run_for(1s);
  EXPECT_THAT(runs_, testing::ElementsAre("cluster1", "cluster2"));
  EXPECT_EQ(running_, 1);
}

TEST_F(FollowedKlusterletTest, ADeletedKlusterletStopsTheAgentUntilThereIsOneAgain) {
  loop_.run(remove_klusterlet());
  loop_.run_for(5s);
  EXPECT_EQ(running_, 1) << "it may be about to be created again";
  loop_.run_for(10s);
  EXPECT_EQ(running_, 0);
  loop_.run_for(1h);
  loop_.run(create_klusterlet());
  loop_.run_for(1s);
  EXPECT_EQ(running_, 1);
}

TEST_F(FollowedKlusterletTest, AKlusterletThatIsReplacedByForceDoesNotStopTheAgent) {
  loop_.run(remove_klusterlet());
  loop_.run_for(3s);
  loop_.run(create_klusterlet());
  loop_.run_for(1min);
  EXPECT_THAT(runs_, testing::ElementsAre("cluster1"));
  EXPECT_EQ(running_, 1);
}

TEST_F(KlusterletFaultsTest, WhatAHubSentIsDeletedWhenALaterListDoesNotNameIt) {
  const auto put = [&](std::vector<std::string> hubs) {
    std::vector<BootstrapConfig> list;
    for (const auto& name : hubs) {
      list.push_back(name == "hub1" ? hub1_.bootstrap() : hub2_.bootstrap("hub", name));
      list.back().name = name;
      list.back().sent = true;
    }
    auto write = [&]() -> Awaitable<> {
      auto written = co_await resource_store_->put_bootstraps(list, std::nullopt);
      EXPECT_TRUE(written) << written.error();
    };
    loop_.run(write());
    loop_.run_for(1s);
  };
  put({"hub1", "sent1"});
  EXPECT_FALSE(text_of_secret("sent1").empty());
  EXPECT_TRUE(resource_store_->bootstraps()[1].sent);
  put({"hub1", "sent2"});
  EXPECT_TRUE(text_of_secret("sent1").empty());
  EXPECT_FALSE(text_of_secret("sent2").empty());
  EXPECT_FALSE(text_of_secret("hub2").empty()) << "the administrator's own stays";
}

}  // namespace
}  // namespace hubferry::klusterlet::test
