// Real processes: agents, and hubs that can be stopped and killed.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "hubferry/klusterlet/hub_secret.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "support/process.hpp"
#include "support/real_loop.hpp"
#include "support/tcp_client.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using namespace std::chrono_literals;
using async::Awaitable;
using testing::HasSubstr;
namespace json = boost::json;

// So that an unreachable hub is noticed within seconds; far above what a heartbeat takes on a busy machine.
constexpr int lease_seconds = 1;
constexpr const char* timeout_flag = "--hub-connection-timeout=15s";

std::string content_of(const std::string& file) {
  std::ifstream stream{file};
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// `hubferry sim` with one hub, and an administrator's client for it.
class HubProcess {
 public:
  HubProcess(const std::string& name, const std::string& directory, kube::Env env, async::Executor loop)
      : process_({hubferry_binary(), "sim", "--hubs", name, "--kubeconfig-dir", directory}) {
    process_.await_error_text("sim ready");
    config_ = kube::load_kubeconfig(directory + "/" + name + ".kubeconfig");
    kube::HttpApiOptions options;
    options.request_timeout = 5s;
    api_ = kube::make_http_api(config_, options, std::move(loop), std::move(env));
  }

  Process& process() { return process_; }
  kube::Api& api() { return *api_; }
  const kube::ClientConfig& config() const { return config_; }

  /// Writes a bootstrap kubeconfig for agents.
  Awaitable<> write_bootstrap(std::string file) {
    auto text = co_await sim::make_bootstrap_kubeconfig(*api_, config_, 24h);
    EXPECT_TRUE(text) << text.error();
    if (text) std::ofstream{file} << text->reveal();
  }

  /// With a short lease, so that heartbeats come often. As accepted automatically before: the hub would otherwise do so
  /// after a denial, as a real one does, and the agent see both at once or not.
  Awaitable<> add_cluster(std::string name) {
    json::object annotations{{ocm::names::accepted_on_annotation, "2030-01-01T00:00:00Z"}};
    json::object cluster{{"metadata", json::object{{"name", name}, {"annotations", std::move(annotations)}}},
                         {"spec", json::object{{"hubAcceptsClient", true}, {"leaseDurationSeconds", lease_seconds}}}};
    co_await create(ocm::managed_clusters, std::move(cluster));
  }

  Awaitable<> create(const kube::Resource& resource, json::object body) {
    auto created = co_await api_->create(resource, std::move(body));
    EXPECT_TRUE(created) << created.error();
  }

  Awaitable<> accept(std::string name, bool accepts) {
    json::object patch{{"spec", json::object{{"hubAcceptsClient", accepts}}}};
    kube::Key key{{}, std::move(name)};
    auto patched = co_await api_->merge_patch(ocm::managed_clusters, key, std::move(patch));
    EXPECT_TRUE(patched) << patched.error();
  }

  Awaitable<bool> accepts(std::string name) {
    kube::Key key{{}, std::move(name)};
    auto cluster = co_await api_->get(ocm::managed_clusters, key);
    EXPECT_TRUE(cluster) << cluster.error();
    const auto* accepted = cluster ? cluster->find({"spec", "hubAcceptsClient"}) : nullptr;
    co_return accepted != nullptr && accepted->is_bool() && accepted->get_bool();
  }

  /// Joined, and a heartbeat within the last seconds: all that can be said of an agent without an API server.
  Awaitable<bool> is_joined(std::string name) {
    kube::Key key{{}, name};
    auto cluster = co_await api_->get(ocm::managed_clusters, key);
    if (!cluster || !kube::is_condition_true(*cluster, ocm::names::joined)) co_return false;
    EXPECT_EQ(kube::find_condition(*cluster, ocm::names::available) == nullptr ||
                  !kube::is_condition_true(*cluster, ocm::names::available),
              true)
        << name << " has no API server that could be available";
    key = ocm::lease_key(name);
    auto lease = co_await api_->get(kube::resources::leases, key);
    if (!lease) co_return false;
    const auto renewed = async::parse_time(lease->string_at({"spec", "renewTime"}));
    co_return std::chrono::system_clock::now() - renewed < 10s;
  }

  Awaitable<bool> is_available(std::string name) {
    kube::Key key{{}, std::move(name)};
    auto cluster = co_await api_->get(ocm::managed_clusters, key);
    co_return cluster&& kube::is_condition_true(*cluster, ocm::names::available);
  }

 private:
  Process process_;
  kube::ClientConfig config_;
  std::unique_ptr<kube::Api> api_;
};

/// `hubferry klusterlet`.
class AgentProcess {
 public:
  AgentProcess(std::string cluster, const std::string& directory)
      : cluster_(std::move(cluster)), directory_(directory + "/" + cluster_) {
    process_.emplace(std::vector<std::string>{
        hubferry_binary(), "klusterlet", "--cluster-name", cluster_, "--bootstrap-kubeconfig",
        directory + "/bootstrap1", "--bootstrap-kubeconfig", directory + "/bootstrap2", "--hub-kubeconfig-dir",
        directory_, timeout_flag, "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"});
  }

  Process& process() { return *process_; }
  const std::string& cluster() const { return cluster_; }
  /// The hub whose credential it has.
  std::string server() const {
    const auto text = content_of(directory_ + "/kubeconfig");
    if (text.empty()) return {};
    const klusterlet::HubSecret secret{.kubeconfig = text,
                                       .certificate = content_of(directory_ + "/tls.crt"),
                                       .key = obs::Secret{content_of(directory_ + "/tls.key")},
                                       .cluster_name = {},
                                       .agent_name = {}};
    return klusterlet::client_config(secret).server;
  }
  std::uint16_t port(const std::string& message) {
    std::istringstream lines{process_->await_error_text(message)};
    for (std::string line; std::getline(lines, line);) {
      const auto object = json::parse(line).as_object();
      if (object.at("msg") == json::string_view(message)) return object.at("port").to_number<std::uint16_t>();
    }
    throw std::runtime_error("no port in the log");
  }

 private:
  std::string cluster_;
  std::string directory_;
  std::optional<Process> process_;
};

class KlusterletProcessTest : public testing::Test {
 protected:
  KlusterletProcessTest() {
    loop_.run(hub1_->write_bootstrap(directory_.file("bootstrap1")));
    loop_.run(hub2_->write_bootstrap(directory_.file("bootstrap2")));
  }

  /// Waits until the condition holds; false after a timeout.
  bool eventually(const std::function<bool()>& condition) {
    const auto give_up = std::chrono::steady_clock::now() + 90s;
    while (std::chrono::steady_clock::now() < give_up) {
      if (condition()) return true;
      loop_.run(clock_.sleep_for(200ms));
    }
    return false;
  }

  /// Waits until this cluster is available there.
  bool comes_to(HubProcess& hub, AgentProcess& agent) {
    if (eventually([&] { return agent.server() == hub.config().server && loop_.run(hub.is_joined(agent.cluster())); }))
      return true;
    // Its log is read to the end only when it has ended.
    agent.process().signal(SIGTERM);
    agent.process().wait();
    ADD_FAILURE() << agent.cluster() << " is not available at " << hub.config().server << "; its log:\n"
                  << agent.process().err();
    return false;
  }

  /// Hubs and credential as an operator keeps them: Secrets of the managed cluster, named by its Klusterlet.
  void set_up_own_cluster(HubProcess& own) {
    loop_.run(own.create(kube::resources::namespaces, {{"metadata", json::object{{"name", ns}}}}));
    for (const auto* name : {"bootstrap1", "bootstrap2"})
      loop_.run(own.create(kube::resources::secrets,
                           {{"metadata", json::object{{"name", name}, {"namespace", ns}}},
                            {"stringData", json::object{{"kubeconfig", content_of(directory_.file(name))}}}}));
    loop_.run(own.create(ocm::klusterlets, json::parse(R"({"metadata": {"name": "klusterlet"},
    "spec": {"clusterName": "one", "registrationConfiguration": {
        "featureGates": [{"feature": "MultipleHubs", "mode": "Enable"}],
        "bootstrapKubeConfigs": {"type": "LocalSecrets", "localSecretsConfig": {"hubConnectionTimeoutSeconds": 180,
          "kubeConfigSecrets": [{"name": "bootstrap1"}, {"name": "bootstrap2"}]}}}}})")
                                               .as_object()));
    for (auto* hub : {hub1_.get(), hub2_.get()}) loop_.run(hub->add_cluster("one"));
  }

  const std::string ns = "open-cluster-management-agent";
  RealLoop loop_;
  async::RealClock clock_;
  async::Random random_{1};
  obs::Metrics metrics_;
  kube::Env env_{clock_, random_, metrics_, obs::Logger{}};
  TemporaryDirectory directory_;
  std::unique_ptr<HubProcess> hub1_ = std::make_unique<HubProcess>("hub1", directory_.path(), env_, loop_.executor());
  std::unique_ptr<HubProcess> hub2_ = std::make_unique<HubProcess>("hub2", directory_.path(), env_, loop_.executor());
};

TEST_F(KlusterletProcessTest, ThreeAgentsAlwaysEndOnTheRightHub) {
  for (const auto* name : {"one", "two", "three"})
    for (auto* hub : {hub1_.get(), hub2_.get()}) loop_.run(hub->add_cluster(name));
  AgentProcess one{"one", directory_.path()};
  AgentProcess two{"two", directory_.path()};
  AgentProcess three{"three", directory_.path()};
  for (auto* agent : {&one, &two, &three}) ASSERT_TRUE(comes_to(*hub1_, *agent));

  // Denied by hub1: this one leaves immediately, the others stay.
  loop_.run(hub1_->accept("one", false));
  ASSERT_TRUE(comes_to(*hub2_, one));
  EXPECT_FALSE(loop_.run(hub1_->accepts("one"))) << "the agent may miss a denial that the hub takes back at once";
  EXPECT_EQ(two.server(), hub1_->config().server);

  // Stopped: it accepts connections and does not answer.
  hub1_->process().signal(SIGSTOP);
  ASSERT_TRUE(comes_to(*hub2_, two));
  ASSERT_TRUE(comes_to(*hub2_, three));

  // Resumed: no agent returns while hub2 is reachable.
  hub1_->process().signal(SIGCONT);
  loop_.run(hub1_->accept("one", true));
  loop_.run(clock_.sleep_for(3s));
  for (auto* agent : {&one, &two, &three}) EXPECT_EQ(agent->server(), hub2_->config().server);

  hub2_->process().signal(SIGKILL);
  hub2_->process().wait();
  for (auto* agent : {&one, &two, &three}) ASSERT_TRUE(comes_to(*hub1_, *agent));

  TcpClient metrics{one.port("serving metrics")};
  const auto page = metrics.get("/metrics");
  EXPECT_THAT(page, HasSubstr("hubferry_klusterlet_switches_total{reason=\"denied\"} 1"));
  EXPECT_THAT(page, HasSubstr("hubferry_klusterlet_switches_total{reason=\"connection_lost\"} 1"));
  EXPECT_THAT(page, HasSubstr("hubferry_klusterlet_hub_info{server=\"" + hub1_->config().server + "\"} 1"));
  EXPECT_THAT(page, HasSubstr("hubferry_klusterlet_certificate_expiry_timestamp_seconds"));
  TcpClient health{one.port("serving health probes")};
  EXPECT_THAT(health.get("/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(health.get("/readyz"), HasSubstr("200 OK"));
  for (auto* agent : {&one, &two, &three}) {
    agent->process().signal(SIGTERM);
    EXPECT_EQ(agent->process().wait(), 0);
    EXPECT_THAT(agent->process().err(), testing::Not(HasSubstr("PRIVATE KEY")));
  }
}

TEST_F(KlusterletProcessTest, ARestartedAgentKeepsItsNameAndItsCertificate) {
  loop_.run(hub1_->add_cluster("one"));
  std::string certificate;
  {
    AgentProcess agent{"one", directory_.path()};
    ASSERT_TRUE(comes_to(*hub1_, agent));
    certificate = content_of(directory_.file("one/tls.crt"));
    agent.process().signal(SIGKILL);
    agent.process().wait();
  }
  AgentProcess again{"one", directory_.path()};
  again.process().await_error_text("HubClientConfigReady");
  ASSERT_TRUE(comes_to(*hub1_, again));
  EXPECT_EQ(content_of(directory_.file("one/tls.crt")), certificate);
}

// To treat a read failure as "no identity yet" would register the cluster a second time, under another name.
TEST_F(KlusterletProcessTest, AnAgentWaitsUntilItsPreviousIdentityCanBeRead) {
  loop_.run(hub1_->add_cluster("one"));
  const auto obstacle = directory_.file("one/..version-1/agent-name");
  std::filesystem::create_directories(obstacle);
  std::filesystem::create_symlink("..version-1", directory_.file("one/..data"));
  AgentProcess agent{"one", directory_.path()};
  agent.process().await_error_text("cannot read the previous identity");
  EXPECT_THAT(agent.process().err(), testing::Not(HasSubstr("agent starting")));
  std::filesystem::remove(obstacle);
  ASSERT_TRUE(comes_to(*hub1_, agent));
}

TEST_F(KlusterletProcessTest, ASecondAgentInTheSameDirectoryIsRejected) {
  AgentProcess first{"one", directory_.path()};
  first.process().await_error_text("agent starting");
  AgentProcess second{"one", directory_.path()};
  EXPECT_EQ(second.process().wait(), 1);
  EXPECT_THAT(second.process().err(), HasSubstr("in use by another agent"));
}

// Hubs and credential are where an operator keeps them: in Secrets of the managed cluster, named by its Klusterlet.
TEST_F(KlusterletProcessTest, AKlusterletOnTheOwnClusterConfiguresTheAgent) {
  HubProcess own{"own", directory_.path(), env_, loop_.executor()};
  set_up_own_cluster(own);
  Process agent{{hubferry_binary(), "klusterlet", "--kubeconfig", directory_.file("own.kubeconfig"),
                 "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"}};
  ASSERT_TRUE(eventually([&] { return loop_.run(hub1_->is_available("one")); })) << agent.err();

  loop_.run(hub1_->accept("one", false));
  ASSERT_TRUE(eventually([&] { return loop_.run(hub2_->is_available("one")); })) << agent.err();
  const auto reported_hub = [&] {
    auto klusterlet = loop_.run(own.api().get(ocm::klusterlets, {{}, "klusterlet"}));
    const auto* condition = kube::find_condition(klusterlet.value(), "HubConnectionDegraded");
    return condition != nullptr && kube::string_at(*condition, {"status"}) == "False" &&
           kube::string_at(*condition, {"message"}).find(hub2_->config().server) != std::string_view::npos;
  };
  EXPECT_TRUE(eventually(reported_hub)) << agent.err();
  auto secret = loop_.run(own.api().get(kube::resources::secrets, {ns, ocm::names::hub_kubeconfig_secret}));
  ASSERT_TRUE(secret) << secret.error();
  EXPECT_THAT(*kube::decode_base64(secret->string_at({"data", "kubeconfig"})), HasSubstr(hub2_->config().server));
  agent.signal(SIGTERM);
  EXPECT_EQ(agent.wait(), 0);
  EXPECT_THAT(agent.err(), testing::Not(HasSubstr("PRIVATE KEY")));
}

// Both would register, each with an identity of its own, and overwrite the one Secret for ever.
TEST_F(KlusterletProcessTest, OfTwoReplicasOneIsTheAgentAndTheOtherTakesOverItsIdentity) {
  HubProcess own{"own", directory_.path(), env_, loop_.executor()};
  set_up_own_cluster(own);
  const std::vector<std::string> command{hubferry_binary(),
                                         "klusterlet",
                                         "--kubeconfig",
                                         directory_.file("own.kubeconfig"),
                                         "--leader-elect-retry-period=1s",
                                         "--metrics-bind-address=127.0.0.1:0",
                                         "--health-probe-bind-address=127.0.0.1:0"};
  Process first{command};
  ASSERT_TRUE(eventually([&] { return loop_.run(hub1_->is_available("one")); })) << first.err();
  Process second{command};
  second.await_error_text("leader");
  const auto requests = [&] {
    return loop_.run(hub1_->api().list_all(kube::resources::certificate_signing_requests, {})).value().size();
  };
  const auto agent_name = [&] {
    auto secret = loop_.run(own.api().get(kube::resources::secrets, {ns, ocm::names::hub_kubeconfig_secret}));
    return std::string{secret.value().string_at({"data", "agent-name"})};
  };
  const auto name = agent_name();
  loop_.run(clock_.sleep_for(3s));
  EXPECT_EQ(requests(), 1U);
  EXPECT_THAT(second.err(), testing::Not(HasSubstr("agent starting")));

  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(), 0);
  second.await_error_text("HubClientConfigReady");
  EXPECT_EQ(agent_name(), name);
  EXPECT_EQ(requests(), 1U) << "the certificate in the Secret is still good";
  second.signal(SIGTERM);
  EXPECT_EQ(second.wait(), 0);
}

struct BadInput {
  std::vector<std::string> flags;
  int code;
  const char* message;
};

TEST(KlusterletCommandTest, BadInputIsNamedAndNothingIsLeftBehind) {
  const TemporaryDirectory directory;
  const auto path = [&](const char* name) { return directory.file(name); };
  for (const auto* name : {"broken", "broken2"}) std::ofstream{path(name)} << "{ not yaml";
  for (const auto* name : {"plain", "plain2"})
    std::ofstream{path(name)} << R"({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "h",
    "user": "u"}}], "clusters": [{"name": "h", "cluster": {"server": "http://hub.example"}}],
    "users": [{"name": "u", "user": {"token": "t"}}]})";
  const auto files = [&](const char* first, const char* second) {
    return std::vector<std::string>{
        "--bootstrap-kubeconfig", path(first), "--bootstrap-kubeconfig",   path(second),
        "--hub-kubeconfig-dir",   path("hub"), "--metrics-bind-address=0", "--health-probe-bind-address=0"};
  };
  const std::vector<BadInput> cases{
      {{}, 2, "no hubs given"},
      {{"--bootstrap-kubeconfig", path("a"), "--hub-kubeconfig-dir", path("hub")}, 2, "at least two"},
      {{"--bootstrap-kubeconfig", path("a"), "--bootstrap-kubeconfig", path("b")},
       2,
       "--hub-kubeconfig-dir is required"},
      {{"--cluster-name", "No_Namespace"}, 2, "is not a valid namespace"},
      {{"--spoke-external-server-urls", "http://api.example"}, 2, "https://"},
      {{"--client-cert-expiration", "3599"}, 2, "too short"},
      {{"--cluster-healthcheck-period", "0s"}, 2, "is not greater than zero"},
      {{"--feature-gates", "MultipleHub=true"}, 2, "did you mean MultipleHubs?"},
      {{"--feature-gates", "MultipleHubs"}, 2, "needs =true or =false"},
      {files("nowhere", "nowhere-else"), 1, "No such file"},
      {files("broken", "broken2"), 1, "broken"},
      {files("broken", "./broken"), 2, "is given twice"},
      {{"--cluster-name", ""}, 2, "is not a valid namespace"},
      {files("plain", "plain2"), 1, "the credential would be sent in clear text"},
      {{"--cluster-annotations", "example.com/a=b"}, 2, "agent.open-cluster-management.io"},
      {{"--cluster-annotations", "agent.open-cluster-management.io/a"}, 2, "NAME=VALUE"},
      {{"--leader-elect-retry-period", "200s"}, 2, "leader election: "},
      {{"--klusterlet-name", "My Klusterlet"}, 2, "--klusterlet-name: 'My Klusterlet' is not a valid name"},
      {{"--kubeconfig", path("nowhere"), "--metrics-bind-address=0", "--health-probe-bind-address=0"},
       1,
       "no such file"},
  };
  for (const auto& one : cases) {
    std::vector<std::string> command{hubferry_binary(), "klusterlet"};
    command.insert(command.end(), one.flags.begin(), one.flags.end());
    Process process{command};
    EXPECT_EQ(process.wait(), one.code) << one.message;
    EXPECT_THAT(process.err(), HasSubstr(one.message));
    EXPECT_NE(::access(path("hub").c_str(), F_OK), 0) << one.message << ": nothing must be created";
  }
}

}  // namespace
}  // namespace hubferry::test
