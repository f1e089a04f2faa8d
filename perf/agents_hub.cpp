#include "agents_hub.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <iostream>
#include <stdexcept>

#include <boost/json.hpp>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/http_frontend.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "report.hpp"
#include "support/real_loop.hpp"

namespace hubferry::perf {

namespace {

using namespace std::chrono_literals;
using async::Awaitable;
namespace json = boost::json;

/// A hub that accepts everybody, until its process is killed.
class HubServer {
 public:
  HubServer(const std::string& name, HubPage& page)
      : page_(page), server_(options(name), env_), frontend_(server_, loop_.executor(), {}) {
    hub_.name = name;
    hub_.auto_approval = true;
  }

  std::string set_up(int clusters, bool joined) { return loop_.run(prepare(clusters, joined)); }
  void serve() { loop_.run(live()); }

 private:
  static sim::Options options(const std::string& name) {
    sim::Options options;
    options.name = name;
    options.history = 2000;
    return options;
  }

  Awaitable<std::string> prepare(int clusters, bool joined) {
    auto& api = server_.api();
    co_await sim::install_crds(api, env_);
    auto installed = co_await sim::install_hub(api, hub_);
    installed.value();
    auto where = frontend_.config_for(sim::admin());
    where.token.clear();
    auto text = co_await sim::make_bootstrap_kubeconfig(api, where, 24h);
    json::array secrets;
    for (int number = 0; number < clusters; ++number) {
      json::object cluster{{"metadata", json::object{{"name", cluster_name(number)}}},
                           {"spec", json::object{{"hubAcceptsClient", true}}}};
      auto created = co_await api.create(ocm::managed_clusters, std::move(cluster));
      created.value();
      if (!joined) continue;
      const klusterlet::Identity identity{cluster_name(number), agent_name};
      const auto issued = frontend_.config_for({identity.common_name(), identity.organizations(), {}}, true);
      secrets.push_back(json::object{{"certificate", issued.client_certificate_pem}, {"key", issued.client_key_pem}});
    }
    co_return json::serialize(
        json::object{{"url", frontend_.url()}, {"bootstrap", text.value().reveal()}, {"secrets", std::move(secrets)}});
  }

  Awaitable<> live() {
    sim::HubControllers controllers{server_.api(), hub_, env_};
    auto all = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(frontend_.serve());
      scope.spawn(controllers.run());
      co_await count();
    };
    co_await async::with_scope(all);
  }

  Awaitable<> count() {
    bool faulty = false;
    auto tick = env_.clock.now();
    server_.forget_requests();
    while (true) {
      tick += 1s;
      co_await env_.clock.sleep_until(tick);
      std::uint32_t of_agents = 0;
      for (const auto& record : server_.requests())
        if (record.user != sim::admin().name) ++of_agents;
      server_.forget_requests();
      const auto second = page_.second.load();
      if (second + 1 < page_.per_second.size()) {
        page_.per_second[second] = of_agents;
        page_.second = second + 1;
      }
      page_.total += of_agents;
      const bool wanted = page_.faults != 0;
      if (wanted == faulty) continue;
      faulty = wanted;
      server_.faults().clear();
      if (!faulty) continue;
      for (const auto* verb : {"read", "write"}) {
        server_.faults().on({verb}).rate(0.05).fail(429, 1);
        server_.faults().on({verb}).rate(0.05).fail(500);
      }
    }
  }

  HubPage& page_;
  test::RealLoop loop_;
  async::RealClock clock_;
  async::Random random_ = async::Random::from_entropy();
  obs::Metrics metrics_;
  kube::Env env_{clock_, random_, metrics_, obs::Logger{}};
  sim::HubOptions hub_;
  sim::Server server_;
  sim::HttpFrontend frontend_;
};

void write_all(int output, std::string_view text) {
  while (!text.empty()) {
    const auto count = ::write(output, text.data(), text.size());
    if (count <= 0) throw std::runtime_error("the parent is gone");
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  ::close(output);
}

std::string read_all(int input) {
  std::string text;
  std::array<char, 65536> part{};
  for (ssize_t count = 0; (count = ::read(input, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(count));
  ::close(input);
  return text;
}

}  // namespace

std::string cluster_name(int number) {
  return "cluster-" + std::to_string(number);
}

HubProcess::HubProcess(const std::string& name, int clusters, bool joined) {
  void* memory = mmap(nullptr, sizeof(HubPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
  page_ = new (memory) HubPage{};
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("cannot start a hub's process");
  if (process_ == 0) {
    ::close(ends[0]);
    serve(name, clusters, joined, ends[1]);
  }
  ::close(ends[1]);
  input_ = ends[0];
  bootstrap_.name = name;
}

void HubProcess::serve(const std::string& name, int clusters, bool joined, int output) {
  // A hub does not outlive the measurement, however that ends.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    HubServer hub{name, *page_};
    write_all(output, hub.set_up(clusters, joined));
    hub.serve();
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << "\n";
  }
  std::_Exit(1);
}

HubProcess::~HubProcess() {
  kill();
  munmap(page_, sizeof(HubPage));
}

void HubProcess::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
}

void HubProcess::wait_ready() {
  const auto text = read_all(input_);
  const auto said = json::parse(text).as_object();
  url_ = said.at("url").as_string();
  bootstrap_.kubeconfig = obs::Secret{std::string{said.at("bootstrap").as_string()}};
  const auto kubeconfig = klusterlet::hub_kubeconfig(bootstrap_.parse());
  int number = 0;
  for (const auto& secret : said.at("secrets").as_array())
    secrets_.push_back({.kubeconfig = kubeconfig,
                        .certificate = std::string{secret.at("certificate").as_string()},
                        .key = obs::Secret{std::string{secret.at("key").as_string()}},
                        .cluster_name = cluster_name(number++),
                        .agent_name = agent_name});
}

void HubProcess::mark_memory() {
  memory_before_ = allocated_bytes();
  resident_before_ = resident_bytes();
}

}  // namespace hubferry::perf
