#include <gmock/gmock.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "flaky_store.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/session.hpp"
#include "klusterlet_test.hpp"

namespace hubferry::klusterlet::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

kube::Object work_of(const char* manifests) {
  return kube::Object{boost::json::parse(std::string{R"({"metadata": {"name": "c-klusterlet", "namespace": "c"},
    "spec": {"workload": {"manifests": )"} +
                                         manifests + "}}}")
                          .as_object()};
}

std::vector<std::string> names_in(const std::vector<BootstrapConfig>& list) {
  std::vector<std::string> names;
  for (const auto& entry : list) names.push_back(entry.name);
  return names;
}

TEST(KlusterletWorkTest, TheListIsReadInItsOrder) {
  const auto work = read_klusterlet_work(work_of(R"([
    {"kind": "Secret", "metadata": {"name": "two"}, "data": {"kubeconfig": "dHdv"}},
    {"kind": "Secret", "metadata": {"name": "bootstrap-hub-kubeconfig"}, "stringData": {"kubeconfig": "own"}},
    {"kind": "Secret", "metadata": {"name": "unrelated"}, "data": {"kubeconfig": "eA=="}},
    {"kind": "Klusterlet", "spec": {"registrationConfiguration": {"bootstrapKubeConfigs": {"localSecretsConfig":
      {"hubConnectionTimeoutSeconds": 180, "kubeConfigSecrets":
        [{"name": "bootstrap-hub-kubeconfig"}, {"name": "missing"}, {"name": "two"}]}}}}}])"));
  EXPECT_THAT(names_in(work.list), ElementsAre("bootstrap-hub-kubeconfig", "two"));
  EXPECT_EQ(work.list[0].kubeconfig.reveal(), "own");
  EXPECT_EQ(work.list[1].kubeconfig.reveal(), "two");
  EXPECT_EQ(work.timeout, std::chrono::seconds{180});
  EXPECT_TRUE(work.own);
}

TEST(KlusterletWorkTest, MalformedPartsAreIgnored) {
  for (const auto* manifests :
       {"[]", "{}", "null", "[1, null, \"a\"]", R"([{"kind": "Klusterlet"}])",
        R"([{"kind": "Klusterlet", "spec": {"registrationConfiguration": {"bootstrapKubeConfigs":
           {"localSecretsConfig": {"kubeConfigSecrets": [1, {}, {"name": 5}]}}}}}])",
        R"([{"kind": "Secret", "metadata": {"name": "bootstrap-hub-kubeconfig"}, "data": {"kubeconfig": "%%%"}}])"}) {
    const auto work = read_klusterlet_work(work_of(manifests));
    EXPECT_THAT(work.list, IsEmpty()) << manifests;
    EXPECT_FALSE(work.own) << manifests;
  }
  EXPECT_THAT(read_klusterlet_work(kube::Object{}).list, IsEmpty());
}

// Nobody has validated the Klusterlet in a work. A second is a storm of heartbeats, and for ever is no timeout.
TEST(KlusterletWorkTest, ATimeoutIsOneThatAKlusterletMayHave) {
  const auto timeout_of = [](const std::string& seconds) {
    return read_klusterlet_work(work_of((R"([{"kind": "Klusterlet", "spec": {"registrationConfiguration":
        {"bootstrapKubeConfigs": {"localSecretsConfig": {"kubeConfigSecrets": [], "hubConnectionTimeoutSeconds": )" +
                                         seconds + "}}}}}]")
                                            .c_str()))
        .timeout;
  };
  EXPECT_EQ(timeout_of("1"), 180s);
  EXPECT_EQ(timeout_of("300"), 300s);
  EXPECT_EQ(timeout_of("9000000000000000000"), 2147483647s);
  EXPECT_EQ(timeout_of("-5"), std::nullopt);
}

class KlusterletWorkAgentTest : public KlusterletTest {
 protected:
  ~KlusterletWorkAgentTest() override { stop_all(); }

  FlakyStore picky_{{hub1_.bootstrap()}, loop_.clock()};
};

std::vector<BootstrapConfig> as_sent(std::vector<BootstrapConfig> list) {
  for (auto& entry : list) entry.sent = true;
  return list;
}

// Then it would be without any when that hub is lost.
TEST_F(KlusterletWorkAgentTest, AListWithoutAnotherHubDoesNotReplaceTheOneThatTheAgentHas) {
  const std::vector known{hub1_.bootstrap(), hub2_.bootstrap()};
  KlusterletWork work;
  work.list = {hub1_.bootstrap("hub", "fresh")};
  EXPECT_EQ(merge_bootstraps(known, work, known[0], hub1_.url()), known);
  const BootstrapConfig garbage{"garbage", obs::Secret{"{"}, std::nullopt};
  work.list = {garbage, hub1_.bootstrap(), garbage};
  EXPECT_EQ(merge_bootstraps(known, work, known[0], hub1_.url()), known);
  work.list = {garbage, hub2_.bootstrap()};
  EXPECT_EQ(merge_bootstraps(known, work, known[0], hub1_.url()), as_sent({hub2_.bootstrap(), hub1_.bootstrap()}));
}

TEST_F(KlusterletWorkAgentTest, TheHubInUseStaysInAListThatDoesNotNameIt) {
  KlusterletWork work;
  work.list = {hub2_.bootstrap()};
  const auto own = hub1_.bootstrap();
  EXPECT_EQ(merge_bootstraps({own}, work, own, hub1_.url()), as_sent({hub2_.bootstrap(), own}));
  work.list = {hub1_.bootstrap("hub", "fresh"), hub2_.bootstrap()};
  EXPECT_EQ(merge_bootstraps({own}, work, own, hub1_.url()), as_sent(work.list));
}

TEST_F(KlusterletWorkAgentTest, AFreshCredentialReplacesTheOldOneOfTheSameHubOnly) {
  KlusterletWork work;
  work.own = hub2_.bootstrap("hub", "fresh");
  const std::vector list{hub1_.bootstrap(), hub2_.bootstrap()};
  auto merged = merge_bootstraps(list, work, hub2_.bootstrap(), hub2_.url());
  EXPECT_EQ(merged[0], list[0]);
  EXPECT_EQ(merged[1].kubeconfig, work.own->kubeconfig);
  EXPECT_EQ(merge_bootstraps({hub1_.bootstrap()}, work, hub1_.bootstrap(), hub1_.url()),
            std::vector{hub1_.bootstrap()});
  EXPECT_EQ(merge_bootstraps(list, KlusterletWork{}, list[0], hub1_.url()), list);
}

/// A work with a list of these hubs.
kube::json::object listing(const std::vector<BootstrapConfig>& hubs) {
  kube::json::array manifests;
  kube::json::array secrets;
  for (const auto& hub : hubs) {
    secrets.push_back(kube::json::object{{"name", hub.name}});
    manifests.push_back(
        kube::json::object{{"kind", "Secret"},
                           {"metadata", kube::json::object{{"name", hub.name}}},
                           {"stringData", kube::json::object{{"kubeconfig", hub.kubeconfig.reveal()}}}});
  }
  auto klusterlet = kube::json::parse(R"({"kind": "Klusterlet", "spec": {"registrationConfiguration":
    {"bootstrapKubeConfigs": {"localSecretsConfig": {}}}}})");
  klusterlet.at("spec")
      .at("registrationConfiguration")
      .at("bootstrapKubeConfigs")
      .at("localSecretsConfig")
      .as_object() = {{"kubeConfigSecrets", std::move(secrets)}};
  manifests.push_back(std::move(klusterlet));
  return {{"metadata", kube::json::object{{"name", "cluster1-klusterlet"}, {"namespace", "cluster1"}}},
          {"spec", kube::json::object{{"workload", kube::json::object{{"manifests", std::move(manifests)}}}}}};
}

// A Secret's name with capital letters, for example: the hub corrects it, and nobody restarts the agent.
TEST_F(KlusterletWorkAgentTest, AListThatCannotBeStoredIsReplacedByItsCorrection) {
  picky_.refused_name = "Hub2";
  agents_.push_back(std::make_unique<Agent>(options(), picky_, connect(), env_));
  agent_scope_.emplace(loop_.executor());
  agent_scope_->spawn(agents_.back()->run());
  ASSERT_TRUE(until_available(hub1_));
  auto wrong = hub2_.bootstrap();
  wrong.name = picky_.refused_name;
  auto& api = hub1_.server.api();
  loop_.run(hub1_.must(api.create(ocm::manifest_works, listing({hub1_.bootstrap(), wrong}))));
  loop_.run_for(5min);
  EXPECT_EQ(picky_.bootstraps().size(), 1U);
  kube::json::object correction{{"spec", listing({hub1_.bootstrap(), hub2_.bootstrap()}).at("spec")}};
  const kube::Key key{"cluster1", "cluster1-klusterlet"};
  loop_.run(hub1_.must(api.merge_patch(ocm::manifest_works, key, std::move(correction))));
  EXPECT_TRUE(until([&] { return picky_.bootstraps().size() == 2; }, 2min));
}

// As an agent that takes a while to apply a work: nothing follows a conflict with no other version.
TEST_F(KlusterletWorkAgentTest, AWorkIsReportedAsAppliedAfterAConflictThatNoOtherVersionCaused) {
  auto slow = options();
  slow.work_apply_time = 1s;
  start(slow);
  ASSERT_TRUE(until_available(hub1_));
  hub1_.server.faults().on({.verb = "write", .resource = "manifestworks", .subresource = "status"}).times(2).fail(409);
  auto& api = hub1_.server.api();
  loop_.run(hub1_.must(api.create(ocm::manifest_works, listing({hub1_.bootstrap(), hub2_.bootstrap()}))));
  const auto is_applied = [&] {
    const auto work = hub1_.server.object(ocm::manifest_works, {"cluster1", "cluster1-klusterlet"});
    return work && kube::is_condition_true(*work, "Applied");
  };
  EXPECT_TRUE(until(is_applied, 2min));
  EXPECT_TRUE(hub1_.server.faults().script_exhausted());
}

// The import controller renews the credential of its own hub, with a Klusterlet that has no list.
TEST_F(KlusterletWorkAgentTest, AHubThatRenewsItsOwnCredentialDoesNotDisqualifyTheOtherConfiguredHubs) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  const auto send = [&](const std::string& token) {
    auto work = work_of(R"([{"kind": "Klusterlet", "spec": {}}])").json();
    work["metadata"] = kube::json::object{{"name", "cluster1-klusterlet"}, {"namespace", "cluster1"}};
    kube::json::object secret{
        {"kind", "Secret"},
        {"metadata", kube::json::object{{"name", "bootstrap-hub-kubeconfig"}}},
        {"stringData", kube::json::object{{"kubeconfig", hub1_.bootstrap("hub", token).kubeconfig.reveal()}}}};
    work["spec"].at("workload").at("manifests").as_array().push_back(std::move(secret));
    auto& api = hub1_.server.api();
    const kube::Key key{"cluster1", "cluster1-klusterlet"};
    if (hub1_.server.object(ocm::manifest_works, key)) loop_.run(hub1_.must(api.remove(ocm::manifest_works, key)));
    loop_.run(hub1_.must(api.create(ocm::manifest_works, std::move(work))));
    loop_.run_for(10s);
  };
  send("fresh");
  send("fresher");
  EXPECT_EQ(store_.bootstraps()[0].kubeconfig, hub1_.bootstrap("hub", "fresher").kubeconfig);
  EXPECT_FALSE(store_.bootstraps()[1].fallback) << "nothing was moved away from it";
  hub1_.server.outage(true);
  EXPECT_TRUE(until_available(hub2_, 20min)) << "it must be registered there, as the administrator wants it";
}

// The move was rolled back: the agent is on the hub that it had been moved away from.
TEST_F(KlusterletWorkAgentTest, AHubToWhichTheClusterCameBackIsNoFallbackAnyMore) {
  KlusterletWork work;
  work.has_klusterlet = true;
  auto list = as_sent({hub2_.bootstrap(), hub1_.bootstrap()});
  list[1].fallback = true;
  const auto merged = merge_bootstraps(list, work, hub1_.bootstrap(), hub1_.url());
  EXPECT_TRUE(merged[0].fallback);
  EXPECT_FALSE(merged[1].fallback) << "restored from a backup without the cluster, it would reject it for ever";
}

// A cluster that was moved: its old hub is no candidate any more once that has deleted it.
TEST_F(KlusterletWorkAgentTest, TheHubThatWasLeftIsAFallbackOnlyWhileItStillHasTheCluster) {
  KlusterletWork work;
  work.has_klusterlet = true;
  const auto list = as_sent({hub2_.bootstrap(), hub1_.bootstrap()});
  const auto merged = merge_bootstraps(list, work, hub2_.bootstrap(), hub2_.url());
  EXPECT_FALSE(merged[0].fallback);
  EXPECT_TRUE(merged[1].fallback);
  const std::vector configured{hub2_.bootstrap(), hub1_.bootstrap()};
  EXPECT_EQ(merge_bootstraps(configured, work, hub2_.bootstrap(), hub2_.url()), configured)
      << "the administrator's own list stays as it is";

  store_.set_bootstraps(merged);
  auto& agent = start();
  ASSERT_TRUE(until_available(hub2_));
  hub2_.server.outage(true);
  loop_.run_for(30min);
  EXPECT_FALSE(hub1_.cluster("cluster1")) << "it must not be registered anew with the hub that it was moved away from";
  EXPECT_NE(agent.view().problem.find("moved away"), std::string::npos) << agent.view().problem;
  // The move is rolled back: the old hub has the cluster.
  kube::json::object cluster{{"metadata", kube::json::object{{"name", "cluster1"}}},
                             {"spec", kube::json::object{{"hubAcceptsClient", true}}}};
  loop_.run(hub1_.must(hub1_.server.api().create(ocm::managed_clusters, std::move(cluster))));
  EXPECT_TRUE(until_available(hub1_, 3min));
}

}  // namespace
}  // namespace hubferry::klusterlet::test
