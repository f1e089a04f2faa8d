// Agents over TLS, as many as a large fleet has, against simulated hubs in processes of their own: what an agent costs,
// and what happens when the first hub dies. Real time: with the defaults it takes some seven minutes.
//
// Shared between the agents of this process, and not between real ones: code, the allocator's free lists, the event
// loop, metrics, the definition of the phase machine, and OpenSSL's context for each set of authorities. Not shared:
// connections, TLS sessions, what is kept of the hub's objects.
//
// Exits with 1 if an agent that waits needs more memory than it once did: see most_memory.
#include <sys/resource.h>
#include <csignal>
#include <cstdlib>

#include "agents_hub.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/klusterlet/agent.hpp"
#include "hubferry/klusterlet/hub_client.hpp"
#include "report.hpp"
#include "support/real_loop.hpp"

namespace {

using namespace hubferry;
using namespace std::chrono_literals;
using async::Awaitable;
using perf::HubPage;

/// KiB of an agent that waits, without optimization, which makes coroutines larger. Not the goal, but what has been
/// reached: more is a mistake. With fewer agents, what they share counts too much.
constexpr double most_memory = 125;
constexpr int enough_agents = 300;

struct Settings {
  int agents = 5'000;
  std::chrono::seconds timeout{180};  // the least that the API allows
  std::chrono::seconds start{90};     // over which the agents start
  std::chrono::seconds rest{180};     // how long they are watched at rest
  bool faults = true;
};

Settings settings_from(int argc, char** argv) {
  Settings settings;
  for (int at = 1; at + 1 < argc; ++at) {
    const std::string_view flag{argv[at]};
    const int value = std::atoi(argv[at + 1]);
    if (flag == "--agents") settings.agents = value;
    if (flag == "--timeout") settings.timeout = std::chrono::seconds{value};
    if (flag == "--start") settings.start = std::chrono::seconds{value};
    if (flag == "--rest") settings.rest = std::chrono::seconds{value};
    if (flag == "--faults") settings.faults = value != 0;
  }
  return settings;
}

/// Three connections for each agent.
void raise_file_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// One agent with its store.
struct Member {
  Member(klusterlet::AgentOptions options, std::vector<klusterlet::BootstrapConfig> bootstraps,
         klusterlet::HubSecret secret, const klusterlet::Connect& connect, const kube::Env& env)
      : store(std::move(bootstraps), std::move(secret)), agent(std::move(options), store, connect, env) {}

  klusterlet::MemoryStore store;
  klusterlet::Agent agent;
};

class Fleet {
 public:
  Fleet(Settings settings, perf::HubProcess& hub1, perf::HubProcess& hub2, kube::Env env, async::Executor loop)
      : settings_(settings), env_(std::move(env)), loop_(std::move(loop)) {
    const klusterlet::Connect connect = [this](const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
      return kube::make_http_api(config, klusterlet::client_options("hub", "perf"), loop_, env_);
    };
    for (int number = 0; number < settings_.agents; ++number) {
      klusterlet::AgentOptions options;
      options.cluster_name = perf::cluster_name(number);
      options.agent_name = perf::agent_name;
      options.connection_timeout = settings_.timeout;
      options.record_events = false;
      members_.push_back(std::make_unique<Member>(std::move(options), std::vector{hub1.bootstrap(), hub2.bootstrap()},
                                                  hub1.secret(number), connect, env_));
    }
  }

  Awaitable<> run() {
    auto all = [this](async::TaskScope& scope) -> Awaitable<> {
      for (auto& member : members_) scope.spawn(live(*member));
      co_await env_.clock.sleep_until(async::never);
    };
    co_await async::with_scope(all);
  }

  /// Those that are not available at this hub, if any: a few of them.
  void print_missing(const std::string& url) const {
    int printed = 0;
    for (const auto& member : members_) {
      const auto view = member->agent.view();
      if ((view.available && view.hub == url) || ++printed > 5) continue;
      std::printf("  %s: %s %s %s%s\n", view.phase.c_str(), view.hub.c_str(),
                  view.available ? "available" : "not available", view.problem.c_str(),
                  view.connection_problem.c_str());
    }
  }

  std::size_t available_at(const std::string& url) const {
    std::size_t count = 0;
    for (const auto& member : members_) {
      const auto view = member->agent.view();
      if (view.available && view.hub == url) ++count;
    }
    return count;
  }

 private:
  Awaitable<> live(Member& member) {
    co_await env_.clock.sleep_for(env_.random.between(async::Duration{0}, async::Duration{settings_.start}));
    co_await member.agent.run();
  }

  Settings settings_;
  kube::Env env_;
  async::Executor loop_;
  std::vector<std::unique_ptr<Member>> members_;
};

double heartbeats_of(obs::Metrics& metrics) {
  return metrics
      .counter_family("hubferry_klusterlet_heartbeats_total", "Renewals of the cluster's Lease, by result.", {"result"})
      .with({"ok"})
      .value();
}

void print_curve(const HubPage& page, std::size_t from, std::size_t until) {
  std::printf("  requests at hub2 in one second, by seconds since hub1 died (the most of ten)\n");
  for (std::size_t second = from; second < until; second += 10) {
    std::uint32_t most = 0;
    for (std::size_t at = second; at < std::min(second + 10, until); ++at)
      most = std::max(most, page.per_second[at].load());
    if (most > 0) std::printf("  %5zu s %7u %s\n", second - from, most, std::string(most / 20 + 1, '#').c_str());
  }
}

/// Returns the memory of an agent that waits, in KiB.
Awaitable<double> measure(Settings settings, perf::HubProcess& hub1, perf::HubProcess& hub2, Fleet& fleet,
                          obs::Metrics& metrics, perf::Report& report, kube::Env env) {
  auto& clock = env.clock;
  const auto count = static_cast<std::size_t>(settings.agents);
  perf::Stopwatch start_watch;
  const double longest_start = std::chrono::duration<double>(settings.start).count() + 120;
  while (fleet.available_at(hub1.url()) < count && start_watch.seconds() < longest_start)
    co_await clock.sleep_for(500ms);
  fleet.print_missing(hub1.url());
  report.line("agents available on hub1", static_cast<double>(fleet.available_at(hub1.url())), "", "all");
  report.line("CPU to start and join, per agent", start_watch.cpu() / settings.agents * 1e3, "ms");

  const double beats_before = heartbeats_of(metrics);
  const auto requests_before = hub1.page().total.load();
  perf::Stopwatch rest_watch;
  co_await clock.sleep_for(settings.rest);
  const double beats = heartbeats_of(metrics) - beats_before;
  const auto requests = hub1.page().total.load() - requests_before;
  const double memory = (perf::allocated_bytes() - hub1.memory_before()) / settings.agents / 1024;
  report.line("memory of an agent that waits", memory, "KiB", "at most 40 KiB");
  report.line("resident memory of an agent that waits",
              (perf::resident_bytes() - hub1.resident_before()) / settings.agents / 1024, "KiB");
  report.line("CPU of a heartbeat over TLS", rest_watch.cpu() / std::max(1.0, beats) * 1e6, "us", "at most 150 us");
  report.line("requests of one agent", static_cast<double>(requests) / settings.agents / rest_watch.seconds() * 60,
              "/min");

  hub2.page().faults = settings.faults ? 1 : 0;
  co_await clock.sleep_for(1s);
  const auto second_of_death = hub2.page().second.load();
  const auto requests_at_death = hub2.page().total.load();
  hub1.kill();
  perf::Stopwatch switch_watch;
  double first = 0;
  double half = 0;
  while (switch_watch.seconds() < 900) {
    co_await clock.sleep_for(500ms);
    const auto arrived = fleet.available_at(hub2.url());
    if (first == 0 && arrived > 0) first = switch_watch.seconds();
    if (half == 0 && arrived >= count / 2) half = switch_watch.seconds();
    if (arrived == count) break;
    // The hub is well again after two minutes of them.
    if (switch_watch.seconds() > std::chrono::duration<double>(settings.timeout).count() + 120) hub2.page().faults = 0;
  }
  fleet.print_missing(hub2.url());
  const double all = switch_watch.seconds();
  const auto end = hub2.page().second.load();
  std::uint32_t peak = 0;
  for (std::uint32_t at = second_of_death; at <= end; ++at) peak = std::max(peak, hub2.page().per_second[at].load());
  print_curve(hub2.page(), second_of_death, end + 1);
  report.line("agents available on hub2", static_cast<double>(fleet.available_at(hub2.url())), "", "all");
  report.line("first of them after hub1's death", first, "s");
  report.line("half of them after hub1's death", half, "s");
  report.line("all of them after hub1's death", all, "s");
  report.line("from the first to the last", all - first, "s", "at most 60 s");
  report.line("most requests at hub2 in one second", static_cast<double>(peak), "/s", "at most 500");
  report.line("requests of a switch, per agent",
              static_cast<double>(hub2.page().total.load() - requests_at_death) / settings.agents, "");
  report.line("CPU of a switch, per agent", switch_watch.cpu() / settings.agents * 1e3, "ms");
  co_return memory;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a run takes minutes: show each line as it is known
  raise_file_limit();
  const auto settings = settings_from(argc, argv);
  // Processes of their own, started before anything here has threads.
  perf::HubProcess hub1{"hub1", settings.agents, true};
  perf::HubProcess hub2{"hub2", settings.agents, false};
  hub1.wait_ready();
  hub2.wait_ready();
  perf::Report report{"agents", argc, argv};
  async::RealClock clock;
  auto random = async::Random::from_entropy();
  obs::Metrics metrics;
  const kube::Env env{clock, random, metrics, obs::Logger{}};
  test::RealLoop loop;
  hub1.mark_memory();
  double memory = 0;
  {
    Fleet fleet{settings, hub1, hub2, env, loop.executor()};
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(fleet.run());
      memory = co_await measure(settings, hub1, hub2, fleet, metrics, report, env);
      scope.stop();
    };
    loop.run(async::with_scope(body));
  }
  if (settings.agents < enough_agents || memory <= most_memory) return 0;
  std::fprintf(stderr, "an agent that waits needs %.0f KiB: %.0f were enough before\n", memory, most_memory);
  return 1;
}
