#include "hubferry/klusterlet/cluster_facts.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/sim/crds.hpp"
#include "klusterlet/quantity.hpp"
#include "klusterlet_test.hpp"

// What the agent reports about its own cluster: ClusterClaims, capacity and allocatable resources.
namespace hubferry::klusterlet::test {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::Pair;

std::string sum(std::initializer_list<const char*> texts) {
  Quantity total;
  for (const auto* text : texts) {
    const auto quantity = Quantity::parse(text);
    EXPECT_TRUE(quantity) << text;
    if (quantity) total.add(*quantity);
  }
  return total.text();
}

// The expected texts are those of Kubernetes' resource.Quantity.
TEST(QuantityTest, SumsAreWrittenAsKubernetesWritesThem) {
  EXPECT_EQ(sum({"4", "4"}), "8");
  EXPECT_EQ(sum({"500m", "500m"}), "1");
  EXPECT_EQ(sum({"3920m", "4"}), "7920m");
  EXPECT_EQ(sum({"16Gi", "16Gi"}), "32Gi");
  EXPECT_EQ(sum({"16393052Ki", "16393052Ki"}), "32786104Ki");
  EXPECT_EQ(sum({"512Mi", "512Mi"}), "1Gi");
  EXPECT_EQ(sum({"1000", "1000"}), "2k");
  EXPECT_EQ(sum({"1e3", "0.5"}), "1000500m");
  EXPECT_EQ(sum({"1Ki"}), "1Ki");
  EXPECT_EQ(sum({"0.5Ki"}), "512");
  EXPECT_EQ(sum({"0", "1Gi"}), "1Gi");
  EXPECT_EQ(sum({"1Gi", "1"}), "1073741825");
  EXPECT_EQ(sum({}), "0");
  EXPECT_EQ(sum({"7Ei", "7Ei", "7Ei"}), "21Ei");
}

TEST(QuantityTest, OtherTextsAreNoQuantities) {
  for (const auto* text : {"", "Gi", "1X", "1e", "1e99", "-", "1.2.3", "12345678901234567890", "9999999999999999999Ei"})
    EXPECT_FALSE(Quantity::parse(text)) << text;
}

class ClusterFactsTest : public KlusterletTest {
 protected:
  ~ClusterFactsTest() override { stop_all(); }

  void install_crds() { loop_.run(sim::install_crds(own_.api(), env_)); }

  void put(const kube::Resource& resource, const std::string& text) {
    loop_.run(hub1_.must(own_.api().create(resource, json::parse(text).as_object())));
  }
  void patch(const kube::Resource& resource, const std::string& name, const std::string& text,
             const std::string& subresource = {}) {
    loop_.run(hub1_.must(own_.api().merge_patch(resource, {{}, name}, json::parse(text).as_object(), subresource)));
  }
  void claim(const std::string& name, const std::string& value, const std::string& labels = "{}") {
    put(cluster_claims, R"({"metadata": {"name": ")" + name + R"(", "labels": )" + labels +
                            R"(}, "spec": {"value": ")" + value + R"("}})");
  }
  void node(const std::string& name, const std::string& cpu, const std::string& memory,
            const std::string& spec = "{}") {
    put(nodes, R"({"metadata": {"name": ")" + name + R"("}, "spec": )" + spec + "}");
    const auto resources = R"({"cpu": ")" + cpu + R"(", "memory": ")" + memory + R"("})";
    patch(nodes, name, R"({"status": {"capacity": )" + resources + R"(, "allocatable": )" + resources + "}}", "status");
  }

  Agent& start_with_facts(ClusterFactsOptions facts_options = {}) {
    facts_.emplace(own_.api(), facts_options, env_);
    scope_.spawn(facts_->run());
    auto agent_options = options();
    agent_options.facts = &*facts_;
    return start(agent_options);
  }

  std::vector<std::pair<std::string, std::string>> claims_at(const Hub& hub) const {
    std::vector<std::pair<std::string, std::string>> all;
    const auto cluster = hub.cluster("cluster1");
    const auto* list = cluster ? cluster->find({"status", "clusterClaims"}) : nullptr;
    if (list == nullptr) return {{"absent", ""}};
    for (const auto& entry : list->as_array())
      all.emplace_back(entry.at("name").as_string(), entry.at("value").as_string());
    return all;
  }
  std::string status_at(const Hub& hub, std::initializer_list<std::string_view> path) const {
    const auto cluster = hub.cluster("cluster1");
    const auto* found = cluster ? cluster->find({"status"}) : nullptr;
    for (const auto part : path) found = found == nullptr ? nullptr : found->as_object().if_contains(part);
    if (found == nullptr) return "absent";
    return found->is_string() ? std::string{found->as_string()} : json::serialize(*found);
  }

  sim::Server own_{{}, env_};
  std::optional<ClusterFactsWatch> facts_;
};

TEST_F(ClusterFactsTest, ClaimsAreReportedReservedOnesFirstAndSpokeOnlyOnesNot) {
  install_crds();
  claim("id.k8s.io", "3f6c");
  claim("product.open-cluster-management.io", "Kubernetes");
  claim("a-region", "north");
  claim("secret-of-the-spoke", "x", R"({"open-cluster-management.io/spoke-only": ""})");
  start_with_facts();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(10s);
  EXPECT_THAT(claims_at(hub1_),
              ElementsAre(Pair("id.k8s.io", "3f6c"), Pair("product.open-cluster-management.io", "Kubernetes"),
                          Pair("a-region", "north")));
}

TEST_F(ClusterFactsTest, OnlyCustomClaimsAreLimited) {
  install_crds();
  for (const auto* name : {"z1", "z2", "z3", "one.example.com", "id.k8s.io"}) claim(name, "v");
  ClusterFactsOptions limits;
  limits.most_custom_claims = 2;
  limits.reserved_suffixes = {".example.com"};
  start_with_facts(limits);
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(10s);
  EXPECT_THAT(claims_at(hub1_),
              ElementsAre(Pair("id.k8s.io", "v"), Pair("one.example.com", "v"), Pair("z1", "v"), Pair("z2", "v")));
}

TEST_F(ClusterFactsTest, AChangedClaimReachesTheHubWithinSecondsAndADeletedOneLeavesIt) {
  install_crds();
  claim("region", "north");
  start_with_facts();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(10s);
  patch(cluster_claims, "region", R"({"spec": {"value": "south"}})");
  loop_.run_for(6s);
  EXPECT_THAT(claims_at(hub1_), ElementsAre(Pair("region", "south")));
  loop_.run(hub1_.must(own_.api().remove(cluster_claims, {{}, "region"})));
  loop_.run_for(6s);
  EXPECT_THAT(claims_at(hub1_), ElementsAre());
}

TEST_F(ClusterFactsTest, CapacityIsTheSumOfAllNodesAllocatableThatOfTheSchedulableOnes) {
  install_crds();
  node("n1", "4", "16393052Ki");
  node("n2", "3500m", "16Gi");
  node("n3", "8", "32Gi", R"({"unschedulable": true})");
  start_with_facts();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(10s);
  EXPECT_EQ(status_at(hub1_, {"capacity", "cpu"}), "15500m");
  EXPECT_EQ(status_at(hub1_, {"capacity", "memory"}), "66724700Ki");
  EXPECT_EQ(status_at(hub1_, {"allocatable", "cpu"}), "7500m");
  EXPECT_EQ(status_at(hub1_, {"allocatable", "memory"}), "33170268Ki");
}

// Other components add entries of their own, as upstream's agent allows them to.
TEST_F(ClusterFactsTest, CapacityThatOthersReportedStays) {
  install_crds();
  node("n1", "4", "16Gi");
  start_with_facts();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub1_.must(hub1_.server.api().merge_patch(
      ocm::managed_clusters, {{}, "cluster1"},
      json::parse(R"({"status": {"capacity": {"socket_worker": "2"}}})").as_object(), "status")));
  node("n2", "4", "16Gi");
  loop_.run_for(10s);
  EXPECT_EQ(status_at(hub1_, {"capacity", "cpu"}), "8");
  EXPECT_EQ(status_at(hub1_, {"capacity", "socket_worker"}), "2");
}

TEST_F(ClusterFactsTest, NodeHeartbeatsCauseNoWriteOnTheHub) {
  install_crds();
  node("n1", "4", "16Gi");
  start_with_facts();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(1min);
  hub1_.server.forget_requests();
  for (int beat = 0; beat < 30; ++beat) {
    patch(nodes, "n1",
          R"({"status": {"conditions": [{"type": "Ready", "status": "True", "message": ")" + std::to_string(beat) +
              R"("}]}})",
          "status");
    loop_.run_for(10s);
  }
  EXPECT_EQ(hub1_.count("update", "managedclusters"), 0U);
  EXPECT_EQ(hub1_.count("patch", "managedclusters"), 0U);
  EXPECT_EQ(hub1_.count("get", "managedclusters"), 0U);
}

TEST_F(ClusterFactsTest, ManyNodesThatChangeOneAfterAnotherCauseFewWrites) {
  install_crds();
  start_with_facts();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(1min);
  hub1_.server.forget_requests();
  for (int number = 0; number < 100; ++number) {
    node("n" + std::to_string(number), "4", "16Gi");
    loop_.run_for(100ms);
  }
  loop_.run_for(10s);
  EXPECT_EQ(status_at(hub1_, {"capacity", "cpu"}), "400");
  EXPECT_LE(hub1_.count("update", "managedclusters") + hub1_.count("patch", "managedclusters"), 4U);
}

TEST_F(ClusterFactsTest, WithoutTheCrdThereAreNoClaimsUntilItIsInstalled) {
  start_with_facts();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(1min);
  EXPECT_THAT(claims_at(hub1_), ElementsAre(Pair("absent", "")));
  install_crds();
  claim("region", "north");
  loop_.run_for(6min);
  EXPECT_THAT(claims_at(hub1_), ElementsAre(Pair("region", "north")));
}

// Facts that cannot be read must not erase what the hub knows.
TEST_F(ClusterFactsTest, AnUnreachableOwnClusterChangesNothingOnTheHub) {
  install_crds();
  claim("region", "north");
  node("n1", "4", "16Gi");
  start_with_facts();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run_for(10s);
  own_.outage(true);
  loop_.run_for(10min);
  EXPECT_THAT(claims_at(hub1_), ElementsAre(Pair("region", "north")));
  EXPECT_EQ(status_at(hub1_, {"capacity", "cpu"}), "4");
}

TEST_F(ClusterFactsTest, TheNextHubGetsThemToo) {
  install_crds();
  claim("region", "north");
  node("n1", "4", "16Gi");
  start_with_facts();
  ASSERT_TRUE(until_available(hub1_));
  loop_.run(hub1_.accept("cluster1", false));
  ASSERT_TRUE(until_available(hub2_));
  loop_.run_for(5s);
  EXPECT_THAT(claims_at(hub2_), ElementsAre(Pair("region", "north")));
  EXPECT_EQ(status_at(hub2_, {"allocatable", "memory"}), "16Gi");
}

}  // namespace
}  // namespace hubferry::klusterlet::test
