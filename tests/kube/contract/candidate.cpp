// A candidate for leadership in a process of its own, for leader_processes_test.cpp.
// candidate KUBECONFIG NAMESPACE LEASE IDENTITY
// Prints "waiting", "leads EPOCH", "stopped" (its work has ended), then "lost" or "released"; exits 3 when it lost.
#include <cstdio>

#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/kube/leader_election.hpp"

namespace hubferry::kube {
namespace {

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

Awaitable<> lead(LeaderEpoch epoch, async::Clock& clock) {
  say("leads " + std::to_string(epoch.number));
  std::exception_ptr end;
  try {
    co_await clock.sleep_until(async::never);
  } catch (...) {
    end = std::current_exception();
  }
  say("stopped");
  std::rethrow_exception(end);
}

Awaitable<int> compete(std::vector<std::string> arguments, async::Event& stop) {
  async::RealClock clock;
  auto random = async::Random::from_entropy();
  obs::Metrics metrics;
  const Env env{clock, random, metrics, {}};
  const auto loop = co_await async::asio::this_coro::executor;
  const auto api = make_http_api(load_kubeconfig(arguments[0]), {}, loop, env);
  LeaderElectionOptions options;
  options.ns = arguments[1];
  options.name = arguments[2];
  options.identity = arguments[3];
  options.lease_duration = std::chrono::seconds{3};
  options.renew_deadline = std::chrono::seconds{2};
  options.retry_period = std::chrono::milliseconds{300};
  LeaderElector elector{*api, options, env};

  int code = 0;
  async::TaskScope scope{loop};
  auto candidate = [&]() -> Awaitable<> {
    say("waiting");
    auto work = [&](LeaderEpoch epoch) { return lead(std::move(epoch), clock); };
    try {
      co_await elector.run(work);
    } catch (const LeadershipLost& lost) {
      say("lost");
      std::fprintf(stderr, "%s: %s\n", arguments[3].c_str(), lost.what());
      code = 3;
    }
    scope.stop();
  };
  auto stopper = [&]() -> Awaitable<> {
    co_await stop.wait();
    scope.stop();
  };
  scope.spawn(candidate());
  scope.spawn(stopper());
  co_await scope.join();
  if (code == 0) say("released");
  co_return code;
}

}  // namespace
}  // namespace hubferry::kube

int main(int argc, char** argv) {
  std::vector<std::string> arguments{argv + 1, argv + argc};
  if (arguments.size() != 4) return 2;
  auto body = [&](hubferry::async::Event& stop) { return hubferry::kube::compete(arguments, stop); };
  return hubferry::async::run_main(body, {});
}
