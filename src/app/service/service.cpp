#include "app/service/service.hpp"

#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/obs/build_info.hpp"
#include "hubferry/obs/log.hpp"

namespace hubferry::app {

namespace {

// So that the words before an abrupt end get out; not so long that a blocked log delays that end.
constexpr auto last_words_wait = std::chrono::milliseconds(200);

async::Awaitable<int> live(const ServiceWork& work, Observability& observability, kube::Env env, async::Event& stop) {
  auto life = [&](async::TaskScope& serving) -> async::Awaitable<> {
    serving.spawn(observability.serve());
    auto working = [&](async::TaskScope& workers) -> async::Awaitable<> {
      workers.spawn(work(observability, env));
      co_await stop.wait();
      observability.health().set_stopping();
      env.log.info("stopping: no longer ready");
      workers.stop();
    };
    co_await async::with_scope(working);
    serving.stop();
  };
  co_await async::with_scope(life);
  env.log.info("stopped");
  co_return 0;
}

}  // namespace

int run_service(const ServiceOptions& options, const ServiceWork& work) {
  async::RealClock clock;
  obs::LogSink sink{options.log.sink_options()};
  const auto log = sink.logger().named(options.name);
  const auto& build = obs::build_info();
  log.info("starting", {{"version", build.version}, {"revision", build.revision}});
  try {
    Observability observability{clock, log, options.serving};
    observability.listen();
    auto random = async::Random::from_entropy();
    const kube::Env env{clock, random, observability.metrics(), log};
    const auto body = [&](async::Event& stop) { return live(work, observability, env, stop); };
    async::ShutdownPolicy policy;
    policy.grace = options.shutdown_grace_period;
    policy.say = [&](const std::string& sentence) {
      log.info(sentence);
      sink.flush(last_words_wait);
    };
    return async::run_main(body, policy);
  } catch (...) {
    log.error("the " + options.name + " failed", {{"error", std::current_exception()}});
    return 1;
  }
}

}  // namespace hubferry::app
