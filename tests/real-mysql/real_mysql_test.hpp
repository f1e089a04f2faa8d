#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "app/demo/mysql/pod_runner.hpp"
#include "app/demo/mysql/service_proxy.hpp"
#include "app/demo/mysql/writing_client.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/mysql/controller.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/obs/log_sink.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/server.hpp"
#include "hubferry/sim/workloads.hpp"
#include "mysql/cluster_view.hpp"
#include "support/real_loop.hpp"

namespace hubferry::mysql::test {

using async::Awaitable;
using namespace std::chrono_literals;

/// What servers with empty volumes begin with, made once: that takes seconds.
inline const std::string& data_template() {
  static const app::TemporaryDirectory directory{"hubferry-mysql-template-"};
  static const std::string path = [] {
    auto made = (directory.path() / "data").string();
    app::make_data_template(made);
    return made;
  }();
  return path;
}

/// Reports each statement that a server has executed.
class WatchedConnector final : public sql::Connector {
 public:
  explicit WatchedConnector(sql::Connector& real) : real_(real) {}
  Awaitable<sql::Result<std::unique_ptr<sql::Connection>>> connect(sql::Address address, sql::Credentials credentials,
                                                                   async::TimePoint deadline) override {
    auto opened = co_await real_.connect(std::move(address), std::move(credentials), deadline);
    if (!opened) co_return opened.error();
    co_return std::unique_ptr<sql::Connection>{std::make_unique<Watched>(std::move(*opened), *this)};
  }
  std::function<void(const std::string&)> after = {};

 private:
  class Watched final : public sql::Connection {
   public:
    Watched(std::unique_ptr<sql::Connection> real, WatchedConnector& owner) : real_(std::move(real)), owner_(owner) {}
    Awaitable<sql::Result<sql::Rows>> query(std::string statement, async::TimePoint deadline) override {
      auto rows = co_await real_->query(statement, deadline);
      if (rows && owner_.after) owner_.after(statement);
      co_return rows;
    }

   private:
    std::unique_ptr<sql::Connection> real_;
    WatchedConnector& owner_;
  };
  sql::Connector& real_;
};

/// Real MariaDB servers and exporters as the pods of a simulated Kubernetes cluster, on real time. Probes come every
/// half second instead of ten: three of them make a failure all the same.
class RealMysqlTest : public testing::Test, protected ClusterView {
 protected:
  static constexpr auto probe_interval = 500ms;
  async::Duration young = 1s;  // of an operator that starts

  RealMysqlTest() : ClusterView(server, log) {
    loop.run(prepare());
    scope.spawn(sets.run());
    scope.spawn(runner.run());
    scope.spawn(proxy.run());
    start_operator();
  }
  ~RealMysqlTest() override {
    stop_operator();
    scope.stop();
    loop.run(scope.join());
  }

  Awaitable<> prepare() {
    co_await server.api().create(kube::resources::namespaces,
                                 json::parse(R"({"metadata": {"name": "db"}})").as_object());
    co_await sim::install_crds(server.api(), quiet);
  }
  void start_operator() {
    ControllerOptions options;
    options.probe_interval = probe_interval;
    options.probe_timeout = 1500ms;  // on a busy machine an exporter takes its time
    options.resync = 2s;
    options.young = young;
    options.volume_interval = 1s;
    controller = std::make_unique<Controller>(server.api(), operators_connector, *exporter, options, env);
    working = std::make_unique<async::TaskScope>(loop.executor());
    working->spawn(controller->run());
  }
  /// Probes so far that ended with this verdict, of all servers.
  [[nodiscard]] double probes(const std::string& verdict) {
    return metrics.counter_family("hubferry_mysql_probes_total", "Probes of MySQL servers, by verdict.", {"verdict"})
        .with({verdict})
        .value();
  }
  /// Until each replica has been probed several times more.
  void run_for_some_probes() {
    const auto before = probes("read-only");
    ASSERT_TRUE(eventually([&] { return probes("read-only") >= before + 8; })) << status_text();
  }
  void stop_operator() {
    if (!working) return;
    working->stop();
    loop.run(working->join());
    working.reset();
    controller.reset();
  }
  static sim::StatefulSetOptions set_options() {
    sim::StatefulSetOptions options;
    options.start_delay = std::nullopt;
    return options;
  }

  void patch(const std::string& text) {
    auto written = loop.run(server.api().merge_patch(mysql_clusters, {"db", "demo"}, json::parse(text).as_object()));
    EXPECT_TRUE(written) << written.error();
  }
  /// True when it holds within a time that is never needed.
  bool eventually(const std::function<bool()>& predicate, async::Duration limit = 300s) {
    const auto deadline = async::later(clock.now(), limit);
    // Never called again once it held: some predicates do what they ask about.
    for (; !predicate(); loop.run(clock.sleep_for(20ms)))
      if (clock.now() >= deadline) return false;
    return true;
  }
  void run_for(async::Duration span) { loop.run(clock.sleep_for(span)); }
  void given_running(const std::string& spec) {
    auto made = loop.run(server.api().create(
        mysql_clusters,
        json::parse(R"({"metadata": {"name": "demo", "namespace": "db"}, "spec": )" + spec + "}").as_object()));
    ASSERT_TRUE(made) << made.error();
    ASSERT_TRUE(eventually([&] { return is_settled(); })) << status_text() << runner.log_of("demo-0");
    for (const auto& statement : app::writing_client_setup()) query(primary(), statement);
    // A replica has received them, no more. Without the table, a test would meet an error instead of a number.
    for (const auto& pod : pods())
      ASSERT_TRUE(eventually([&] { return answers(pod, "SELECT COUNT(*) FROM app.t"); })) << pod << status_text();
  }
  /// The cluster's pods that have an address.
  std::vector<std::string> pods() {
    std::vector<std::string> names;
    for (const auto* pod : {"demo-0", "demo-1", "demo-2"})
      if (!runner.address_of(pod).empty()) names.emplace_back(pod);
    return names;
  }
  bool answers(const std::string& pod, const std::string& statement) {
    return loop.run(query_as(pod, statement, root())).has_value();
  }
  /// As root, on one server.
  sql::Rows query(const std::string& pod, const std::string& statement) {
    auto rows = loop.run(query_as(pod, statement, root()));
    EXPECT_TRUE(rows) << pod << ": " << statement << ": " << rows.error().describe();
    return rows ? *rows : sql::Rows{};
  }
  sql::Credentials root() const {
    const auto secret = server.object(kube::resources::secrets, {"db", "demo-root"});
    return {"root", obs::Secret{kube::decode_base64(secret->string_at({"data", "password"})).value_or("")}};
  }
  Awaitable<sql::Result<sql::Rows>> query_as(std::string pod, std::string statement, sql::Credentials credentials) {
    auto connection =
        co_await connector->connect({runner.address_of(pod), mysql_port}, credentials, async::later(clock.now(), 30s));
    if (!connection) co_return connection.error();
    co_return co_await (*connection)->query(std::move(statement), async::later(clock.now(), 60s));
  }
  std::string value(const std::string& pod, const std::string& expression) {
    const auto rows = query(pod, "SELECT " + expression + " AS value");
    return rows.empty() ? "" : sql::text_of(rows.front(), "value");
  }
  std::vector<std::string> writable() {
    std::vector<std::string> names;
    for (const auto& pod : pods()) {
      // One that is starting gives no answer yet.
      const auto rows = loop.run(query_as(pod, "SELECT @@global.read_only AS value", root()));
      if (rows && sql::text_of(rows->at(0), "value") == "0") names.emplace_back(pod);
    }
    return names;
  }
  /// The acknowledged rows that the primary does not have.
  std::vector<std::int64_t> missing(const app::WritingClient& writer) {
    // As of now: it goes on writing while the query runs.
    const auto acknowledged = writer.acknowledged();
    std::set<std::string> there;
    for (const auto& row : query(primary(), "SELECT id FROM app.t")) there.insert(sql::text_of(row, "id"));
    std::vector<std::int64_t> lost;
    for (const auto number : acknowledged)
      if (!there.contains(std::to_string(number))) lost.push_back(number);
    return lost;
  }

  hubferry::test::RealLoop loop;
  async::RealClock clock;
  async::Random random{1};
  obs::Metrics metrics;
  obs::LogCapture log{{.format = obs::LogFormat::text, .level = obs::Level::info, .clock = &clock}};
  const kube::Env env{clock, random, metrics, log.logger()};
  const kube::Env quiet{clock, random, metrics, obs::Logger{}};
  sim::Server server{sim::Options{}, quiet};
  std::unique_ptr<sql::Connector> connector = sql::make_connector(clock);
  WatchedConnector operators_connector{*connector};
  std::unique_ptr<Exporter> exporter = make_http_exporter(clock);
  sim::StatefulSets sets{server.api(), set_options(), quiet};
  app::PodRunner runner{server.api(), data_template(), quiet};
  app::ServiceProxy proxy{server.api(), {"db", "demo-mysql-write"}, loop.executor(), quiet};
  /// Writes through the proxy, as an application does.
  app::WritingClient writer{*connector, {"127.0.0.1", proxy.port()}, clock};
  async::TaskScope scope{loop.executor()};
  std::unique_ptr<Controller> controller;
  std::unique_ptr<async::TaskScope> working;
};

}  // namespace hubferry::mysql::test
