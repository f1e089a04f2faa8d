#include "hub_test.hpp"
#include "hubferry/kube/base64.hpp"

/// By the admin kubeconfig that the source has of a cluster. The whole of it is in tests/migration/workloads_test.cpp.
namespace hubferry::hubagent {
namespace {

class AgentRestartTest : public HubTest {
 protected:
  Awaitable<> put_claimed_cluster(std::string name) {
    co_await put_cluster(*hub1_, name);
    json::object annotations{{ocm::names::migrating_annotation, migration_.uid}};
    json::object body{{"metadata", json::object{{"annotations", std::move(annotations)}}}};
    co_await patch(*hub1_, ocm::managed_clusters, Key{{}, name}, json::serialize(body));
    const std::string kubeconfig =
        R"({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "h", "user": "u"}}],
            "clusters": [{"name": "h", "cluster": {"server": "https://)" +
        name + R"(.example"}}], "users": [{"name": "u", "user": {"token": "t"}}]})";
    json::object secret;
    secret["metadata"] = json::object{{"name", name + "-admin-kubeconfig"}, {"namespace", name}};
    secret["data"] = json::object{{"kubeconfig", kube::encode_base64(kubeconfig)}};
    co_await put(*hub1_, kube::resources::secrets, std::move(secret));
  }
};

// Its certificate and key may not belong together, for example.
TEST_F(AgentRestartTest, AnUnusableKubeconfigOfOneClusterDoesNotKeepOthersFromTheirRestart) {
  sim::Server cluster{sim::Options{.name = "c2", .seed = 1, .latency = {}}, env_};
  HubOptions options;
  options.connect_cluster = [&](const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
    if (config.server == "https://c1.example") throw kube::ConfigError{"the key does not belong to the certificate"};
    return {std::shared_ptr<void>{}, &cluster.api()};
  };
  const auto hub = std::make_shared<Hub>("hub1", hub1_->api, std::move(options), env_);
  const auto source = make_source_hub(hub);
  run([&]() -> Awaitable<> {
    for (const auto* name : {"c1", "c2"}) co_await put_claimed_cluster(name);
    auto outcome = co_await source->restart_agents(migration_, {"c1", "c2"});
    CO_ASSERT_TRUE(outcome);
    std::map<std::string, std::string> problems;
    for (const auto& failed : outcome->failed) problems[failed.cluster] = failed.message;
    EXPECT_THAT(problems["c1"], HasSubstr("the key does not belong to the certificate"));
    EXPECT_THAT(problems["c2"], HasSubstr("it has no pods of the klusterlet's agents"));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
