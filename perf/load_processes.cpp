#include "load_processes.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "hubferry/kube/config.hpp"
#include "report.hpp"

namespace hubferry::perf {

namespace {

using namespace std::chrono_literals;

/// A port of 127.0.0.1 that nobody uses now.
std::string free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!bound) throw std::runtime_error("no free port");
  return std::to_string(ntohs(address.sin_port));
}

/// Its output goes to a file: a pipe that nobody reads would stop it.
std::unique_ptr<test::Process> start(const std::vector<std::string>& command, const std::filesystem::path& log) {
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error("cannot write " + log.string());
  test::Process::Options options;
  options.error_fd = file;
  auto process = std::make_unique<test::Process>(command, options);
  ::close(file);
  return process;
}

std::string last_lines(const std::filesystem::path& log) {
  std::ifstream in{log};
  std::stringstream text;
  text << in.rdbuf();
  const auto all = text.str();
  return all.substr(all.size() - std::min<std::size_t>(all.size(), 2'000));
}

std::unique_ptr<kube::Api> plain_client(const std::string& port, LoadEnv& env) {
  kube::ClientConfig config;
  config.server = "http://127.0.0.1:" + port;
  kube::HttpApiOptions options;
  options.max_retries = 0;
  return kube::make_http_api(std::move(config), std::move(options), env.loops.next(), env.env());
}

}  // namespace

ProcessFigures figures_of(pid_t process) {
  const auto directory = "/proc/" + std::to_string(process);
  ProcessFigures figures;
  std::ifstream stat{directory + "/stat"};
  std::string text;
  std::getline(stat, text);
  // The name, in parentheses, may have spaces; the state and ten more fields stand before the times.
  std::istringstream fields{text.substr(std::min(text.size(), text.rfind(')') + 1))};
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  figures.cpu_seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  std::ifstream status{directory + "/status"};
  for (std::string line; std::getline(status, line);) {
    const auto kilobytes = [&](std::string_view name, double& into) {
      if (line.starts_with(name)) into = std::strtod(line.c_str() + name.size(), nullptr) * 1024;
    };
    kilobytes("VmRSS:", figures.resident);
    kilobytes("VmHWM:", figures.peak_resident);
  }
  return figures;
}

Simulator::Simulator(const LoadOptions& options, const std::filesystem::path& directory, bool agents, LoadEnv& env)
    : global_(directory / "global.kubeconfig") {
  std::filesystem::create_directories(directory);
  // Those of an earlier run: the last one's appearance shows that the simulator is ready.
  for (const auto& entry : std::filesystem::directory_iterator{directory})
    if (entry.path().extension() == ".kubeconfig") std::filesystem::remove(entry.path());
  std::string hubs;
  for (int i = 1; i <= options.hubs; ++i) hubs += (hubs.empty() ? "" : ",") + options.hub(i);
  std::vector<std::string> command{options.hubferry,
                                   "sim",
                                   "--hubs",
                                   hubs,
                                   "--clusters",
                                   std::to_string(options.clusters),
                                   "--fleet",
                                   options.fleet,
                                   "--secrets",
                                   std::to_string(options.secrets),
                                   "--seed",
                                   std::to_string(options.seed),
                                   "--kubeconfig-dir",
                                   directory.string(),
                                   "--ui-bind-address",
                                   "0",
                                   agents ? "--agents=true" : "--agents=false"};
  if (const auto faults = options.faults(); !faults.empty()) {
    std::ofstream{directory / "faults.yaml"} << faults;
    command.insert(command.end(), {"--faults", (directory / "faults.yaml").string()});
  }
  const Stopwatch watch;
  const auto log = directory / "sim.log";
  process_ = start(command, log);
  const auto last = directory / (options.hub(options.hubs) + ".kubeconfig");
  while (!std::filesystem::exists(last) || std::filesystem::file_size(last) == 0) {
    if (!process_->running()) throw std::runtime_error("hubferry sim ended:\n" + last_lines(log));
    std::printf("\rsimulator: creating %d clusters, %.0f s", options.clusters, watch.seconds());
    std::fflush(stdout);
    std::this_thread::sleep_for(200ms);
  }
  std::printf("\rsimulator: %d clusters on hub1, ready after %.1f s\n", options.clusters, watch.seconds());
  for (const auto& entry : std::filesystem::directory_iterator{directory}) {
    if (entry.path().extension() != ".kubeconfig") continue;
    kube::HttpApiOptions client;
    client.name = entry.path().stem();
    client.user_agent = "perf-load";
    apis_.emplace(client.name,
                  kube::make_http_api(kube::load_kubeconfig(entry.path()), client, env.loops.next(), env.env()));
  }
}

async::Awaitable<std::map<std::string, Scrape>> Simulator::scrape() {
  std::map<std::string, Scrape> all;
  for (auto& [name, api] : apis_) {
    auto page = co_await api->get_path("/metrics");
    if (!page) throw std::runtime_error("cannot read /metrics of " + name + ": " + page.error().describe());
    all.emplace(name, Scrape{page->as_string()});
  }
  co_return all;
}

Manager::Manager(const LoadOptions& options, const std::filesystem::path& directory, const Simulator& simulator,
                 LoadEnv& env)
    : env_(env), directory_(directory) {
  const auto metrics = free_port();
  const auto health = free_port();
  command_ = {options.hubferry,
              "manager",
              "--kubeconfig",
              simulator.kubeconfig().string(),
              "--controllers",
              "migration",
              "--max-concurrent-migrations",
              std::to_string(options.migrations),
              "--clusters-in-flight-per-hub",
              std::to_string(options.in_flight),
              "--metrics-bind-address",
              "127.0.0.1:" + metrics,
              "--health-probe-bind-address",
              "127.0.0.1:" + health,
              "--ui-bind-address",
              "0"};
  process_ = start(command_, directory_ / "manager.log");
  metrics_ = plain_client(metrics, env);
  health_ = plain_client(health, env);
}

void Manager::replace() {
  process_ = start(command_, directory_ / "successor.log");
}

async::Awaitable<> Manager::wait_ready() {
  while (true) {
    auto ready = co_await health_->get_path("/readyz");
    if (ready) co_return;
    if (!running()) throw std::runtime_error("hubferry manager ended: see its log with --directory DIR");
    co_await env_.clock.sleep_for(50ms);
  }
}

async::Awaitable<Scrape> Manager::scrape() {
  auto page = co_await metrics_->get_path("/metrics");
  if (!page) throw std::runtime_error("cannot read the manager's metrics: " + page.error().describe());
  co_return Scrape{page->as_string()};
}

}  // namespace hubferry::perf
