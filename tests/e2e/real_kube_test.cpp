#include <boost/asio/io_context.hpp>
#include <fstream>
#include <future>

#include "controller_manager.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/klusterlet/agent.hpp"
#include "hubferry/kube/base64.hpp"
#include "stage.hpp"

/// Three real kube-apiservers: `hubferry sim` makes hubs of them, and `hubferry manager` moves clusters between them.
namespace hubferry::test {
namespace {

namespace asio = boost::asio;
using async::Awaitable;

constexpr int cluster_count = 10;

std::string cluster_name(int index) {
  return "cluster-" + std::to_string(100000 + index).substr(1);
}

/// A loop in a thread of its own: for what has to live beside the test.
class Background {
 public:
  Background() : scope_(context_.get_executor()), work_(asio::make_work_guard(context_)) {
    thread_ = std::thread{[this] { context_.run(); }};
  }
  ~Background() {
    asio::post(context_, [this] {
      scope_.stop();
      asio::co_spawn(context_, scope_.join(), [this](const std::exception_ptr&) { work_.reset(); });
    });
    thread_.join();
  }
  void spawn(std::function<Awaitable<>()> make) {
    asio::post(context_, [this, make = std::move(make)] { scope_.spawn(make()); });
  }
  async::Executor executor() { return context_.get_executor(); }
  kube::Env env() { return {clock_, random_, metrics_, obs::Logger{}}; }

 private:
  async::RealClock clock_;
  async::Random random_{3};
  obs::Metrics metrics_;
  asio::io_context context_{1};
  async::TaskScope scope_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

class RealKubeTest : public testing::Test {
 protected:
  RealKubeTest() {
    const char* folder = std::getenv("HUBFERRY_REAL_KUBE_DIR");
    if (folder == nullptr) throw std::runtime_error("run this by tests/real-kube/run --servers 3");
    folder_ = folder;
    for (const auto* name : {"global", "hub1", "hub2"}) {
      auto& api = apis_[name];
      kube::HttpApiOptions options;
      api = kube::make_http_api(kube::load_kubeconfig(kubeconfig(name)), options, background_.executor(),
                                background_.env());
      auto& manager =
          managers_.emplace_back(std::make_unique<ControllerManager>(*api, folder_ + "/" + name, background_.env()));
      background_.spawn([&manager = *manager] { return manager.run(); });
    }
  }

  [[nodiscard]] std::string kubeconfig(const std::string& name) const { return folder_ + "/" + name + ".kubeconfig"; }

  std::string kubectl(const std::string& server, const std::string& words) {
    const auto ran = run_kubectl(kubeconfig(server), folder_, words);
    EXPECT_EQ(ran.code, 0) << "kubectl " << words << "\n" << ran.output;
    return ran.output;
  }
  template <typename Condition>
  bool eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + 240s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(500ms);
    }
    return true;
  }
  std::size_t available(const std::string& hub) {
    const auto text = kubectl(hub,
                              "get managedclusters -o jsonpath='{range .items[*]}{.metadata.name}={.status."
                              "conditions[?(@.type==\"ManagedClusterConditionAvailable\")].status} {end}'");
    std::size_t count = 0;
    for (std::size_t at = text.find("=True"); at != std::string::npos; at = text.find("=True", at + 1)) ++count;
    return count;
  }

  /// Every cluster has an agent, which joins hub1 with the bootstrap kubeconfig of that hub.
  void start_agents() {
    const auto encoded = kubectl("hub1",
                                 "get manifestwork -n cluster-00001 cluster-00001-klusterlet -o jsonpath='{."
                                 "spec.workload.manifests[0].data.kubeconfig}'");
    const klusterlet::BootstrapConfig bootstrap{"bootstrap-hub-kubeconfig",
                                                obs::Secret{kube::decode_base64(encoded).value()}, std::nullopt};
    for (int index = 1; index <= cluster_count; ++index) {
      auto& store = stores_.emplace_back(std::make_unique<klusterlet::MemoryStore>(std::vector{bootstrap}));
      klusterlet::AgentOptions options;
      options.cluster_name = cluster_name(index);
      options.agent_name = "agent";
      options.connection_timeout = std::chrono::minutes{3};
      auto connect = [this](const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
        return kube::make_http_api(config, kube::HttpApiOptions{}, background_.executor(), background_.env());
      };
      auto& agent =
          agents_.emplace_back(std::make_unique<klusterlet::Agent>(options, *store, connect, background_.env()));
      background_.spawn([&agent = *agent] { return agent.run(); });
    }
  }

  /// Applies manifests, and gives a kubeconfig with a token of one of their accounts.
  std::string kubeconfig_of(const std::string& server, const std::vector<std::string>& manifests,
                            const std::string& account) {
    for (const auto& file : manifests) kubectl(server, "apply -f " HUBFERRY_SOURCE_ROOT "/manifests/" + file);
    kube::Request request;
    request.verb = kube::Verb::create;
    request.resource = kube::resources::service_accounts;
    request.key = {"hubferry-system", account};
    request.subresource = "token";
    request.body = kube::json::object{{"apiVersion", "authentication.k8s.io/v1"},
                                      {"kind", "TokenRequest"},
                                      {"spec", kube::json::object{{"expirationSeconds", 3600}}}};
    RealLoop loop;
    const auto answer = loop.run(apis_[server]->call(request)).value();
    auto config = kube::load_kubeconfig(kubeconfig(server));
    config.token = answer.string_at({"status", "token"});
    EXPECT_NE(config.token, "");
    return kube::to_kubeconfig(config);
  }

  /// From here on the manager may do what manifests/ says, and no more. Returns its kubeconfig for the global hub.
  std::string restrict_manager() {
    for (const auto* hub : {"hub1", "hub2"}) {
      const auto config = kubeconfig_of(hub,
                                        {"hub-rbac/account.yaml", "hub-rbac/source.yaml", "hub-rbac/target.yaml",
                                         "hub-rbac/clusters.yaml", "hub-rbac/approval/role.yaml"},
                                        "hubferry-hub");
      // Each cluster by name, on either side; a namespace that is missing on the target has to be created.
      const bool is_source = hub == std::string_view{"hub1"};
      for (int index = 1; index <= cluster_count; ++index) {
        if (!is_source) kubectl(hub, "create namespace " + cluster_name(index));
        kubectl(hub, "create rolebinding hubferry -n " + cluster_name(index) + " --clusterrole hubferry-" +
                         (is_source ? "source" : "target") + "-cluster --serviceaccount hubferry-system:hubferry-hub");
      }
      kubectl("global", "patch secret hub-kubeconfig -n " + std::string{hub} +
                            " --type=merge -p '{\"data\":{\"kubeconfig\":\"" + kube::encode_base64(config) + "\"}}'");
    }
    const auto file = folder_ + "/manager.kubeconfig";
    kubectl("global",
            "create rolebinding hubferry-ledger -n default --clusterrole hubferry-ledger "
            "--serviceaccount hubferry-system:hubferry");
    std::ofstream{file} << kubeconfig_of(
        "global", {"base/namespace.yaml", "base/service-account.yaml", "base/cluster-role.yaml", "base/role.yaml"},
        "hubferry");
    return file;
  }

  std::string folder_;
  std::map<std::string, std::unique_ptr<kube::Api>> apis_;
  std::vector<std::unique_ptr<ControllerManager>> managers_;
  std::vector<std::unique_ptr<klusterlet::MemoryStore>> stores_;
  std::vector<std::unique_ptr<klusterlet::Agent>> agents_;
  Background background_;
};

TEST_F(RealKubeTest, TenClustersMoveFromOneRealHubToAnother) {
  Process sim{{hubferry_binary(), "sim", "--attach", kubeconfig("global"), "--attach", kubeconfig("hub1"), "--attach",
               kubeconfig("hub2"), "--clusters=10", "--log-format=json", "-o", "json"}};
  sim.await_error_text("\"ready\"");
  ASSERT_TRUE(
      eventually([&] { return kubectl("hub1", "get manifestworks -A").find("cluster-00010") != std::string::npos; }));
  start_agents();
  ASSERT_TRUE(eventually([&] {
    const auto works = kubectl(
        "hub1", "get manifestworks -A -o jsonpath='{.items[*].status.conditions[?(@.type==\"Applied\")].status}'");
    return std::count(works.begin(), works.end(), 'T') == cluster_count;
  })) << "the agents did not join hub1";

  Process manager{{hubferry_binary(), "manager", "--kubeconfig=" + restrict_manager(), "--leader-elect",
                   "--namespace=hubferry-system", "--metrics-bind-address=0", "--health-probe-bind-address=0",
                   "--log-format=json"}};
  const auto file = folder_ + "/migration.yaml";
  std::ofstream{file} << migration_manifest("m1", 1, 5) << migration_manifest("m2", 6, 5);
  kubectl("global", "apply -f " + file);
  const auto phase = [&](const std::string& name) {
    return kubectl("global", "get mcm " + name + " -o jsonpath='{.status.phase}'");
  };
  EXPECT_TRUE(eventually([&] { return phase("m1") == "Completed" && phase("m2") == "Completed"; }))
      << kubectl("global", "describe mcm") << manager.err();
  EXPECT_EQ(available("hub2"), static_cast<std::size_t>(cluster_count));
  EXPECT_THAT(kubectl("hub1", "get managedclusters"), testing::HasSubstr("No resources found"));
  EXPECT_THAT(kubectl("global", "describe mcm m1"), testing::HasSubstr("Cleaning"));
  for (const auto* kind : {"klusterletconfigs", "secrets -n multicluster-engine -l hubferry.io/migration"})
    EXPECT_THAT(kubectl("hub1", std::string{"get "} + kind), testing::HasSubstr("No resources found")) << kind;
  for (const auto* kind : {"clusterroles", "clusterrolebindings", "serviceaccounts -A"})
    EXPECT_THAT(kubectl("hub2", std::string{"get "} + kind + " -l hubferry.io/migration"),
                testing::HasSubstr("No resources found"))
        << kind;
  EXPECT_THAT(kubectl("global", "get managedserviceaccounts -A"), testing::HasSubstr("No resources found"));
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0);
  EXPECT_THAT(manager.err(), testing::Not(testing::HasSubstr("forbidden"))) << "manifests/ grants too little";
  sim.signal(SIGTERM);
  EXPECT_EQ(sim.wait(), 0);
}

}  // namespace
}  // namespace hubferry::test
