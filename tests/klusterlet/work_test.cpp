#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

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

using KlusterletWorkAgentTest = KlusterletTest;

TEST_F(KlusterletWorkAgentTest, TheHubInUseStaysInAListThatDoesNotNameIt) {
  KlusterletWork work;
  work.list = {hub2_.bootstrap()};
  const auto own = hub1_.bootstrap();
  EXPECT_EQ(merge_bootstraps({own}, work, own, hub1_.url()), (std::vector{hub2_.bootstrap(), own}));
  work.list = {hub1_.bootstrap("hub", "fresh"), hub2_.bootstrap()};
  EXPECT_EQ(merge_bootstraps({own}, work, own, hub1_.url()), work.list);
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

}  // namespace
}  // namespace hubferry::klusterlet::test
