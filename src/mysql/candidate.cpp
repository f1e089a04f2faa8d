#include "mysql/candidate.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace hubferry::mysql {

namespace {

auto rank_of(const Candidate& candidate) {
  const double lag = candidate.lag.value_or(std::numeric_limits<double>::max());
  // Descending progress, ascending lag and ordinal.
  return std::tuple{~candidate.received.progress(), ~candidate.applied.progress(), lag, candidate.ordinal};
}

}  // namespace

std::vector<Candidate> ranked(std::vector<Candidate> candidates, async::Duration lag_limit) {
  const double most_lag = std::chrono::duration<double>(lag_limit).count();
  const auto all = candidates;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (!candidate.replicated || candidate.sql_error != 0) return true;
    if (candidate.lag && *candidate.lag > most_lag) return true;
    // Promoting it would lose what the other one has received.
    return std::ranges::any_of(
        all, [&](const Candidate& other) { return other.replicated && has_more(other.received, candidate.received); });
  });
  std::ranges::sort(candidates, {}, rank_of);
  return candidates;
}

}  // namespace hubferry::mysql
