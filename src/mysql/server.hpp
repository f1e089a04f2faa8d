#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "hubferry/kube/fence.hpp"
#include "hubferry/sql/sql.hpp"
#include "mysql/gtid.hpp"
#include "mysql/volume.hpp"

namespace hubferry::mysql {

using async::Awaitable;
using async::Duration;

/// The replication of one server from another: SHOW ALL SLAVES STATUS, the unnamed connection.
struct Replication {
  std::string host;
  std::string io_running;  // Yes, No, Connecting, Preparing
  bool sql_running = false;
  std::uint32_t io_error = 0;
  std::uint32_t sql_error = 0;
  bool has_diverged = false;  // the primary said so: this server has transactions that it never had
  GtidPosition received;      // Gtid_IO_Pos
  std::string received_text;
  std::optional<double> lag;

  /// By number and kind. The server's own text may hold a row's value, or a statement with a password.
  [[nodiscard]] std::string describe_error() const;
  [[nodiscard]] bool runs() const { return io_running != "No" && sql_running; }
};

/// The state of one server, by SQL: what the exporter cannot tell.
struct Facts {
  bool read_only = true;
  std::uint32_t server_id = 0;
  double uptime = 0;
  std::string started;  // when, in seconds, by its own clock: the same as long as it runs, also if that clock is set
  std::string version;
  std::string binlog_text;
  GtidPosition written;  // gtid_binlog_pos
  GtidPosition applied;  // gtid_slave_pos and gtid_binlog_pos together
  std::optional<Replication> replication;

  /// Everything that it has, applied or waiting in its relay log.
  [[nodiscard]] GtidPosition has() const { return replication ? merged(applied, replication->received) : applied; }
};

/// How a primary waits for its replicas before it acknowledges a commit.
struct SemiSync {
  bool enabled = false;
  Duration timeout{};  // then it continues without them
};

/// A session with one server, as an administrator: the statements of the operator. All are safe to repeat. With a fence
/// a deposed leader changes nothing any more: a server that was fenced since then would become writable again.
/// Errors: of the statement. Deadlines: each statement has one.
class Session {
 public:
  Session(std::unique_ptr<sql::Connection> connection, async::Clock& clock, kube::Fence* fence)
      : connection_(std::move(connection)), clock_(clock), fence_(fence) {}

  Awaitable<sql::Result<Facts>> facts();
  /// The pod whose server this is; empty: it does not say.
  Awaitable<sql::Result<std::string>> pod();
  /// The server_id of each replica that is connected to this server, by its own account.
  Awaitable<sql::Result<std::set<std::uint32_t>>> connected_replicas();

  /// Nothing: the server cannot tell, as one without the plugin DISKS.
  Awaitable<sql::Result<std::optional<Volume>>> volume();

  Awaitable<sql::Result<>> set_read_only(bool read_only);
  /// Ends the connections of applications: those that are open survive a change of the endpoint.
  Awaitable<sql::Result<>> kill_clients();

  /// Stops receiving, while applying continues. A server whose threads are both stopped deletes its relay log when one
  /// is started: so applying starts first, where it had stopped.
  Awaitable<sql::Result<>> stop_receiving(const Replication& replication);
  /// Waits until all that was received is applied. False: not within `limit`, or it could not be without deleting it.
  Awaitable<sql::Result<bool>> drain(const Facts& facts, Duration limit);
  /// Waits until these transactions are applied.
  Awaitable<sql::Result<bool>> wait_for(const std::string& position, Duration limit);
  /// STOP SLAVE; RESET SLAVE ALL. The relay log must be drained: it is deleted.
  Awaitable<sql::Result<>> leave_replication();
  /// SET GLOBAL read_only=0, after the primary's side of semi-synchronous replication.
  Awaitable<sql::Result<>> make_writable(const SemiSync& semi_sync);
  Awaitable<sql::Result<>> set_semi_sync(const SemiSync& semi_sync);
  /// Replicates from `host`. A server that was no replica continues after its own last transaction.
  Awaitable<sql::Result<>> replicate_from(const std::string& host, const obs::Secret& password, bool was_replica);
  Awaitable<sql::Result<>> start_replication();
  Awaitable<sql::Result<>> stop_replication();

  /// Creates the operator's own users where they are missing, on this server only: replication cannot start without
  /// them, and semi-synchronous commits would wait for a replica.
  Awaitable<sql::Result<>> ensure_users(const obs::Secret& replication, const obs::Secret& exporter);
  Awaitable<sql::Result<>> set_root_password(const obs::Secret& password);

 private:
  Awaitable<sql::Result<sql::Rows>> query(std::string statement, Duration limit);
  Awaitable<sql::Result<sql::Rows>> query(std::string statement);
  Awaitable<sql::Result<>> run_all(std::vector<std::string> statements);

  std::unique_ptr<sql::Connection> connection_;
  async::Clock& clock_;
  kube::Fence* fence_;  // may be null
};

}  // namespace hubferry::mysql
