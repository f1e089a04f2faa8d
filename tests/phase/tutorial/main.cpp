#include "backup.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/async/shutdown.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/obs/log.hpp"

using namespace hubferry;

async::Awaitable<std::string> take_snapshot(std::string volume) {
  co_return "snapshot-of-" + volume;
}

int main(int count, char** arguments) {
  async::RealClock clock;
  auto random = async::Random::from_entropy();
  obs::Metrics metrics;
  obs::LogSink log{{}};
  const kube::Env env{clock, random, metrics, log.logger()};
  async::LoopPool loops{1};  // for the connections
  const auto api = kube::make_http_api(kube::find_config(count > 1 ? arguments[1] : ""), {}, loops.next(), env);
  BackupServices services{take_snapshot};
  auto body = [&](async::Event& stop) -> async::Awaitable<int> {
    auto work = [&](async::TaskScope& scope) -> async::Awaitable<> {
      scope.spawn(run_backup_controller(*api, services, env));
      co_await stop.wait();
      scope.stop();
    };
    co_await async::with_scope(work);
    co_return 0;
  };
  return async::run_main(body, {});  // SIGTERM ends it in order
}
