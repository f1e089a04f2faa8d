#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/types.hpp"
#include "mysql/gtid.hpp"

namespace hubferry::mysql {

/// A replica that may become the primary, as it was found after all replicas stopped receiving.
struct Candidate {
  std::string pod;
  std::size_t ordinal = 0;
  GtidPosition received;  // Gtid_IO_Pos together with what is applied
  GtidPosition applied;
  std::uint32_t sql_error = 0;
  bool replicated = false;    // it was a replica of the old primary
  std::optional<double> lag;  // as last reported; absent: unknown
};

/// The candidates that may be promoted, best first: furthest received, then furthest applied, then the least lag
/// (unknown last), then the lowest ordinal. With equal positions that is the order by lag. Not eligible: a replica with
/// an SQL error, one that did not replicate, one whose last lag exceeded `lag_limit`, and one that lacks what another
/// has received.
std::vector<Candidate> ranked(std::vector<Candidate> candidates, async::Duration lag_limit);

}  // namespace hubferry::mysql
