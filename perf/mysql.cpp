// Many MySQL clusters at rest, then a primary lost in each of a tenth of them: what the operator costs.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstdlib>

#include "../tests/mysql/fake_mysql.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/mysql/controller.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/workloads.hpp"
#include "report.hpp"

namespace {

using namespace hubferry;
using namespace std::chrono_literals;
namespace json = boost::json;

std::size_t in_phase(const sim::Server& server, std::string_view phase) {
  const auto clusters = server.objects(mysql::mysql_clusters);
  return static_cast<std::size_t>(std::ranges::count_if(
      clusters, [&](const kube::Object& cluster) { return cluster.string_at({"status", "phase"}) == phase; }));
}

async::Awaitable<> add_clusters(kube::Api& api, int count) {
  auto ns =
      co_await api.create(kube::resources::namespaces, json::parse(R"({"metadata": {"name": "db"}})").as_object());
  ns.value();
  for (int number = 0; number < count; ++number) {
    const auto text = R"({"metadata": {"name": "c)" + std::to_string(number) + R"(", "namespace": "db"}, "spec": {}})";
    auto made = co_await api.create(mysql::mysql_clusters, json::parse(text).as_object());
    made.value();
  }
}

/// The operator's way to the API server, with a count of its requests.
class CountingApi final : public kube::Api {
 public:
  explicit CountingApi(kube::Api& real) : real_(real) {}

  async::Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    ++requests_;
    return real_.call(std::move(request));
  }
  async::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                                      const kube::Decoder& decoder) override {
    ++requests_;
    return real_.list(std::move(resource), std::move(options), decoder);
  }
  async::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource,
                                                                           kube::WatchOptions options,
                                                                           const kube::Decoder& decoder) override {
    ++requests_;
    return real_.watch(std::move(resource), std::move(options), decoder);
  }
  async::Awaitable<kube::Result<json::value>> get_path(std::string path) override {
    ++requests_;
    return real_.get_path(std::move(path));
  }
  [[nodiscard]] std::string_view name() const override { return real_.name(); }
  [[nodiscard]] double requests() const { return static_cast<double>(requests_); }

 private:
  kube::Api& real_;
  std::size_t requests_ = 0;
};

int clusters_wanted(int argc, char** argv) {
  for (int at = 1; at + 1 < argc; ++at)
    if (std::string_view{argv[at]} == "--clusters") return std::atoi(argv[at + 1]);
  return 1'000;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = clusters_wanted(argc, argv);
  perf::Report report{"mysql", argc, argv};
  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  const kube::Env env{loop.clock(), random, metrics, obs::Logger{}};
  sim::Options server_options;
  server_options.record_requests = false;
  // Old versions of objects take memory that is not the operator's.
  server_options.history = 5'000;
  sim::Server server{server_options, env};
  mysql::test::FakeMysql servers{server, loop.clock()};
  loop.run(sim::install_crds(server.api(), env));
  sim::StatefulSetOptions set_options;
  set_options.address = [&](const kube::Object& pod) { return servers.start_pod(pod); };
  sim::StatefulSets sets{server.api(), set_options, env};
  async::TaskScope scope{loop.executor()};
  scope.spawn(sets.run());
  loop.run(add_clusters(server.api(), count));

  CountingApi api{server.api()};
  auto controller = std::make_unique<mysql::Controller>(api, servers, servers, mysql::ControllerOptions{}, env);
  async::TaskScope working{loop.executor()};
  perf::Stopwatch start_watch;
  working.spawn(controller->run());
  for (int minute = 0; minute < 60 && in_phase(server, "Running") < static_cast<std::size_t>(count); ++minute)
    loop.run_for(1min);
  report.line("clusters Running", static_cast<double>(in_phase(server, "Running")), "", "all");
  report.line("CPU to create, per cluster, simulator included", start_watch.cpu() / count * 1e3, "ms");

  loop.run_for(2min);
  auto& probes =
      metrics.counter_family("hubferry_mysql_probes_total", "Probes of MySQL servers, by verdict.", {"verdict"});
  const auto probed = [&] { return probes.with({"writable"}).value() + probes.with({"read-only"}).value(); };
  const auto before = probed();
  const auto version = server.resource_version();
  const auto requests = api.requests();
  perf::Stopwatch idle_watch;
  loop.run_for(10min);
  const auto planned = 3.0 * count * 60;
  report.line("probes of 10 min that were made", (probed() - before) / planned * 100, "%", "100 %");
  report.line("writes to the API server in 10 min at rest", static_cast<double>(server.resource_version() - version),
              "", "0");
  report.line("CPU at rest, of one core, simulator included", idle_watch.cpu() / 600 * 100, "%");
  report.line("requests at rest, per cluster and minute", (api.requests() - requests) / count / 10, "");
  report.line("memory of the whole process, per cluster", perf::resident_bytes() / count / 1024, "KiB");

  perf::Stopwatch failover_watch;
  const int lost = count / 10;
  for (int number = 0; number < lost; ++number) servers.at("c" + std::to_string(number) + "-0").runs = false;
  loop.run_for(2min);
  std::size_t replaced = 0;
  for (int number = 0; number < lost; ++number) {
    const auto cluster = server.object(mysql::mysql_clusters, {"db", "c" + std::to_string(number)});
    replaced += cluster && cluster->string_at({"status", "primary"}) != "c" + std::to_string(number) + "-0" ? 1 : 0;
  }
  report.line("primaries lost at once", lost, "");
  report.line("replaced within 2 min", static_cast<double>(replaced), "", "all");
  report.line("CPU of a failover, simulator included", failover_watch.cpu() / std::max(1, lost) * 1e3, "ms");

  // Objects are shared with the simulated API server, and stay.
  const auto allocated = perf::allocated_bytes();
  working.stop();
  loop.run(working.join());
  controller.reset();
  report.line("of it the operator's own, allocated", (allocated - perf::allocated_bytes()) / count / 1024, "KiB");
  scope.stop();
  loop.run(scope.join());
  return 0;
}
