#pragma once

#include <optional>

#include "sim/ocm/hub_context.hpp"

namespace hubferry::sim {

/// A cluster is given up after this many periods without a heartbeat; and its clock is wrong when it is off by as much.
inline constexpr int lease_periods = 5;

/// When the lease was last renewed; nothing where it does not say, or says nonsense.
std::optional<async::WallTime> renew_time(const Object& lease);

inline Key lease_key(const std::string& cluster) {
  return {cluster, "managed-cluster-lease"};
}

}  // namespace hubferry::sim
