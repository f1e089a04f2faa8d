#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/clock.hpp"

namespace hubferry::mysql {

/// What one scrape of mysqld_exporter says about a server. Absent: the series is missing, which never means zero.
struct Sample {
  bool up = false;  // mysql_up: the exporter answers also when its server is down
  std::optional<bool> read_only;
  std::optional<double> lag;  // Seconds_Behind_Master; missing while NULL
  std::optional<bool> io_running;
  std::optional<bool> sql_running;
  std::optional<std::uint32_t> sql_error;
  std::optional<std::uint32_t> master_server_id;
  std::optional<std::uint32_t> server_id;
  std::optional<bool> semi_sync;            // rpl_semi_sync_master_enabled
  std::optional<double> semi_sync_timeout;  // in milliseconds
  std::string version;
  /// The slave_status collector failed (on MariaDB without SLAVE MONITOR): its missing series say nothing.
  bool replica_unknown = false;
};

Sample parse_metrics(std::string_view text);

enum class Verdict {
  unknown,      // answered, but does not say whether it is writable: neither good nor bad
  unreachable,  // no answer, or the exporter reports its server as down
  read_only,
  writable,
};
std::string_view to_string(Verdict verdict);

/// Without a sample there was no answer.
Verdict verdict_of(const std::optional<Sample>& sample);

/// Reads an exporter's metrics page. Tests have one for servers in memory.
class Exporter {
 public:
  virtual ~Exporter() = default;
  /// The page, or nothing when there was no answer with status 200 before the deadline.
  virtual async::Awaitable<std::optional<std::string>> scrape(std::string host, std::uint16_t port,
                                                              async::TimePoint deadline) = 0;
};

/// Over plain HTTP, only the two collectors that are used.
std::unique_ptr<Exporter> make_http_exporter(async::Clock& clock);

}  // namespace hubferry::mysql
