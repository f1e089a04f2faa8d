#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/mysql/controller.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/obs/log_sink.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/server.hpp"
#include "hubferry/sim/workloads.hpp"
#include "pod_runner.hpp"
#include "support/real_loop.hpp"

namespace hubferry::mysql::test {

using namespace std::chrono_literals;

/// Writes one row after the other through the write Service's endpoint, as an application does: a new connection where
/// the last one broke. It looks the endpoint up for each connection, as kube-proxy does.
class Writer {
 public:
  Writer(sim::Server& server, sql::Connector& connector, async::Clock& clock)
      : server_(server), connector_(connector), clock_(clock) {}

  Awaitable<> run() {
    std::unique_ptr<sql::Connection> connection;
    for (;;) {
      if (!connection) {
        auto opened = co_await connect();
        if (opened) connection = std::move(*opened);
      }
      const auto number = ++last_;
      bool acknowledged = false;
      if (connection) {
        auto answer = co_await connection->query("INSERT INTO app.t VALUES (" + std::to_string(number) + ")",
                                                 async::later(clock_.now(), 2s));
        acknowledged = answer.has_value();
        if (!acknowledged) connection.reset();
      }
      if (acknowledged) {
        const auto now = clock_.now();
        if (!written_.empty()) longest_pause_ = std::max(longest_pause_, now - last_success_);
        last_success_ = now;
        written_.push_back(number);
      } else {
        ++refused_;
        co_await clock_.sleep_for(50ms);
      }
    }
  }

  [[nodiscard]] const std::vector<std::int64_t>& acknowledged() const { return written_; }
  [[nodiscard]] std::size_t refused() const { return refused_; }
  /// The longest time without an acknowledged write since the last call.
  async::Duration take_longest_pause() { return std::exchange(longest_pause_, async::Duration::zero()); }
  [[nodiscard]] async::TimePoint last_success() const { return last_success_; }

 private:
  Awaitable<sql::Result<std::unique_ptr<sql::Connection>>> connect() {
    const auto slice = server_.object(kinds::endpoint_slices, {"db", "demo-mysql-write"});
    std::string address;
    if (slice)
      for (const auto& endpoint : slice->find({"endpoints"})->as_array())
        address = std::string{endpoint.at("addresses").at(0).as_string()};
    if (address.empty()) co_return sql::Error{sql::ErrorKind::unreachable, 0, "no endpoint"};
    sql::Credentials credentials{"app", obs::Secret{"app"}};
    co_return co_await connector_.connect({address, mysql_port}, credentials, async::later(clock_.now(), 1s));
  }

  sim::Server& server_;
  sql::Connector& connector_;
  async::Clock& clock_;
  std::int64_t last_ = 0;
  std::vector<std::int64_t> written_;
  std::size_t refused_ = 0;
  async::TimePoint last_success_{};
  async::Duration longest_pause_{};
};

/// Real MariaDB servers and exporters as the pods of a simulated Kubernetes cluster, on real time. Probes come every
/// half second instead of ten: three of them make a failure all the same.
class RealMysqlTest : public testing::Test {
 protected:
  static constexpr auto probe_interval = 500ms;

  RealMysqlTest() {
    loop.run(prepare());
    scope.spawn(sets.run());
    scope.spawn(runner.run());
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
    for (const auto& definition : sim::crds())
      if (kube::string_at(definition, {"spec", "group"}) == mysql_clusters.group)
        co_await server.api().create(kube::resources::custom_resource_definitions, definition);
    co_await clock.sleep_for(50ms);
  }
  void start_operator() {
    ControllerOptions options;
    options.probe_interval = probe_interval;
    options.probe_timeout = 1500ms;  // on a busy machine an exporter takes its time
    options.resync = 2s;
    options.young = 1s;
    controller = std::make_unique<Controller>(server.api(), *connector, *exporter, options, env);
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
  static sim::StatefulSetOptions set_options() {
    sim::StatefulSetOptions options;
    options.start_delay = std::nullopt;
    return options;
  }

  void patch(const std::string& text) {
    auto written = loop.run(server.api().merge_patch(mysql_clusters, {"db", "demo"}, json::parse(text).as_object()));
    EXPECT_TRUE(written) << written.error();
  }
  [[nodiscard]] kube::Object cluster() const {
    return server.object(mysql_clusters, {"db", "demo"}).value_or(kube::Object{});
  }
  [[nodiscard]] std::string phase() const { return std::string{cluster().string_at({"status", "phase"})}; }
  [[nodiscard]] std::string primary() const { return std::string{cluster().string_at({"status", "primary"})}; }
  [[nodiscard]] std::string condition(const char* type) const {
    const auto object = cluster();
    const auto* found = kube::find_condition(object, type);
    if (found == nullptr) return "";
    return std::string{kube::string_at(*found, {"status"})} + " " + std::string{kube::string_at(*found, {"reason"})};
  }
  [[nodiscard]] std::string condition_message(const char* type) const {
    const auto object = cluster();
    const auto* found = kube::find_condition(object, type);
    return found == nullptr ? "" : std::string{kube::string_at(*found, {"message"})};
  }
  [[nodiscard]] std::string status_text() const {
    const auto object = cluster();
    const auto* status = object.find({"status"});
    auto text = status == nullptr ? "no status" : json::serialize(*status);
    for (const auto& line : log.lines()) text += "\n" + line;
    return text;
  }

  /// True when it holds within a time that is never needed.
  bool eventually(const std::function<bool()>& predicate, async::Duration limit = 120s) {
    const auto deadline = async::later(clock.now(), limit);
    while (!predicate() && clock.now() < deadline) loop.run(clock.sleep_for(20ms));
    return predicate();
  }
  void run_for(async::Duration span) { loop.run(clock.sleep_for(span)); }
  [[nodiscard]] bool is_settled() const {
    return phase() == "Running" && condition("PrimaryHealthy") == "True HeartbeatOK" &&
           condition("ReplicasHealthy") == "True Replicating" && !condition("FailoverInProgress").starts_with("True");
  }

  void given_running(const std::string& spec) {
    auto made = loop.run(server.api().create(
        mysql_clusters,
        json::parse(R"({"metadata": {"name": "demo", "namespace": "db"}, "spec": )" + spec + "}").as_object()));
    ASSERT_TRUE(made) << made.error();
    ASSERT_TRUE(eventually([&] { return is_settled(); })) << status_text() << runner.log_of("demo-0");
    query(primary(), "CREATE DATABASE app");
    query(primary(), "CREATE TABLE app.t (id BIGINT PRIMARY KEY)");
    query(primary(), "CREATE USER 'app'@'%' IDENTIFIED BY 'app'");
    query(primary(), "GRANT SELECT, INSERT, UPDATE, DELETE ON app.* TO 'app'@'%'");
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
        co_await connector->connect({runner.address_of(pod), mysql_port}, credentials, async::later(clock.now(), 5s));
    if (!connection) co_return connection.error();
    co_return co_await (*connection)->query(std::move(statement), async::later(clock.now(), 20s));
  }
  std::string value(const std::string& pod, const std::string& expression) {
    const auto rows = query(pod, "SELECT " + expression + " AS value");
    return rows.empty() ? "" : sql::text_of(rows.front(), "value");
  }
  std::vector<std::string> writable() {
    std::vector<std::string> names;
    for (const auto* pod : {"demo-0", "demo-1", "demo-2"})
      if (!runner.address_of(pod).empty() && value(pod, "@@global.read_only") == "0") names.emplace_back(pod);
    return names;
  }
  /// The acknowledged rows that the primary does not have.
  std::vector<std::int64_t> missing(const Writer& writer) {
    std::set<std::string> there;
    for (const auto& row : query(primary(), "SELECT id FROM app.t")) there.insert(sql::text_of(row, "id"));
    std::vector<std::int64_t> lost;
    for (const auto number : writer.acknowledged())
      if (!there.contains(std::to_string(number))) lost.push_back(number);
    return lost;
  }
  [[nodiscard]] std::size_t events(std::string_view reason) const {
    std::size_t count = 0;
    for (const auto& event : server.objects(kube::resources::events))
      count += event.string_at({"reason"}) == reason ? 1 : 0;
    return count;
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
  std::unique_ptr<Exporter> exporter = make_http_exporter(clock);
  Writer writer{server, *connector, clock};
  sim::StatefulSets sets{server.api(), set_options(), quiet};
  PodRunner runner{server.api(), quiet};
  async::TaskScope scope{loop.executor()};
  std::unique_ptr<Controller> controller;
  std::unique_ptr<async::TaskScope> working;
};

}  // namespace hubferry::mysql::test
