#include "app/demo/mysql/mysql_demo.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/parse.hpp>
#include <ostream>
#include <set>

#include "app/cli/output.hpp"
#include "app/demo/demo_progress.hpp"
#include "app/demo/mysql/pod_runner.hpp"
#include "app/demo/mysql/service_proxy.hpp"
#include "app/demo/mysql/writing_client.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/mysql/controller.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/server.hpp"
#include "hubferry/sim/workloads.hpp"

namespace hubferry::app {

namespace {

using namespace std::chrono_literals;
namespace json = kube::json;
using async::Awaitable;

constexpr auto mysql_demo_limit = 2min;  // of each step
constexpr const char* mysql_demo_ns = "default";
constexpr const char* mysql_demo_name = "demo";
constexpr std::size_t writes_before_the_kill = 300;

mysql::ControllerOptions quick_probes() {
  mysql::ControllerOptions options;
  options.probe_interval = 1s;
  options.probe_timeout = 900ms;
  options.resync = 2s;
  options.young = 1s;
  return options;
}

sim::StatefulSetOptions pods_by_runner() {
  sim::StatefulSetOptions options;
  options.start_delay = std::nullopt;
  return options;
}

std::string condition_text(const kube::Object& cluster, const char* type) {
  const auto* found = kube::find_condition(cluster, type);
  if (found == nullptr) return "";
  return std::string{kube::string_at(*found, {"status"})} + " " + std::string{kube::string_at(*found, {"reason"})} +
         ": " + std::string{kube::string_at(*found, {"message"})};
}

/// All three servers, with the operator on a simulated API server, and what is printed about them.
class MysqlDemo {
 public:
  MysqlDemo(const async::Executor& executor, std::string data_template, kube::Env env, std::ostream& out)
      : env_(std::move(env)),
        world_{env_.clock, env_.random, world_metrics_, env_.log.named("world")},
        out_(out),
        server_(server_options(), world_),
        sets_(server_.api(), pods_by_runner(), world_),
        runner_(server_.api(), std::move(data_template), world_),
        connector_(sql::make_connector(env_.clock)),
        exporter_(mysql::make_http_exporter(env_.clock)),
        controller_(server_.api(), *connector_, *exporter_, quick_probes(), env_),
        proxy_(server_.api(), {mysql_demo_ns, mysql::write_service_name(mysql_demo_name)}, executor, world_),
        client_(*connector_, {"127.0.0.1", proxy_.port()}, env_.clock),
        clusters_(server_.api(), mysql::mysql_clusters, {}, kube::object_decoder(), world_),
        start_(env_.clock.now()) {}

  Awaitable<int> run() {
    int code = 1;
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      co_await sim::install_crds(server_.api(), world_);
      scope.spawn(sets_.run());
      scope.spawn(runner_.run());
      scope.spawn(controller_.run());
      scope.spawn(proxy_.run());
      scope.spawn(clusters_.run());
      const auto subscription =
          clusters_.subscribe([this](const kube::Key&, const auto&, const auto& now) { show_changes(now.get()); });
      code = co_await steps(scope);
      scope.stop();
    };
    co_await async::with_scope(body);
    co_return code;
  }

 private:
  static sim::Options server_options() {
    sim::Options options;
    options.record_requests = false;
    return options;
  }

  Awaitable<int> steps(async::TaskScope& scope) {
    const auto text = R"({"metadata": {"name": "demo", "namespace": "default"}, "spec": {"replicas": 3}})";
    auto made = co_await server_.api().create(mysql::mysql_clusters, json::parse(text).as_object());
    if (!made) throw std::runtime_error(made.error().describe());
    if (!co_await holds_soon([this] { return is_settled(); })) co_return fail("the servers did not start");
    has_started_ = true;
    say(primary() + " is the primary, the others replicate from it");
    const auto settled = cluster();
    show_changes(&settled);
    for (const auto& statement : writing_client_setup()) co_await query(primary(), statement);
    say("a client writes through the Service demo-mysql-write, one row after the other");
    client_.on_change = [this](bool is_acknowledged) {
      if (is_acknowledged)
        say("client: writes are acknowledged again, " + demo_time(client_.take_longest_pause()) +
            " after the last one; " + plural(client_.refused(), "write") + " refused or without an answer");
      else
        say("client: the first write is refused, after " + plural(client_.acknowledged().size(), "acknowledged write"));
    };
    auto* writing = scope.spawn(client_.run());
    const auto has_written = [this](std::size_t more) {
      const auto count = client_.acknowledged().size() + more;
      return [this, count] { return client_.acknowledged().size() >= count; };
    };
    if (!co_await holds_soon(has_written(writes_before_the_kill))) co_return fail("the client could not write");
    const auto old = primary();
    say("kill -9 of the primary " + old);
    runner_.kill_server(old);
    if (!co_await holds_soon([&] { return primary() != old && is_settled(); }))
      co_return fail("no other server took over");
    say(old + " is back as a replica of " + primary());
    if (!co_await holds_soon(has_written(writes_before_the_kill))) co_return fail("the client could not write again");
    scope.stop(*writing);
    co_return co_await conclude();
  }

  Awaitable<int> conclude() {
    std::set<std::string> rows;
    for (const auto& row : co_await query(primary(), "SELECT id FROM app.t")) rows.insert(sql::text_of(row, "id"));
    std::size_t missing = 0;
    for (const auto number : client_.acknowledged()) missing += rows.contains(std::to_string(number)) ? 0 : 1;
    std::string writable;
    for (std::size_t ordinal = 0; ordinal < 3; ++ordinal) {
      const auto pod = mysql::pod_name(mysql_demo_name, ordinal);
      const auto answer = co_await query(pod, "SELECT @@global.read_only AS value");
      if (sql::text_of(answer.at(0), "value") == "0") writable += (writable.empty() ? "" : ", ") + pod;
    }
    const bool is_good = missing == 0 && writable == primary();
    out_ << "\n"
         << (is_good ? "Success: " : "Failure: ") << client_.acknowledged().size() << " writes were acknowledged, "
         << missing << " of them are missing, " << client_.refused()
         << " were refused or got no answer; writable: " << writable << ".\n";
    flush(out_);
    co_return is_good ? 0 : 1;
  }

  int fail(const std::string& why) {
    say("Failure: " + why);
    const auto object = cluster();
    if (const auto* status = object.find({"status"})) out_ << json::serialize(*status) << "\n";
    return 1;
  }

  template <typename Predicate>
  Awaitable<bool> holds_soon(Predicate predicate) {
    const auto limit = async::later(env_.clock.now(), mysql_demo_limit);
    while (!predicate() && env_.clock.now() < limit) co_await env_.clock.sleep_for(20ms);
    co_return predicate();
  }

  /// As root, on one server.
  Awaitable<sql::Rows> query(std::string pod, std::string statement) {
    const auto secret =
        server_.object(kube::resources::secrets, {mysql_demo_ns, mysql::root_secret_name(mysql_demo_name)});
    const auto password = kube::decode_base64(secret->string_at({"data", mysql::names::password_key}));
    sql::Credentials credentials{"root", obs::Secret{password.value_or("")}};
    sql::Address address{runner_.address_of(pod), mysql::mysql_port};
    const auto limit = async::later(env_.clock.now(), 30s);
    auto connection = co_await connector_->connect(address, credentials, limit);
    if (!connection) throw std::runtime_error(pod + ": " + connection.error().describe());
    auto rows = co_await (*connection)->query(std::move(statement), limit);
    if (!rows) throw std::runtime_error(pod + ": " + rows.error().describe());
    co_return std::move(*rows);
  }

  [[nodiscard]] kube::Object cluster() const {
    return server_.object(mysql::mysql_clusters, {mysql_demo_ns, mysql_demo_name}).value_or(kube::Object{});
  }
  [[nodiscard]] std::string primary() const { return std::string{cluster().string_at({"status", "primary"})}; }
  [[nodiscard]] bool is_settled() const {
    const auto object = cluster();
    return object.string_at({"status", "phase"}) == mysql::phases::running &&
           kube::is_condition_true(object, mysql::conditions::primary_healthy) &&
           kube::is_condition_true(object, mysql::conditions::replicas_healthy) &&
           object.find({"status", "failover"}) == nullptr;
  }

  /// The conditions that have changed, and the replica that was chosen: what `kubectl describe` would show.
  void show_changes(const kube::Object* cluster) {
    if (cluster == nullptr || !has_started_) return;
    for (const auto* type : {mysql::conditions::primary_healthy, mysql::conditions::failover_in_progress}) {
      auto text = condition_text(*cluster, type);
      if (text.empty() || text == shown_[type]) continue;
      say(std::string{type} + " " + text);
      shown_[type] = std::move(text);
    }
    std::string chosen{cluster->string_at({"status", "failover", "to"})};
    if (!chosen.empty() && chosen != shown_["to"])
      say("chosen: " + chosen + " has received everything, and applied it");
    shown_["to"] = std::move(chosen);
  }

  void say(const std::string& text) {
    auto when = demo_time(env_.clock.now() - start_);
    when.resize(std::max<std::size_t>(when.size() + 1, 7), ' ');
    out_ << when << text << "\n";
    flush(out_);
  }

  kube::Env env_;
  obs::Metrics world_metrics_;
  kube::Env world_;
  std::ostream& out_;
  sim::Server server_;
  sim::StatefulSets sets_;
  PodRunner runner_;
  std::unique_ptr<sql::Connector> connector_;
  std::unique_ptr<mysql::Exporter> exporter_;
  mysql::Controller controller_;
  ServiceProxy proxy_;
  WritingClient client_;
  kube::Cache<kube::Object> clusters_;
  async::TimePoint start_;
  bool has_started_ = false;  // before that, what is missing says nothing
  std::map<std::string, std::string> shown_;
};

}  // namespace

void require_mysql_programs() {
  std::string missing;
  for (const char* program : {"mariadbd", "mariadb-install-db", "prometheus-mysqld-exporter", "setpriv"})
    if (find_program(program).empty()) missing += (missing.empty() ? "" : ", ") + std::string{program};
  if (missing.empty()) return;
  throw std::runtime_error("--mysql runs real MariaDB servers, and these programs were not found: " + missing +
                           ". On Debian: apt-get install mariadb-server prometheus-mysqld-exporter");
}

Awaitable<int> run_mysql_demo(async::Event& stop, kube::Env env, std::ostream& out) {
  const async::Executor executor = co_await async::asio::this_coro::executor;
  out << "Starting three real MariaDB servers with their exporters on loopback, under the MySQL operator.\n"
         "Probes come every second instead of every ten; three that fail are a failure.\n\n";
  flush(out);
  const TemporaryDirectory directory{"hubferry-mysql-template-"};
  const auto data_template = (directory.path() / "data").string();
  make_data_template(data_template);
  MysqlDemo demo{executor, data_template, env, out};
  int code = 130;
  auto steps = [&](async::TaskScope& scope) -> Awaitable<> {
    auto stopped = [&]() -> Awaitable<> {
      co_await stop.wait();
      scope.stop();
    };
    scope.spawn(stopped());
    code = co_await demo.run();
    scope.stop();
  };
  co_await async::with_scope(steps);
  co_return code;
}

}  // namespace hubferry::app
