#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hubferry::mysql {

/// A GTID position of MariaDB: for each replication domain the last transaction ("0-100-42,1-100-7").
struct GtidPosition {
  struct Last {
    std::uint32_t server = 0;
    std::uint64_t sequence = 0;
    bool operator==(const Last&) const = default;
  };
  std::map<std::uint32_t, Last> domains;

  bool operator==(const GtidPosition&) const = default;
  /// The last sequence number of all domains together: orders positions of one history.
  [[nodiscard]] std::uint64_t progress() const;
};

/// What is no GTID in it is left out.
GtidPosition parse_gtid(std::string_view text);

/// As parse_gtid() reads it.
std::string to_text(const GtidPosition& position);

/// True if `other` has transactions that `position` has not: a domain further ahead, or the same sequence number
/// written by another server.
bool has_more(const GtidPosition& other, const GtidPosition& position);

/// Both positions together: per domain the one further ahead.
GtidPosition merged(GtidPosition one, const GtidPosition& other);

}  // namespace hubferry::mysql
