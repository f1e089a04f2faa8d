#include "mysql/server.hpp"

#include <algorithm>
#include <charconv>

#include "hubferry/mysql/resource.hpp"

namespace hubferry::mysql {

namespace {

using sql::quoted;
using sql::text_of;

constexpr Duration statement_timeout = std::chrono::seconds{5};
// SET GLOBAL read_only=1 waits for running commits: those that take longer lose their connection.
constexpr Duration read_only_timeout = std::chrono::seconds{3};

double number_of(const sql::Row& row, std::string_view column) {
  const auto text = text_of(row, column);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// 0 for what is none, or too large.
template <typename Integer>
Integer integer_of(const sql::Row& row, std::string_view column) {
  const auto text = text_of(row, column);
  Integer number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

/// An error number that cannot be read is an error all the same.
std::uint32_t error_number_of(const sql::Row& row, std::string_view column) {
  const auto number = integer_of<std::uint32_t>(row, column);
  constexpr std::uint32_t unknown_error = 1105;
  return number == 0 && text_of(row, column) != "0" ? unknown_error : number;
}

/// Nothing: it does not say. MariaDB 12 has words in place of the numbers.
std::optional<bool> read_only_of(const sql::Row& row) {
  const auto text = text_of(row, "read_only");
  if (text == "0" || text == "OFF") return false;
  if (text == "1" || text == "ON" || text == "NO_LOCK" || text == "NO_LOCK_NO_ADMIN") return true;
  return std::nullopt;
}

Replication read_replication(const sql::Row& row) {
  Replication replication;
  replication.host = text_of(row, "Master_Host");
  replication.io_running = text_of(row, "Slave_IO_Running");
  replication.sql_running = text_of(row, "Slave_SQL_Running") == "Yes";
  replication.io_error = error_number_of(row, "Last_IO_Errno");
  replication.sql_error = error_number_of(row, "Last_SQL_Errno");
  // There is no number for it: 1236 is also that of a position that was purged.
  replication.has_diverged = text_of(row, "Last_IO_Error").find("diverged") != std::string::npos;
  replication.received_text = text_of(row, "Gtid_IO_Pos");
  replication.received = parse_gtid(replication.received_text);
  if (!text_of(row, "Seconds_Behind_Master").empty()) replication.lag = number_of(row, "Seconds_Behind_Master");
  return replication;
}

/// What the number means, for those that people meet in a replication.
const char* kind_of_error(std::uint32_t number) {
  switch (number) {
    case 1032:
      return "a row to change or delete is missing";
    case 1062:
      return "a row with the same key exists";
    case 1049:
    case 1051:
    case 1054:
    case 1146:
      return "a database, table or column is missing";
    case 1007:
    case 1050:
    case 1060:
      return "a database, table or column exists already";
    case 1396:
      return "a user exists already, or is missing";
    case 1451:
    case 1452:
      return "a foreign key is violated";
    case 1021:
    case 1030:
    case 1114:
      return "no space left, or an error of the storage engine";
    case 1205:
    case 1213:
      return "a lock was not granted";
    case 1236:
      return "the position is not in the primary's binary log";
    case 1594:
      return "the relay log cannot be read";
    case 1950:
      return "a transaction is out of order";
    default:
      return "";
  }
}

std::string create_user(const std::string& user, const obs::Secret& password) {
  return "CREATE OR REPLACE USER " + quoted(user) + "@'%' IDENTIFIED BY " + quoted(password.reveal());
}

}  // namespace

std::string Replication::describe_error() const {
  const auto number = sql_error != 0 ? sql_error : io_error;
  const std::string kind = kind_of_error(number);
  return (sql_error != 0 ? "applying ended with error " : "receiving ended with error ") + std::to_string(number) +
         (kind.empty() ? "" : " (" + kind + ")") +
         (has_diverged ? "; it has transactions that the primary never had" : "");
}

Awaitable<sql::Result<sql::Rows>> Session::query(std::string statement, Duration limit) {
  auto deadline = async::later(clock_.now(), limit);
  const bool changes = !statement.starts_with("SELECT ") && !statement.starts_with("SHOW ");
  if (changes && fence_ != nullptr) {
    if (fence_->until() - clock_.now() < fence_->least_time())
      co_return sql::Error{sql::ErrorKind::unreachable, 0, "this process does not lead any more"};
    deadline = std::min(deadline, fence_->until());
  }
  co_return co_await connection_->query(std::move(statement), deadline);
}

Awaitable<sql::Result<sql::Rows>> Session::query(std::string statement) {
  return query(std::move(statement), statement_timeout);
}

Awaitable<sql::Result<>> Session::run_all(std::vector<std::string> statements) {
  for (auto& statement : statements) {
    const bool holds_password =
        statement.find("IDENTIFIED BY") != std::string::npos || statement.find("MASTER_PASSWORD") != std::string::npos;
    auto answer = co_await query(std::move(statement));
    if (answer) continue;
    // The server may quote the statement.
    if (holds_password) answer.error().message = "a statement with a password failed";
    co_return answer.error();
  }
  co_return sql::Result<>{};
}

Awaitable<sql::Result<Facts>> Session::facts() {
  auto rows = co_await query(
      "SELECT @@global.read_only AS read_only, @@global.server_id AS server_id, "
      "@@global.gtid_binlog_pos AS binlog_pos, @@global.gtid_slave_pos AS slave_pos, VERSION() AS version, "
      "UNIX_TIMESTAMP() AS now, (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE "
      "VARIABLE_NAME = 'UPTIME') AS uptime");
  if (!rows) co_return rows.error();
  if (rows->empty()) co_return sql::Error{sql::ErrorKind::refused, 0, "the server described itself with no row"};
  const auto& row = rows->front();
  Facts facts;
  const auto read_only = read_only_of(row);
  // An old primary that is taken for read-only, and is not, would accept writes beside the new one.
  if (!read_only) co_return sql::Error{sql::ErrorKind::refused, 0, "the server does not say whether it is read-only"};
  facts.read_only = *read_only;
  facts.server_id = integer_of<std::uint32_t>(row, "server_id");
  facts.uptime = number_of(row, "uptime");
  // Both of the time when this statement began.
  facts.started = std::to_string(integer_of<std::int64_t>(row, "now") - integer_of<std::uint32_t>(row, "uptime"));
  facts.version = text_of(row, "version");
  facts.binlog_text = text_of(row, "binlog_pos");
  facts.written = parse_gtid(facts.binlog_text);
  facts.applied = merged(facts.written, parse_gtid(text_of(row, "slave_pos")));
  auto replicas = co_await query("SHOW ALL SLAVES STATUS");
  if (!replicas) co_return replicas.error();
  for (const auto& replica : *replicas)
    if (text_of(replica, "Connection_name").empty()) facts.replication = read_replication(replica);
  co_return facts;
}

Awaitable<sql::Result<std::string>> Session::pod() {
  auto rows = co_await query("SELECT @@global.report_host AS report_host");
  if (!rows) co_return rows.error();
  co_return rows->empty() ? std::string{} : std::string{text_of(rows->front(), "report_host")};
}

Awaitable<sql::Result<std::set<std::uint32_t>>> Session::connected_replicas() {
  auto rows = co_await query("SHOW SLAVE HOSTS");
  if (!rows) co_return rows.error();
  std::set<std::uint32_t> ids;
  for (const auto& row : *rows) ids.insert(integer_of<std::uint32_t>(row, "Server_id"));
  co_return ids;
}

Awaitable<sql::Result<std::optional<Volume>>> Session::volume() {
  // In KiB, of each mounted file system: the one with the longest path to the data.
  auto rows = co_await query(
      "SELECT Total, Available FROM information_schema.DISKS WHERE "
      "LOCATE(CONCAT(TRIM(TRAILING '/' FROM Path), '/'), @@global.datadir) = 1 ORDER BY LENGTH(Path) DESC LIMIT 1");
  constexpr unsigned unknown_table = 1109;
  if (!rows && rows.error().code == unknown_table) co_return std::optional<Volume>{};
  if (!rows) co_return rows.error();
  if (rows->empty()) co_return std::optional<Volume>{};
  constexpr double unit = 1024;
  co_return Volume{number_of(rows->front(), "Total") * unit, number_of(rows->front(), "Available") * unit};
}

Awaitable<sql::Result<>> Session::set_read_only(bool read_only) {
  auto answer = co_await query(read_only ? "SET GLOBAL read_only=1" : "SET GLOBAL read_only=0", read_only_timeout);
  if (!answer) co_return answer.error();
  co_return sql::Result<>{};
}

Awaitable<sql::Result<>> Session::kill_clients() {
  auto rows = co_await query(
      "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND COMMAND NOT LIKE 'Binlog Dump%' "
      "AND "
      "COMMAND NOT LIKE 'Slave%' AND COMMAND <> 'Daemon' AND USER NOT IN ('system user', 'event_scheduler', " +
      quoted(names::exporter_user) + ", " + quoted(names::replication_user) + ")");
  if (!rows) co_return rows.error();
  for (const auto& row : *rows) {
    auto killed = co_await query("KILL HARD CONNECTION " + text_of(row, "ID"));
    // 1094: it has ended by itself meanwhile.
    if (!killed && killed.error().code != 1094) co_return killed.error();
  }
  co_return sql::Result<>{};
}

Awaitable<sql::Result<>> Session::stop_receiving(const Replication& replication) {
  std::vector<std::string> statements;
  const bool may_start = replication.io_running != "No" && replication.sql_error == 0;
  if (!replication.sql_running && may_start) statements.emplace_back("START SLAVE SQL_THREAD");
  statements.emplace_back("STOP SLAVE IO_THREAD");
  return run_all(std::move(statements));
}

Awaitable<sql::Result<bool>> Session::drain(const Facts& facts, Duration limit) {
  const auto& replication = *facts.replication;
  if (!has_more(replication.received, facts.applied)) co_return true;
  if (!replication.sql_running) co_return false;
  co_return co_await wait_for(replication.received_text, limit);
}

Awaitable<sql::Result<bool>> Session::wait_for(const std::string& position, Duration limit) {
  if (position.empty()) co_return true;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
  auto rows =
      co_await query("SELECT MASTER_GTID_WAIT(" + quoted(position) + ", " + std::to_string(seconds) + ") AS reached",
                     limit + statement_timeout);
  if (!rows) co_return rows.error();
  co_return !rows->empty() && text_of(rows->front(), "reached") == "0";
}

Awaitable<sql::Result<>> Session::leave_replication() {
  std::vector<std::string> statements{"STOP SLAVE", "RESET SLAVE ALL"};
  return run_all(std::move(statements));
}

Awaitable<sql::Result<>> Session::make_writable(const SemiSync& semi_sync) {
  auto set = co_await set_semi_sync(semi_sync);
  if (!set) co_return set.error();
  co_return co_await set_read_only(false);
}

Awaitable<sql::Result<>> Session::set_semi_sync(const SemiSync& semi_sync) {
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(semi_sync.timeout).count();
  std::vector<std::string> statements{
      "SET GLOBAL rpl_semi_sync_master_timeout=" + std::to_string(timeout),
      std::string{"SET GLOBAL rpl_semi_sync_master_enabled="} + (semi_sync.enabled ? "ON" : "OFF")};
  return run_all(std::move(statements));
}

Awaitable<sql::Result<>> Session::replicate_from(const std::string& host, const obs::Secret& password,
                                                 bool was_replica) {
  // Short times: a primary that hangs must be noticed before the operator asks the replicas whether they see it.
  std::string change = "CHANGE MASTER TO MASTER_HOST=" + quoted(host) + ", MASTER_PORT=" + std::to_string(mysql_port) +
                       ", MASTER_USER=" + quoted(names::replication_user) +
                       ", MASTER_PASSWORD=" + quoted(password.reveal()) +
                       ", MASTER_CONNECT_RETRY=2, MASTER_HEARTBEAT_PERIOD=2, MASTER_USE_GTID=slave_pos";
  if (!was_replica) change += ", MASTER_DEMOTE_TO_SLAVE=1";
  std::vector<std::string> statements{"STOP SLAVE", std::move(change), "START SLAVE"};
  return run_all(std::move(statements));
}

Awaitable<sql::Result<>> Session::start_replication() {
  std::vector<std::string> statements{"START SLAVE"};
  return run_all(std::move(statements));
}

Awaitable<sql::Result<>> Session::stop_replication() {
  std::vector<std::string> statements{"STOP SLAVE"};
  return run_all(std::move(statements));
}

Awaitable<sql::Result<>> Session::ensure_users(const obs::Secret& replication, const obs::Secret& exporter) {
  // With these passwords: restored data has the users of the cluster that was backed up.
  const auto has = [](const char* user, const obs::Secret& password) {
    return "(User = " + quoted(user) + " AND authentication_string = PASSWORD(" + quoted(password.reveal()) + "))";
  };
  auto rows = co_await query("SELECT COUNT(*) AS users FROM mysql.user WHERE " +
                             has(names::replication_user, replication) + " OR " + has(names::exporter_user, exporter));
  if (!rows) rows.error().message = "the operator's users could not be read";
  if (!rows) co_return rows.error();
  if (!rows->empty() && text_of(rows->front(), "users") == "2") co_return sql::Result<>{};
  std::vector<std::string> statements{
      "SET SESSION sql_log_bin=0",
      create_user(names::replication_user, replication),
      "GRANT REPLICATION SLAVE ON *.* TO " + quoted(names::replication_user) + "@'%'",
      create_user(names::exporter_user, exporter),
      "GRANT PROCESS, REPLICATION CLIENT, SLAVE MONITOR, SELECT ON *.* TO " + quoted(names::exporter_user) + "@'%'",
      "SET SESSION sql_log_bin=1"};
  co_return co_await run_all(std::move(statements));
}

Awaitable<sql::Result<>> Session::set_root_password(const obs::Secret& password) {
  std::vector<std::string> statements{
      "ALTER USER IF EXISTS 'root'@'%' IDENTIFIED BY " + quoted(password.reveal()),
      "ALTER USER IF EXISTS 'root'@'localhost' IDENTIFIED BY " + quoted(password.reveal())};
  return run_all(std::move(statements));
}

}  // namespace hubferry::mysql
