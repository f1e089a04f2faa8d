#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hubferry/mysql/exporter.hpp"
#include "hubferry/sim/server.hpp"
#include "hubferry/sql/sql.hpp"

namespace hubferry::mysql::test {

using async::Awaitable;

/// One transaction: who wrote it, and its number.
struct Transaction {
  std::uint32_t server = 0;
  std::uint64_t sequence = 0;
  std::string root_password = {};  // not empty: it sets this one
  bool operator==(const Transaction&) const = default;
};

/// The replication of one server from another.
struct FakeReplication {
  std::string host;
  bool io = false;
  bool sql = false;
  std::uint32_t io_error = 0;
  std::uint32_t sql_error = 0;
  std::vector<Transaction> relay;  // received, not applied
};

/// A MariaDB server in memory, as far as the operator's statements can see it. Its data survives its pod.
struct FakeServer {
  std::uint32_t id = 0;
  std::string address;      // of the pod that runs it
  std::string report_host;  // the name of that pod
  bool runs = true;         // false: killed, while its pod and exporter live
  bool hangs = false;
  bool away = false;             // its node is lost: a new pod does not help
  bool accepts_replicas = true;  // knows the password that the operator gave them
  bool exporter_runs = true;
  bool exporter_may_see_replication = true;  // has SLAVE MONITOR
  bool exporter_may_see_variables = true;    // false: it cannot tell whether the server is read-only
  bool read_only = true;
  bool semi_sync = false;
  double semi_sync_timeout = 10000;  // in milliseconds
  std::string sql_error_text = "an SQL error";
  async::TimePoint started{};
  std::string root_password;
  bool has_users = false;
  std::string version = "10.11.6-MariaDB";
  std::vector<Transaction> log;
  std::optional<FakeReplication> replica;
  std::optional<double> delay;          // reported as its lag
  std::size_t transactions_behind = 0;  // it applies what it receives, but never the last ones
  std::optional<double> free = 0.5;     // this part of its volume of 1 GiB; nothing: it has no plugin that can tell

  [[nodiscard]] std::string position() const;
  void append(std::string root_password = {});
};

/// All servers of a simulated Kubernetes cluster: made when their pods start, reached by their pods' addresses.
class FakeMysql final : public sql::Connector, public Exporter {
 public:
  FakeMysql(sim::Server& server, async::Clock& clock) : kube_(server), clock_(clock) {}

  /// For StatefulSetOptions::address: the pod starts, and its server with it, read-only and without replication.
  std::string start_pod(const kube::Object& pod);
  FakeServer& at(const std::string& pod) { return servers_.at(pod); }
  std::map<std::string, FakeServer>& servers() { return servers_; }
  /// The server process starts again in the same pod.
  void restart(const std::string& pod);
  /// A client writes through that address. True: acknowledged.
  bool write(const std::string& address);
  [[nodiscard]] std::vector<std::string> writable() const;
  /// What replication has done meanwhile, on all servers.
  void replicate();

  Awaitable<sql::Result<std::unique_ptr<sql::Connection>>> connect(sql::Address address, sql::Credentials credentials,
                                                                   async::TimePoint deadline) override;
  Awaitable<std::optional<std::string>> scrape(std::string host, std::uint16_t port,
                                               async::TimePoint deadline) override;

  /// Sees each statement before it is executed.
  std::function<void(const std::string& pod, const std::string& statement)> on_statement = {};
  /// Addresses that the operator cannot reach, though others can.
  std::set<std::string> cut_off = {};
  bool is_v6 = false;  // the addresses of pods that start

 private:
  friend class FakeConnection;
  FakeServer* find(const std::string& address, std::string* pod = nullptr);
  void replicate(FakeServer& server);
  /// Its source, if that can be reached and lets it in.
  const FakeServer* source_of(const FakeReplication& replica);
  Awaitable<sql::Result<sql::Rows>> execute(std::string address, std::string statement, async::TimePoint deadline);

  sim::Server& kube_;
  async::Clock& clock_;
  std::map<std::string, FakeServer> servers_;      // by pod
  std::map<std::string, std::string> by_address_;  // pods
  unsigned addresses_ = 0;
};

}  // namespace hubferry::mysql::test
