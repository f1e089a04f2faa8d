#pragma once

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "cluster_view.hpp"
#include "fake_mysql.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/mysql/controller.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/obs/log_sink.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/workloads.hpp"
#include "support/edge_coverage.hpp"

namespace hubferry::mysql::test {

using namespace std::chrono_literals;

/// The transitions that the tests of this program have taken.
inline phase::EdgeCoverage& coverage() {
  static phase::EdgeCoverage taken;
  return taken;
}

/// A simulated Kubernetes cluster with StatefulSets, MySQL servers in memory, and the operator, on virtual time.
class MysqlTest : public testing::Test, protected ClusterView {
 protected:
  MysqlTest() : ClusterView(server, log) {
    create(kube::resources::namespaces, R"({"metadata": {"name": "db"}})");
    for (const auto& definition : sim::crds())
      if (kube::string_at(definition, {"spec", "group"}) == mysql_clusters.group)
        loop.run(server.api().create(kube::resources::custom_resource_definitions, definition));
    loop.run_ready();
    sim::StatefulSetOptions options;
    options.address = [this](const kube::Object& pod) { return mysql.start_pod(pod); };
    sets = std::make_unique<sim::StatefulSets>(server.api(), options, quiet);
    scope.spawn(sets->run());
    start_operator();
  }
  ~MysqlTest() override {
    stop_operator();
    scope.stop();
    loop.run(scope.join());
  }

  void start_operator() { start_operator(loop.clock()); }
  void start_operator(async::Clock& clock) {
    ControllerOptions options;
    options.on_transition = coverage().recorder();
    auto& api = operators_api == nullptr ? server.api() : *operators_api;
    const kube::Env of_operator{clock, random, metrics, log.logger()};
    controller = std::make_unique<Controller>(api, mysql, mysql, options, of_operator);
    working = std::make_unique<async::TaskScope>(loop.executor());
    working->spawn(controller->run());
  }
  void stop_operator() {
    if (!working) return;
    working->stop();
    loop.run(working->join());
    working.reset();
    controller.reset();
  }

  void create(const kube::Resource& kind, const std::string& text) {
    auto made = loop.run(server.api().create(kind, json::parse(text).as_object()));
    EXPECT_TRUE(made) << made.error();
    loop.run_ready();
  }
  void given_cluster(const std::string& spec = "{}", const std::string& name = "demo") {
    create(mysql_clusters, R"({"metadata": {"name": ")" + name + R"(", "namespace": "db"}, "spec": )" + spec + "}");
  }
  /// A cluster that runs, with its primary demo-0.
  void given_running(const std::string& spec = "{}") {
    given_cluster(spec);
    run_for(1min);
    ASSERT_EQ(phase(), "Running") << status_text();
    ASSERT_EQ(primary(), "demo-0");
    ASSERT_THAT(mysql.writable(), testing::ElementsAre("demo-0"));
  }
  /// A cluster of servers that run, and no status: as after its loss.
  void given_running_servers_without_operator() {
    start_operator();
    given_running();
    stop_operator();
    patch(R"({"status": {"primary": null, "phase": "Creating"}})", mysql_clusters, "demo", "status");
    for (auto& [name, one] : mysql.servers()) one.replica.reset();
  }
  void patch(const std::string& text, const kube::Resource& kind = mysql_clusters, const std::string& name = "demo",
             const std::string& subresource = {}) {
    auto written = loop.run(server.api().merge_patch(kind, {"db", name}, json::parse(text).as_object(), subresource));
    EXPECT_TRUE(written) << written.error();
  }
  void run_for(async::Duration span) { loop.run_for(span); }

  [[nodiscard]] bool exists(const kube::Resource& kind, const std::string& name) const {
    return server.object(kind, {"db", name}).has_value();
  }
  [[nodiscard]] std::vector<std::string> writes_since_forgotten() const {
    std::vector<std::string> writes;
    for (const auto& request : server.requests())
      if (request.verb != "get" && request.verb != "list" && request.verb != "watch")
        writes.push_back(request.verb + " " + request.resource + " " + request.key.name);
    return writes;
  }

  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  obs::LogCapture log{{.format = obs::LogFormat::text, .level = obs::Level::info, .clock = &loop.clock()}};
  const kube::Env env{loop.clock(), random, metrics, log.logger()};
  const kube::Env quiet{loop.clock(), random, metrics, obs::Logger{}};
  sim::Server server{sim::Options{}, quiet};
  FakeMysql mysql{server, loop.clock()};
  kube::Api* operators_api = nullptr;  // of an operator that starts; nullptr: the server's own
  async::TaskScope scope{loop.executor()};
  std::unique_ptr<sim::StatefulSets> sets;
  std::unique_ptr<Controller> controller;
  std::unique_ptr<async::TaskScope> working;
};

}  // namespace hubferry::mysql::test
