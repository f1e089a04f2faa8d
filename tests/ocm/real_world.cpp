// The behaviours on real hubs that somebody has started: see README.md.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hubferry/kube/http_api.hpp"
#include "ocm/behaviour.hpp"
#include "support/real_loop.hpp"

namespace hubferry::behaviour {

namespace {

namespace fs = std::filesystem;

/// The directory with the environment; empty: none was given.
fs::path environment() {
  const char* value = std::getenv("HUBFERRY_REAL_OCM");
  return value == nullptr ? "" : value;
}

std::string first_line(const fs::path& file, const std::string& otherwise) {
  std::ifstream in{file};
  std::string line;
  return std::getline(in, line) ? line : otherwise;
}

ImportController import_controller_of(const fs::path& directory) {
  const auto text = first_line(directory / "acm", "5.x");
  if (text == "2.17") return ImportController::mce_2_17;
  if (text == "5.x") return ImportController::mce_5_x;
  if (text == "none") return ImportController::none;
  throw std::runtime_error("the file acm says '" + text + "', not 2.17, 5.x or none");
}

const Resource pods{"", "v1", "pods", "Pod", true};

class RealOcmWorld final : public OcmWorld {
 public:
  explicit RealOcmWorld(fs::path directory)
      : directory_(std::move(directory)),
        cluster_(first_line(directory_ / "cluster", "cluster1")),
        kind_(import_controller_of(directory_)) {
    hub1_ = open("hub1");
    hub2_ = open("hub2");
    cluster_api_ = open(cluster_);
    loop_.run(read_grace());
  }

  Api& hub1() override { return *hub1_; }
  Api& hub2() override { return *hub2_; }
  [[nodiscard]] const std::string& cluster() const override { return cluster_; }
  Api& cluster_api() override { return *cluster_api_; }
  ClientConfig address_of(Api& hub) override {
    auto config = load_kubeconfig(file_of(&hub == hub1_.get() ? "hub1" : "hub2"));
    config.token.clear();
    config.client_certificate_pem.clear();
    config.client_key_pem.clear();
    return config;
  }
  std::shared_ptr<Api> connect(ClientConfig config) override {
    return make_http_api(std::move(config), {}, loop_.executor(), env());
  }
  Awaitable<> restart_agent() override {
    const auto program = directory_ / "restart-agent";
    if (fs::exists(program)) {
      const auto command = "'" + program.string() + "' '" + cluster_ + "'";
      if (std::system(command.c_str()) != 0) throw std::runtime_error("restart-agent failed");
      co_return;
    }
    ListOptions agents;
    agents.ns = names::agent_namespace;
    agents.label_selector = "app in (klusterlet-agent, klusterlet-registration-agent, klusterlet-manifestwork-agent)";
    auto found = co_await cluster_api_->list_all(pods, agents);
    if (found.value().empty()) throw std::runtime_error("the cluster has no pods of the klusterlet's agents");
    for (const auto& pod : *found) (void)co_await cluster_api_->remove(pods, pod.key());
  }
  [[nodiscard]] ImportController import_controller() const override { return kind_; }
  [[nodiscard]] Duration eviction_grace() const override { return grace_; }
  [[nodiscard]] bool differs(Difference) const override { return false; }
  Env env() override { return {clock_, random_, metrics_, {}}; }
  void run(Awaitable<> task) override { loop_.run(std::move(task)); }

 private:
  [[nodiscard]] fs::path file_of(const std::string& server) const { return directory_ / (server + ".kubeconfig"); }
  std::shared_ptr<Api> open(const std::string& server) { return connect(load_kubeconfig(file_of(server))); }

  Awaitable<> read_grace() {
    auto klusterlet = co_await cluster_api_->get(ocm::klusterlets, Key{{}, "klusterlet"});
    const auto text =
        klusterlet.value().string_at({"spec", "workConfiguration", "appliedManifestWorkEvictionGracePeriod"});
    if (text.starts_with("1m")) grace_ = 1min;
  }

  async::RealClock clock_;
  async::Random random_ = async::Random::from_entropy();
  obs::Metrics metrics_;
  test::RealLoop loop_;
  fs::path directory_;
  std::string cluster_;
  ImportController kind_;
  Duration grace_ = 60min;
  std::shared_ptr<Api> hub1_;
  std::shared_ptr<Api> hub2_;
  std::shared_ptr<Api> cluster_api_;
};

std::shared_ptr<OcmWorld> make_real() {
  return std::make_shared<RealOcmWorld>(environment());
}

const std::vector<Backend> real{{"RealHubs", make_real}};

/// Without an environment nothing is instantiated, and this test says so.
std::vector<Backend> given() {
  return environment().empty() ? std::vector<Backend>{} : real;
}

}  // namespace

TEST(RealOcm, AnEnvironmentIsGiven) {
  if (environment().empty()) GTEST_SKIP() << "no real hubs: ./dev test --real-ocm DIR";
  for (const char* server : {"global", "hub1", "hub2"})
    EXPECT_TRUE(fs::exists(environment() / (std::string{server} + ".kubeconfig"))) << server;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OcmBehaviour);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ImportBehaviour);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AgentBehaviour);

INSTANTIATE_OCM(OcmBehaviour, given());
INSTANTIATE_OCM(ImportBehaviour, given());
INSTANTIATE_OCM(AgentBehaviour, given());

}  // namespace hubferry::behaviour
