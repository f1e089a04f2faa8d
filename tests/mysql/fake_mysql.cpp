#include "fake_mysql.hpp"

#include <algorithm>

#include "hubferry/kube/base64.hpp"
#include "hubferry/mysql/resource.hpp"
#include "mysql/gtid.hpp"

namespace hubferry::mysql::test {

namespace {

bool starts(const std::string& statement, std::string_view with) {
  return statement.starts_with(with);
}

/// The text between the quotes after `field`.
std::string literal_after(const std::string& statement, const std::string& field) {
  const auto begin = statement.find(field + "'");
  if (begin == std::string::npos) return {};
  const auto first = begin + field.size() + 1;
  return statement.substr(first, statement.find('\'', first) - first);
}

sql::Error lost() {
  return {sql::ErrorKind::unreachable, 2013, "lost"};
}

}  // namespace

std::string FakeServer::position() const {
  if (log.empty()) return "";
  return "0-" + std::to_string(log.back().server) + "-" + std::to_string(log.back().sequence);
}

void FakeServer::append(std::string root_password) {
  log.push_back({id, log.empty() ? 1 : log.back().sequence + 1, std::move(root_password)});
}

class FakeConnection final : public sql::Connection {
 public:
  FakeConnection(FakeMysql& mysql, std::string address) : mysql_(mysql), address_(std::move(address)) {}
  Awaitable<sql::Result<sql::Rows>> query(std::string statement, async::TimePoint deadline) override {
    return mysql_.execute(address_, std::move(statement), deadline);
  }

 private:
  FakeMysql& mysql_;
  std::string address_;
};

std::string FakeMysql::start_pod(const kube::Object& pod) {
  const std::string name{pod.name()};
  const bool is_new = !servers_.contains(name);
  auto& server = servers_[name];
  const auto number = ++addresses_;
  server.address = "10." + std::to_string(number >> 16) + "." + std::to_string(number >> 8 & 255) + "." +
                   std::to_string(number & 255);
  if (is_v6) server.address = "fd00::" + std::to_string(number);
  by_address_[server.address] = name;
  server.report_host = name;
  const auto cluster = name.substr(0, name.rfind('-'));
  server.id = 100 + static_cast<std::uint32_t>(std::stoul(name.substr(name.rfind('-') + 1)));
  const std::string version{pod.annotation(names::version_annotation)};
  server.version = version + ".6-MariaDB";
  if (is_new) {
    // As images do: from the Secret when the data directory is empty.
    for (const auto& name : {root_secret_name(cluster), std::string{"chosen"}})
      if (const auto secret = kube_.object(kube::resources::secrets, {std::string{pod.ns()}, name}))
        server.root_password = kube::decode_base64(secret->string_at({"data", "password"})).value_or("");
  }
  restart(name);
  return server.address;
}

void FakeMysql::restart(const std::string& pod) {
  auto& server = servers_.at(pod);
  server.runs = true;
  server.hangs = false;
  server.read_only = true;
  server.semi_sync = false;
  server.started = clock_.now();
  if (server.replica) server.replica->io = server.replica->sql = false;
}

FakeServer* FakeMysql::find(const std::string& address, std::string* pod) {
  const auto name = by_address_.find(address);
  if (name == by_address_.end()) return nullptr;
  auto& server = servers_.at(name->second);
  // The pod may be gone, or its successor have another address.
  const auto object = kube_.object(kinds::pods, {"db", name->second});
  if (server.address != address || !object || object->string_at({"status", "podIP"}) != address) return nullptr;
  if (server.away) return nullptr;
  if (pod != nullptr) *pod = name->second;
  return &server;
}

const FakeServer* FakeMysql::source_of(const FakeReplication& replica) {
  const auto* source = find(replica.host);
  return source != nullptr && source->runs && !source->hangs && source->accepts_replicas ? source : nullptr;
}

void FakeMysql::replicate() {
  for (auto& [name, server] : servers_) replicate(server);
}

void FakeMysql::replicate(FakeServer& server) {
  if (!server.replica || !server.runs || server.hangs || server.away) return;
  auto& replica = *server.replica;
  const auto* source = source_of(replica);
  if (replica.io && source != nullptr && source->has_users) {
    const auto last = !replica.relay.empty() ? replica.relay.back()
                      : server.log.empty()   ? Transaction{}
                                             : server.log.back();
    auto from = source->log.begin();
    if (last.sequence != 0) {
      from = std::ranges::find(source->log, last);
      if (from == source->log.end()) {
        replica.io = false;
        replica.io_error = 1236;
        return;
      }
      ++from;
    }
    replica.relay.insert(replica.relay.end(), from, source->log.end());
  }
  if (!replica.sql || replica.sql_error != 0 || server.delay) return;
  if (replica.relay.size() <= server.transactions_behind) return;
  const auto end = replica.relay.end() - static_cast<std::ptrdiff_t>(server.transactions_behind);
  for (auto at = replica.relay.begin(); at != end; ++at)
    if (!at->root_password.empty()) server.root_password = at->root_password;
  server.log.insert(server.log.end(), replica.relay.begin(), end);
  replica.relay.erase(replica.relay.begin(), end);
}

bool FakeMysql::write(const std::string& address) {
  replicate();
  auto* server = find(address);
  if (server == nullptr || !server->runs || server->hangs || server->read_only) return false;
  server->append();
  replicate();
  if (!server->semi_sync) return true;
  return std::ranges::any_of(servers_, [&](const auto& entry) {
    const auto& replica = entry.second.replica;
    if (!replica || replica->host != address || !replica->io) return false;
    const auto& received = replica->relay.empty() ? entry.second.log : replica->relay;
    return !received.empty() && received.back() == server->log.back();
  });
}

std::vector<std::string> FakeMysql::writable() const {
  std::vector<std::string> names;
  for (const auto& [name, server] : servers_)
    if (server.runs && !server.read_only && const_cast<FakeMysql*>(this)->find(server.address) != nullptr)
      names.push_back(name);
  return names;
}

Awaitable<sql::Result<std::unique_ptr<sql::Connection>>> FakeMysql::connect(sql::Address address,
                                                                            sql::Credentials credentials,
                                                                            async::TimePoint deadline) {
  co_await clock_.sleep_for(std::chrono::milliseconds{1});
  auto* server = find(address.host);
  if (cut_off.contains(address.host)) {
    co_await clock_.sleep_until(deadline);
    co_return sql::Error{sql::ErrorKind::timeout, 0, "no route"};
  }
  if (server == nullptr || !server->runs) co_return sql::Error{sql::ErrorKind::unreachable, 2002, "refused"};
  if (server->hangs) {
    co_await clock_.sleep_until(deadline);
    co_return sql::Error{sql::ErrorKind::timeout, 0, "hangs"};
  }
  if (credentials.password.reveal() != server->root_password)
    co_return sql::Error{sql::ErrorKind::denied, 1045, "Access denied for user 'root'"};
  co_return std::unique_ptr<sql::Connection>{std::make_unique<FakeConnection>(*this, address.host)};
}

Awaitable<sql::Result<sql::Rows>> FakeMysql::execute(std::string address, std::string statement,
                                                     async::TimePoint deadline) {
  co_await clock_.sleep_for(std::chrono::milliseconds{1});
  std::string pod;
  auto* server = find(address, &pod);
  if (server == nullptr || !server->runs || cut_off.contains(address)) co_return lost();
  if (server->hangs) {
    co_await clock_.sleep_until(deadline);
    co_return sql::Error{sql::ErrorKind::timeout, 0, "hangs"};
  }
  if (on_statement) on_statement(pod, statement);
  replicate(*server);
  auto& replica = server->replica;
  sql::Rows rows;
  if (starts(statement, "SELECT @@global.read_only")) {
    const auto seconds = [](async::TimePoint at) {
      return std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
    };
    const auto now = seconds(clock_.now());
    rows.push_back({{"read_only", server->read_only ? "1" : "0"},
                    {"server_id", std::to_string(server->id)},
                    {"binlog_pos", server->position()},
                    {"slave_pos", server->position()},
                    {"version", server->version},
                    {"now", std::to_string(now)},
                    {"uptime", std::to_string(now - seconds(server->started))}});
  } else if (starts(statement, "SELECT @@global.report_host")) {
    rows.push_back({{"report_host", server->report_host}});
  } else if (starts(statement, "SHOW ALL SLAVES STATUS")) {
    if (!replica) co_return rows;
    const bool connected = source_of(*replica) != nullptr;
    auto last = replica->relay.empty() ? server->position()
                                       : "0-" + std::to_string(replica->relay.back().server) + "-" +
                                             std::to_string(replica->relay.back().sequence);
    rows.push_back({{"Connection_name", ""},
                    {"Master_Host", replica->host},
                    {"Slave_IO_Running", replica->io ? (connected ? "Yes" : "Connecting") : "No"},
                    {"Slave_SQL_Running", replica->sql ? "Yes" : "No"},
                    {"Last_IO_Errno", std::to_string(replica->io_error)},
                    {"Last_SQL_Errno", std::to_string(replica->sql_error)},
                    {"Last_SQL_Error", replica->sql_error != 0 ? server->sql_error_text : ""},
                    {"Last_IO_Error", replica->io_error != 0 ? "position not found" : ""},
                    {"Gtid_IO_Pos", last},
                    {"Seconds_Behind_Master", connected ? std::optional<std::string>{"0"} : std::nullopt}});
  } else if (statement == "SHOW SLAVE HOSTS") {
    // Of a replica that hangs or whose node is lost the connection stays open for long.
    for (const auto& [name, other] : servers_)
      if (other.replica && other.replica->host == address && other.replica->io && other.runs)
        rows.push_back({{"Server_id", std::to_string(other.id)}});
  } else if (starts(statement, "SELECT Total, Available FROM information_schema.DISKS")) {
    constexpr double kibibytes = 1024 * 1024;
    if (!server->free) co_return sql::Error{sql::ErrorKind::refused, 1109, "Unknown table 'disks'"};
    rows.push_back({{"Total", std::to_string(kibibytes)}, {"Available", std::to_string(kibibytes * *server->free)}});
  } else if (statement == "SET GLOBAL read_only=1") {
    server->read_only = true;
  } else if (statement == "SET GLOBAL read_only=0") {
    server->read_only = false;
  } else if (starts(statement, "SET GLOBAL rpl_semi_sync_master_timeout=")) {
    server->semi_sync_timeout = std::stod(statement.substr(statement.find('=') + 1));
  } else if (starts(statement, "SET GLOBAL rpl_semi_sync_master_enabled=")) {
    server->semi_sync = statement.ends_with("ON");
  } else if (statement == "STOP SLAVE IO_THREAD") {
    if (replica) replica->io = false;
  } else if (statement == "STOP SLAVE") {
    if (replica) replica->io = replica->sql = false;
  } else if (statement == "START SLAVE SQL_THREAD") {
    // As MariaDB does with GTIDs when both threads are stopped.
    if (replica && !replica->io && !replica->sql) replica->relay.clear();
    if (replica) replica->sql = true;
  } else if (statement == "START SLAVE") {
    if (!replica) co_return sql::Error{sql::ErrorKind::refused, 1200, "not configured as slave"};
    replica->io = true;
    replica->sql = replica->sql_error == 0;
    replica->io_error = 0;
    replicate(*server);
  } else if (statement == "RESET SLAVE ALL") {
    if (replica && (replica->io || replica->sql)) co_return sql::Error{sql::ErrorKind::refused, 1198, "runs"};
    replica.reset();  // the relay log goes with it
  } else if (starts(statement, "CHANGE MASTER TO")) {
    if (!replica) replica.emplace();
    replica->host = literal_after(statement, "MASTER_HOST=");
    replica->relay.clear();
    replica->io_error = 0;
  } else if (starts(statement, "SELECT MASTER_GTID_WAIT(")) {
    const auto wanted = parse_gtid(literal_after(statement, "MASTER_GTID_WAIT("));
    const std::chrono::seconds limit{std::stoi(statement.substr(statement.find("', ") + 3))};
    const auto end = async::later(clock_.now(), limit);
    const auto is_reached = [&] {
      replicate(*server);
      return !has_more(wanted, parse_gtid(server->position()));
    };
    while (!is_reached() && clock_.now() < end) co_await clock_.sleep_for(std::chrono::milliseconds{100});
    rows.push_back({{"reached", is_reached() ? "0" : "-1"}});
  } else if (starts(statement, "SELECT COUNT(*) AS users")) {
    rows.push_back({{"users", server->has_users ? "2" : "0"}});
  } else if (starts(statement, "CREATE OR REPLACE USER")) {
    server->has_users = true;
  } else if (starts(statement, "ALTER USER IF EXISTS 'root'@'%'")) {
    server->root_password = literal_after(statement, "IDENTIFIED BY ");
    server->append(server->root_password);
    replicate();
  }
  co_return rows;
}

Awaitable<std::optional<std::string>> FakeMysql::scrape(std::string host, std::uint16_t, async::TimePoint deadline) {
  co_await clock_.sleep_for(std::chrono::milliseconds{1});
  auto* server = find(host);
  if (server == nullptr) co_return std::nullopt;
  if (server->hangs || !server->exporter_runs || cut_off.contains(host)) {
    co_await clock_.sleep_until(deadline);
    co_return std::nullopt;
  }
  if (!server->runs || !server->has_users) co_return "mysql_up 0\n";
  replicate(*server);
  if (!server->exporter_may_see_variables) co_return "mysql_up 1\n";
  std::string text = "# TYPE mysql_up gauge\nmysql_up 1\nmysql_global_variables_read_only ";
  text += server->read_only ? "1\n" : "0\n";
  text += "mysql_global_variables_server_id " + std::to_string(server->id) + "\n";
  text += std::string{"mysql_global_variables_rpl_semi_sync_master_enabled "} + (server->semi_sync ? "1\n" : "0\n");
  text += "mysql_global_variables_rpl_semi_sync_master_timeout " + std::to_string(server->semi_sync_timeout) + "\n";
  text += "mysql_version_info{innodb_version=\"x\",version=\"" + server->version + "\",version_comment=\"\"} 1\n";
  if (!server->exporter_may_see_replication)
    co_return text + "mysql_exporter_scrape_errors_total{collector=\"collect.slave_status\"} 1\n";
  if (!server->replica) co_return text;
  const auto& replica = *server->replica;
  const auto* source = find(replica.host);
  const bool connected = replica.io && source_of(replica) != nullptr;
  const std::string labels = "{channel_name=\"\",connection_name=\"\",master_host=\"" + replica.host + "\"} ";
  text += "mysql_slave_status_slave_io_running" + labels + (connected ? "1\n" : "0\n");
  text += "mysql_slave_status_slave_sql_running" + labels + (replica.sql ? "1\n" : "0\n");
  text += "mysql_slave_status_last_sql_errno" + labels + std::to_string(replica.sql_error) + "\n";
  if (source != nullptr) text += "mysql_slave_status_master_server_id" + labels + std::to_string(source->id) + "\n";
  if (connected && replica.sql)
    text += "mysql_slave_status_seconds_behind_master" + labels + std::to_string(server->delay.value_or(0)) + "\n";
  co_return text;
}

}  // namespace hubferry::mysql::test
