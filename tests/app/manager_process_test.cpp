#include "manager_process.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "hubferry/migration/controller.hpp"
#include "hubferry/phase/render.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ManagerProcess, ServesMetricsAndHealthAndShutsDownGracefully) {
  ManagerProcess manager;
  TcpClient metrics{manager.metrics_port()};
  EXPECT_THAT(metrics.get("/metrics"), HasSubstr("hubferry_build_info{"));
  EXPECT_THAT(metrics.get("/healthz"), StartsWith("HTTP/1.1 404")) << "each address has its own pages";
  TcpClient health{manager.health_port()};
  for (const auto* path : {"/healthz", "/livez", "/readyz"}) EXPECT_THAT(health.get(path), EndsWith("\r\n\r\nok"));
  EXPECT_THAT(health.get("/livez?verbose"), HasSubstr("[+]loop ok"));
  manager.process().signal(SIGTERM);
  EXPECT_EQ(manager.process().wait(), 0);
  EXPECT_THAT(manager.process().err(), AllOf(HasSubstr("no longer ready"), HasSubstr("\"stopped\"")));
}

TEST(ManagerProcess, LogsWhichControllersItRuns) {
  ManagerProcess manager{{"--controllers=migration"}};
  EXPECT_THAT(manager.process().err(), HasSubstr("\"controllers\":\"migration\""));
}

TEST(ManagerProcess, IsNotReadyUntilTheGlobalHubHasResponded) {
  TemporaryDirectory directory;
  const auto file = directory.file("nowhere.kubeconfig");
  std::ofstream{file} << "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
                      << "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                      << "users: [{name: u, user: {}}]\n"
                      << "current-context: c\n";
  const auto port = free_port();
  Process manager{{hubferry_binary(), "manager", "--kubeconfig=" + file, "--metrics-bind-address=0",
                   "--health-probe-bind-address=127.0.0.1:" + std::to_string(port)}};
  manager.await_error_text("cannot reach the global hub, retrying");
  TcpClient health{port};
  EXPECT_THAT(health.get("/livez"), EndsWith("ok")) << "a hub that is down is no reason to restart the manager";
  EXPECT_THAT(health.get("/readyz?verbose"), HasSubstr("[-]global-hub failed: the global hub has not responded yet"));
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0);
}

// Hundreds of connections per hub; shells and container runtimes set 1024.
TEST(ManagerProcess, RaisesItsDescriptorLimit) {
  TemporaryDirectory directory;
  const auto file = directory.file("nowhere.kubeconfig");
  std::ofstream{file} << "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
                      << "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                      << "users: [{name: u, user: {}}]\n"
                      << "current-context: c\n";
  Process manager{{"sh", "-c",
                   "ulimit -Sn 100; ulimit -Hn 500; exec " + hubferry_binary() + " manager --kubeconfig=" + file +
                       " --metrics-bind-address=0 --health-probe-bind-address=0"}};
  manager.await_error_text("cannot reach the global hub, retrying");
  std::ifstream limits{"/proc/" + std::to_string(manager.pid()) + "/limits"};
  const std::string text{std::istreambuf_iterator<char>{limits}, {}};
  EXPECT_THAT(text, testing::ContainsRegex("Max open files +500 +500 "));
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0);
}

TEST(ManagerProcess, AnInvalidKubeconfigIsReportedAndExitsWith1) {
  Process manager{{hubferry_binary(), "manager", "--kubeconfig=/does/not/exist", "--metrics-bind-address=0",
                   "--health-probe-bind-address=0"}};
  EXPECT_EQ(manager.wait(), 1);
  EXPECT_THAT(manager.err(), HasSubstr("/does/not/exist"));
}

// The lease is given back on SIGTERM: the other need not wait for it to expire.
TEST(ManagerProcess, OfTwoManagersOneLeadsAndTheOtherTakesOverWhenItStops) {
  const std::vector<std::string> flags{
      "--leader-elect",           "--namespace=default",           "--leader-elect-resource-name=two",
      "--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect-retry-period=100ms"};
  std::vector<std::string> command{hubferry_binary(), "manager"};
  command.insert(command.end(), flags.begin(), flags.end());
  Process first{command};
  first.await_error_text("the manager leads");
  Process second{command};
  second.await_error_text("connected to the global hub");
  EXPECT_THAT(second.err(), testing::Not(HasSubstr("the manager leads")));
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(), 0);
  second.await_error_text("the manager leads");
  second.signal(SIGTERM);
  EXPECT_EQ(second.wait(), 0);
}

// Nobody has asked for leader election, and still two must not act on the same migrations.
TEST(ManagerProcess, ASecondManagerWithoutLeaderElectionSaysSoAndWaitsAndACleanStopLogsNoError) {
  const std::vector<std::string> command{hubferry_binary(),
                                         "manager",
                                         "--namespace=default",
                                         "--leader-elect-resource-name=alone",
                                         "--metrics-bind-address=0",
                                         "--health-probe-bind-address=0",
                                         "--leader-elect-retry-period=100ms"};
  Process first{command};
  first.await_error_text("migration cache synced");
  Process second{command};
  second.await_error_text("another manager has the Lease, waiting: run several replicas with --leader-elect");
  EXPECT_THAT(second.err(), testing::Not(HasSubstr("the manager leads")));
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_THAT(first.err(), AllOf(HasSubstr("\"stopped\""), testing::Not(HasSubstr("\"level\":\"error\""))));
  second.await_error_text("the manager leads");
  second.signal(SIGTERM);
  EXPECT_EQ(second.wait(), 0);
}

// Renewals must not wait behind other requests for the rate limit, or for a connection.
TEST(ManagerProcess, KeepsItsLeaseWhileOtherRequestsWaitForTheRateLimit) {
  Process manager{{hubferry_binary(), "manager", "--leader-elect", "--namespace=default",
                   "--leader-elect-resource-name=limited", "--leader-elect-lease-duration=3s",
                   "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=200ms", "--kube-api-qps=0.2",
                   "--kube-api-burst=1", "--metrics-bind-address=0", "--health-probe-bind-address=0"}};
  manager.await_error_text("started leading");
  const auto until = std::chrono::steady_clock::now() + 6s;
  while (manager.running() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(50ms);
  ASSERT_TRUE(manager.running()) << (manager.wait(), manager.err());
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0) << manager.err();
}

TEST(ManagerProcess, SigintStopsItToo) {
  ManagerProcess manager;
  manager.process().signal(SIGINT);
  EXPECT_EQ(manager.process().wait(), 0);
}

// Under a sanitizer a leak or a race would show in the exit code.
TEST(ManagerProcess, SigtermUnderLoadExitsWith0) {
  ManagerProcess manager;
  const auto url = [](std::uint16_t port, const std::string& path) {
    return "http://127.0.0.1:" + std::to_string(port) + path;
  };
  Process scrapes{{"wrk", "-t1", "-c32", "-d60s", url(manager.metrics_port(), "/metrics")}};
  Process probes{{"wrk", "-t1", "-c32", "-d60s", url(manager.health_port(), "/healthz")}};
  std::vector<TcpClient> stalled;
  for (int i = 0; i < 10; ++i) stalled.emplace_back(manager.health_port()).send("GET /livez HT");
  // The load is on once a scrape has seen many connections.
  TcpClient client{manager.metrics_port()};
  for (double open = 0; open < 60;) {
    const auto page = client.get("/metrics");
    open = std::stod(page.substr(page.find("\nprocess_open_fds ") + 18));
  }
  manager.process().signal(SIGTERM);
  EXPECT_EQ(manager.process().wait(), 0) << manager.process().err();
}

/// A pipe that is full, as that of a log collector that hangs.
class FullPipe {
 public:
  FullPipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string filling(4096, '\n');
    while (write(ends_[1], filling.data(), filling.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  ~FullPipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int writer() const { return ends_[1]; }

 private:
  int ends_[2];
};

/// A manager whose log nobody reads; it serves when this returns.
std::unique_ptr<Process> manager_with_blocked_log(const FullPipe& pipe, std::uint16_t health_port) {
  auto process = std::make_unique<Process>(
      std::vector<std::string>{hubferry_binary(), "manager", "--metrics-bind-address=0",
                               "--health-probe-bind-address=127.0.0.1:" + std::to_string(health_port)},
      Process::Options{.environment = {}, .error_fd = pipe.writer()});
  const auto give_up = std::chrono::steady_clock::now() + Process::timeout;
  for (;;) {
    try {
      TcpClient client{health_port};
      EXPECT_THAT(client.get("/livez"), EndsWith("ok"));
      return process;
    } catch (const std::runtime_error&) {
      if (std::chrono::steady_clock::now() > give_up) throw;
      std::this_thread::sleep_for(10ms);
    }
  }
}

TEST(ManagerProcess, ABlockedLogStopsNeitherServingNorShutdown) {
  const FullPipe pipe;
  const auto manager = manager_with_blocked_log(pipe, free_port());
  manager->signal(SIGTERM);
  EXPECT_EQ(manager->wait(), 0);
}

// The blocked log delays the orderly stop a little, so that the second signal surely comes in the middle of it.
TEST(ManagerProcess, ASecondSignalEndsItAtOnce) {
  const FullPipe pipe;
  const auto manager = manager_with_blocked_log(pipe, free_port());
  manager->signal(SIGSTOP);
  manager->signal(SIGTERM);
  manager->signal(SIGINT);
  manager->signal(SIGCONT);
  EXPECT_THAT(manager->wait(), testing::AnyOf(128 + SIGTERM, 128 + SIGINT));
}

TEST(ManagerProcess, AnAddressInUseIsReportedAndExitsWith1) {
  ManagerProcess manager;
  const auto taken = "127.0.0.1:" + std::to_string(manager.metrics_port());
  Process second{ManagerProcess::command({"--metrics-bind-address=" + taken})};
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.err(),
              HasSubstr("cannot listen on " + taken + ": Address already in use (--metrics-bind-address)"));
}

TEST(ManagerProcess, BothServersCanBeDisabled) {
  Process manager{{hubferry_binary(), "manager", "--metrics-bind-address=0", "--health-probe-bind-address=0"}};
  manager.await_error_text("the manager leads");
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0);
}

TEST(ManagerProcess, MistakesExitWith2) {
  Process flag{{hubferry_binary(), "manager", "--log-levle=debug"}};
  EXPECT_EQ(flag.wait(), 2);
  EXPECT_THAT(flag.err(), HasSubstr("unknown flag --log-levle (did you mean --log-level?)"));
  Process variable{{hubferry_binary(), "manager"},
                   {.environment = {"HUBFERRY_METRICS_BIND_ADDRESS=nonsense"}, .error_fd = {}}};
  EXPECT_EQ(variable.wait(), 2);
  EXPECT_THAT(variable.err(), HasSubstr("environment variable HUBFERRY_METRICS_BIND_ADDRESS: 'nonsense'"));
}

TEST(ManagerProcess, TheEnvironmentConfiguresIt) {
  Process manager{{hubferry_binary(), "manager"},
                  {.environment = {"HUBFERRY_METRICS_BIND_ADDRESS=0", "HUBFERRY_HEALTH_PROBE_BIND_ADDRESS=0",
                                   "HUBFERRY_LOG_FORMAT=text"},
                   .error_fd = {}}};
  EXPECT_THAT(manager.await_error_text("the manager leads"), HasSubstr(" INFO  manager the manager leads"));
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0);
}

/// Waits until the file contains `text`, and returns all of it.
std::string await_in_file(const std::string& path, const std::string& text) {
  const auto give_up = std::chrono::steady_clock::now() + Process::timeout;
  for (;;) {
    std::stringstream content;
    content << std::ifstream{path}.rdbuf();
    if (content.str().find(text) != std::string::npos) return content.str();
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("no '" + text + "' in " + content.str());
    std::this_thread::sleep_for(10ms);
  }
}

// Without free descriptors accepting fails; the server must neither spin nor die, and recover when it can.
TEST(ManagerProcess, SurvivesRunningOutOfFileDescriptors) {
  TemporaryDirectory directory;
  const auto log = directory.file("log");
  std::string line = "ulimit -n 40 && exec";
  for (const auto& word : ManagerProcess::command({})) line += " '" + word + "'";
  // clang's undefined behaviour sanitizer looks at objects through a pipe, and without descriptors believes that all
  // of them are broken: it may say so here, into the file.
  Process manager{{"sh", "-c", line + " 2> " + log},
                  {.environment = {"UBSAN_OPTIONS=halt_on_error=0:print_stacktrace=0"}, .error_fd = {}}};
  std::istringstream lines{await_in_file(log, "the manager leads")};
  std::uint16_t port = 0;
  for (std::string text; std::getline(lines, text);) {
    const auto object = boost::json::parse(text).as_object();
    if (object.contains("port")) port = object.at("port").to_number<std::uint16_t>();
  }
  {
    std::vector<TcpClient> clients;
    for (int i = 0; i < 60; ++i) clients.emplace_back(port).send("GET /livez HT");
    await_in_file(log, "cannot accept connections");
    TcpClient probe{port};
    EXPECT_THAT(probe.get("/livez"), EndsWith("ok")) << "stalled clients make room";
  }
  TcpClient probe{port};
  EXPECT_THAT(probe.get("/livez"), EndsWith("ok"));
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0);
}

TEST(ManagerProcess, VersionIsPrinted) {
  Process version{{hubferry_binary(), "version", "-o", "json"}};
  EXPECT_EQ(version.wait(), 0);
  EXPECT_TRUE(boost::json::parse(version.out()).as_object().contains("revision"));
}

TEST(ManagerProcess, ThePhasesOfItsControllersArePrinted) {
  Process mermaid{{hubferry_binary(), "manager", "--print-phases"}};
  EXPECT_EQ(mermaid.wait(), 0);
  EXPECT_EQ(mermaid.out(), phase::render_mermaid(migration::phase_definition()));
  Process dot{{hubferry_binary(), "manager", "--controllers=migration", "--print-phases=dot"}};
  EXPECT_EQ(dot.wait(), 0);
  EXPECT_EQ(dot.out(), phase::render_dot(migration::phase_definition()));
  Process wrong{{hubferry_binary(), "manager", "--print-phases=svg"}};
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_THAT(wrong.err(), HasSubstr("--print-phases: 'svg' is invalid: use mermaid or dot"));
}

TEST(ManagerProcess, OutputThatCannotBeWrittenIsAFailure) {
  Process version{{"sh", "-c", "exec '" + hubferry_binary() + "' version > /dev/full"}};
  EXPECT_EQ(version.wait(), 1);
}

}  // namespace
}  // namespace hubferry::test
