#include "app/demo/mysql/pod_runner.hpp"

#include <signal.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fstream>
#include <sstream>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/sql/sql.hpp"

namespace hubferry::app {

namespace {

namespace fs = std::filesystem;
namespace asio = async::asio;
using async::Awaitable;
using namespace std::chrono_literals;

// Small: a server starts in a second then. What is written is not forced to the disk: these servers lose their process
// and never their machine, and on a slow disk each commit would wait for what others write.
constexpr const char* small_server[] = {"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
                                        "--performance-schema=OFF", "--innodb-flush-method=nosync", "--debug-no-sync"};

kube::CacheOptions labelled() {
  kube::CacheOptions options;
  options.label_selector = mysql::names::cluster_label;
  return options;
}

std::string cluster_of(const kube::Object& pod) {
  return std::string{pod.label(mysql::names::cluster_label)};
}

}  // namespace

void make_data_template(const std::string& directory) {
  std::vector<std::string> command{"mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal",
                                   "--skip-test-db", "--datadir=" + directory};
  command.insert(command.end(), std::begin(small_server), std::end(small_server));
  if (::geteuid() == 0) command.emplace_back("--user=root");
  ChildProcess::Options options;
  options.log = directory + ".log";
  options.environment = {"TMPDIR=" + fs::path{directory}.parent_path().string()};
  ChildProcess install{command, options};
  if (install.wait() != 0) throw std::runtime_error("mariadb-install-db failed: " + read_file(options.log));
}

PodRunner::PodRunner(kube::Api& api, std::string data_template, kube::Env env)
    : api_(api),
      env_(std::move(env)),
      data_template_(std::move(data_template)),
      pods_(api, mysql::kinds::pods, labelled(), kube::object_decoder(), env_),
      jobs_(api, mysql::kinds::jobs, {}, kube::object_decoder(), env_) {
  // Every process has a network of its own: two runs at once do not meet.
  const auto number = static_cast<unsigned>(getpid()) % 60000;
  network_ = "127." + std::to_string(10 + number / 250) + "." + std::to_string(1 + number % 250) + ".";
}

Awaitable<> PodRunner::run() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(pods_.run());
    scope.spawn(jobs_.run());
    co_await pods_.wait_synced();
    co_await jobs_.wait_synced();
    const auto started = jobs_.subscribe([this, &scope](const kube::Key&, const auto& old, const auto& now) {
      if (old == nullptr && now != nullptr) scope.spawn(run_job(*now));
    });
    const auto follow = [this, &scope](const kube::Key& key, const auto& old, const auto& now) {
      const auto found = running_.find(key.name);
      const bool is_gone = now == nullptr || (found != running_.end() && found->second.uid != now->uid());
      if (is_gone && found != running_.end() && (old == nullptr || found->second.uid == old->uid()))
        running_.erase(found);
      if (now != nullptr && !running_.contains(key.name)) {
        running_[key.name].uid = now->uid();
        running_[key.name].key = key;
        scope.spawn(start(*now));
      }
    };
    const auto subscription = pods_.subscribe(follow, kube::Replay::existing);
    for (;;) co_await env_.clock.sleep_for(1h);
  };
  co_await async::with_scope(body);
}

Awaitable<std::string> PodRunner::secret(std::string ns, std::string name, std::string key) {
  auto found = co_await api_.get(kube::resources::secrets, {std::move(ns), std::move(name)});
  co_return found ? kube::decode_base64(found->string_at({"data", key})).value_or("") : "";
}

Awaitable<> PodRunner::start(kube::Object object) {
  const std::string name{object.name()};
  if (held_.contains(name)) co_return;
  auto& pod = running_.at(name);
  pod.address = pod.server_address = new_address();
  if (behind_proxies) pod.server_address = new_address();
  if (lost_volumes_.erase(name) > 0) fs::remove_all(path_of(name));
  co_await start_server(object, pod);
  auto password =
      co_await secret(std::string{object.ns()}, mysql::internal_secret_name(cluster_of(object)), "exporter");
  const auto found = running_.find(name);
  if (found == running_.end() || found->second.uid != object.uid()) co_return;  // deleted meanwhile
  start_exporter(found->second, password);
  const auto address = found->second.address;
  const auto server_address = found->second.server_address;
  if (address == server_address) co_return co_await report_ready(object, address, server_address);
  const std::vector<std::uint16_t> ports{mysql::mysql_port, mysql::exporter_port};
  const auto executor = co_await asio::this_coro::executor;
  found->second.proxy = std::make_unique<PodProxy>(executor, address, server_address, ports, env_.clock);
  auto serving = found->second.proxy->run();
  co_await report_ready(object, address, server_address);
  co_await std::move(serving);
}

Awaitable<> PodRunner::start_server(kube::Object object, Pod& pod) {
  const std::string name{object.name()};
  const std::string ns{object.ns()};
  const auto cluster = cluster_of(object);
  const auto home = path_of(name);
  const bool is_fresh = !fs::exists(home + "/data");
  auto config = co_await api_.get(kube::resources::config_maps, {ns, mysql::config_name(cluster)});
  auto password = co_await secret(ns, mysql::root_secret_name(cluster), mysql::names::password_key);
  const auto* init = object.find({"spec", "initContainers"});
  const bool restores = is_fresh && init != nullptr;
  if (restores) {
    fs::create_directories(home + "/data");
    auto owner = co_await api_.get(mysql::mysql_clusters, {ns, cluster});
    const auto spec = mysql::read_cluster_spec(owner->json());
    const int failure = co_await run_script(std::string{config->string_at({"data", "restore.sh"})}, home + "/data",
                                            spec.restore_claim, {"BACKUP=" + spec.restore_path});
    if (failure != 0) throw std::runtime_error("restoring failed");
  } else if (is_fresh) {
    fs::create_directories(home);
    fs::copy(data_template_, home + "/data", fs::copy_options::recursive);
    // As the image does: users that are no part of the binary log, whatever the configuration's sql_mode.
    std::ofstream{home + "/init.sql"} << "SET SESSION sql_log_bin=0;\nSET SESSION sql_mode='';\n"
                                      << "DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> "
                                         "'localhost');\nFLUSH PRIVILEGES;\n"
                                      << "CREATE USER 'root'@'%' IDENTIFIED BY " << sql::quoted(password) << ";\n"
                                      << "GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;\n"
                                      << "ALTER USER 'root'@'localhost' IDENTIFIED BY " << sql::quoted(password)
                                      << ";\n";
  }
  std::ofstream{home + "/my.cnf"} << (config ? std::string{config->string_at({"data", "hubferry.cnf"})} : "");
  const auto ordinal = mysql::ordinal_of(cluster, name).value_or(0);
  std::vector<std::string> command{find_program("mariadbd"),
                                   "--defaults-file=" + home + "/my.cnf",
                                   "--datadir=" + home + "/data",
                                   "--socket=" + home + "/socket",
                                   "--pid-file=" + home + "/pid",
                                   "--bind-address=" + pod.server_address,
                                   "--port=3306",
                                   "--server-id=" + std::to_string(100 + ordinal),
                                   "--report-host=" + name};
  command.insert(command.end(), std::begin(small_server), std::end(small_server));
  if (::geteuid() == 0) command.emplace_back("--user=root");
  if (is_fresh && !restores) command.push_back("--init-file=" + home + "/init.sql");
  // As start.sh does.
  if (const auto restored = home + "/data/hubferry-restored.sql"; fs::exists(restored))
    command.push_back("--init-file=" + restored);
  ChildProcess::Options options;
  options.log = home + "/log";
  // Of its own: a server that starts deletes the temporary tables of others there.
  fs::create_directories(home + "/tmp");
  options.environment = {"TMPDIR=" + home + "/tmp"};
  pod.server = std::make_unique<ChildProcess>(command, options);
}

void PodRunner::start_exporter(Pod& pod, const std::string& password) {
  ChildProcess::Options options;
  options.environment = {"DATA_SOURCE_NAME=" + std::string{mysql::names::exporter_user} + ":" + password + "@(" +
                         pod.server_address + ":3306)/"};
  const std::vector<std::string> command{"prometheus-mysqld-exporter",
                                         "--web.listen-address=" + pod.server_address + ":9104"};
  pod.exporter = std::make_unique<ChildProcess>(command, options);
}

/// Runs a container's script with its volumes in place of the paths that it knows.
Awaitable<int> PodRunner::run_script(std::string script, std::string data, std::string claim,
                                     std::vector<std::string> environment) {
  const auto backups = claim_directory(claim);
  fs::create_directories(backups);
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (auto at = script.find(from); at != std::string::npos; at = script.find(from, at + to.size()))
      script.replace(at, from.size(), to);
  };
  replace("/var/lib/mysql", data);
  replace("/backup/", backups + "/");
  replace("chown -R mysql:mysql", "true");
  ChildProcess::Options options;
  options.log = path_of("scripts.log");
  options.environment = std::move(environment);
  ChildProcess process{{"sh", "-c", script}, options};
  while (process.running()) co_await env_.clock.sleep_for(50ms);
  co_return process.wait();
}

Awaitable<> PodRunner::run_job(kube::Object job) {
  const auto& container = job.find({"spec", "template", "spec", "containers"})->as_array().at(0).as_object();
  const auto begun = env_.clock.wall_now();
  std::vector<std::string> environment;
  for (const auto& variable : container.at("env").as_array()) {
    const auto& of = variable.as_object();
    auto value = std::string{kube::string_at(of, {"value"})};
    if (const auto name = kube::string_at(of, {"valueFrom", "secretKeyRef", "name"}); !name.empty())
      value = co_await secret(std::string{job.ns()}, std::string{name},
                              std::string{kube::string_at(of, {"valueFrom", "secretKeyRef", "key"})});
    environment.push_back(std::string{kube::string_at(of, {"name"})} + "=" + value);
  }
  const auto& volumes = job.find({"spec", "template", "spec", "volumes"})->as_array();
  const auto claim_of = [&](std::size_t at) {
    return std::string{kube::string_at(volumes.at(at).as_object(), {"persistentVolumeClaim", "claimName"})};
  };
  const auto data = path_of(claim_of(0).substr(std::string_view{"data-"}.size())) + "/data";
  const int failure = co_await run_script(std::string{container.at("command").as_array().at(2).as_string()}, data,
                                          claim_of(1), std::move(environment));
  kube::Mutation mutate = [&](kube::json::object& object) {
    auto& status = kube::object_in(object, "status");
    status["startTime"] = async::format_time(begun);
    status["completionTime"] = async::format_time(env_.clock.wall_now());
    kube::set_condition(status, {failure == 0 ? "Complete" : "Failed", kube::ConditionStatus::yes, "Ended", "", 0},
                        env_.clock.wall_now());
    return true;
  };
  kube::EditOptions how;
  how.subresource = "status";
  co_await kube::edit(api_, mysql::kinds::jobs, job, std::move(mutate), how);
}

/// When its server accepts connections.
Awaitable<> PodRunner::report_ready(kube::Object pod, std::string address, std::string server_address) {
  for (;;) {
    asio::ip::tcp::socket socket{co_await asio::this_coro::executor};
    const auto [refused] = co_await socket.async_connect({asio::ip::make_address(server_address), mysql::mysql_port},
                                                         asio::as_tuple(asio::use_awaitable));
    if (!refused) break;
    co_await env_.clock.sleep_for(50ms);
    const auto found = running_.find(std::string{pod.name()});
    if (found == running_.end() || found->second.uid != pod.uid()) co_return;
  }
  kube::Mutation mutate = [&](kube::json::object& object) {
    auto& status = kube::object_in(object, "status");
    status["phase"] = "Running";
    status["podIP"] = address;
    kube::set_condition(status, {"Ready", kube::ConditionStatus::yes, "Started", "", 0}, env_.clock.wall_now());
    return true;
  };
  kube::EditOptions how;
  how.subresource = "status";
  co_await kube::edit(api_, mysql::kinds::pods, pod, std::move(mutate), how);
}

pid_t PodRunner::server_of(const std::string& pod) const {
  const auto found = running_.find(pod);
  if (found == running_.end() || !found->second.server || !found->second.server->running()) return 0;
  return found->second.server->pid();
}

void PodRunner::signal_server(const std::string& pod, int number) {
  if (const auto pid = server_of(pod); pid != 0) ::kill(pid, number);
}

void PodRunner::hold(const std::string& pod) {
  held_.insert(pod);
  kill_server(pod);
}

void PodRunner::cut_off(const std::string& pod) {
  if (const auto found = running_.find(pod); found != running_.end() && found->second.proxy) found->second.proxy->cut();
}

void PodRunner::lose_volume(const std::string& pod) {
  lost_volumes_.insert(pod);
}

void PodRunner::signal_exporter(const std::string& pod, int number) {
  const auto found = running_.find(pod);
  if (found != running_.end() && found->second.exporter) found->second.exporter->signal(number);
}

Awaitable<> PodRunner::restart_server(std::string pod) {
  auto& running = running_.at(pod);
  auto object = co_await api_.get(mysql::kinds::pods, running.key);
  if (object) co_await start_server(*object, running);
}

std::string PodRunner::address_of(const std::string& pod) const {
  const auto found = running_.find(pod);
  return found == running_.end() ? "" : found->second.address;
}

std::string PodRunner::log_of(const std::string& pod) const {
  std::ifstream file{pod == "scripts" ? path_of("scripts.log") : path_of(pod) + "/log"};
  std::stringstream text;
  text << file.rdbuf();
  const auto all = text.str();
  return all.size() > 3000 ? all.substr(all.size() - 3000) : all;
}

}  // namespace hubferry::app
