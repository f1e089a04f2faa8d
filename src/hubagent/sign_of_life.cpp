#include "hubagent/sign_of_life.hpp"

#include <algorithm>
#include <stdexcept>

namespace hubferry::hubagent {

namespace {

/// A hub keeps a cluster Available for this many lease periods after the last renewal.
constexpr int periods_alive = 5;
constexpr auto default_period = std::chrono::seconds{60};

/// Two looks that are further apart do not say when the lease was renewed between them. Longer than the pause between
/// two rounds of a cleanup.
constexpr auto longest_gap = std::chrono::minutes{15};

}  // namespace

std::optional<async::WallTime> renewed_at(const kube::Object& lease) {
  const auto text = lease.string_at({"spec", "renewTime"});
  if (text.empty()) return std::nullopt;
  try {
    return async::parse_time(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

async::Duration period_of(const kube::Object& lease) {
  const auto* seconds = lease.find({"spec", "leaseDurationSeconds"});
  if (seconds == nullptr || !seconds->is_int64() || seconds->get_int64() <= 0) return default_period;
  return std::chrono::seconds{std::min<std::int64_t>(seconds->get_int64(), 24L * 3600)};
}

std::optional<std::string> why_not_alive(const kube::Object* lease, async::WallTime since, async::WallTime now) {
  const auto renewed = lease == nullptr ? std::nullopt : renewed_at(*lease);
  if (!renewed) return "has no lease that its agent renews";
  const auto last = "; it was last renewed at " + async::format_time(*renewed);
  if (*renewed <= since) return "has a lease that its agent has not renewed since the cut-over" + last;
  if (*renewed + periods_alive * period_of(*lease) < now) return "has a lease that its agent renews no more" + last;
  return std::nullopt;
}

bool is_ahead(const kube::Object& lease, async::WallTime now) {
  const auto renewed = renewed_at(lease);
  return renewed && *renewed > now + period_of(lease);
}

SignOfLife SeenLeases::judge(const std::string& cluster, const kube::Object* lease, async::WallTime since,
                             const async::Clock& clock) {
  using Kind = SignOfLife::Kind;
  const auto wall = clock.wall_now();
  const std::string uid{lease == nullptr ? "" : lease->uid()};
  const std::string renewal{lease == nullptr ? "" : lease->string_at({"spec", "renewTime"})};
  const auto known = seen_.find(cluster);
  // When it was renewed is not known, then or now.
  const bool was_ahead = known != seen_.end() && known->second.uid == uid && known->second.renewal == renewal;
  if (lease == nullptr || (!was_ahead && !is_ahead(*lease, wall))) {
    seen_.erase(cluster);
    auto why = why_not_alive(lease, since, wall);
    return why ? SignOfLife{Kind::absent, std::move(*why)} : SignOfLife{Kind::alive};
  }
  const auto now = clock.now();
  const auto lifetime = periods_alive * period_of(*lease);
  auto& seen = seen_[cluster];
  if (seen.uid != uid || seen.renewal != renewal) {
    const bool renewed = seen.uid == uid && now - seen.last <= longest_gap;
    seen = {.uid = uid, .renewal = renewal, .first = now, .before = seen.last_wall, .renewed = renewed};
  }
  seen.last = now;
  seen.last_wall = wall;
  const std::string ahead =
      "has a lease whose time was in the future (" + renewal + "; is its clock right, and this manager's?)";
  if (now - seen.first > lifetime) return {Kind::absent, ahead + ", and nobody renews it"};
  if (seen.renewed && seen.before >= since) return {Kind::alive};
  return {Kind::unknown, ahead + ", and was not seen to renew it yet"};
}

}  // namespace hubferry::hubagent
