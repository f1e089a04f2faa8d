#pragma once

#include "hubferry/async/types.hpp"
#include "hubferry/klusterlet/selection.hpp"
#include "hubferry/kube/api.hpp"

namespace hubferry::klusterlet {

/// What one candidate gets: a hub behind a firewall that swallows packets must not hold up the choice.
inline constexpr auto probe_time = std::chrono::seconds{10};

/// Would this hub take us? Asks with the bootstrap credential: the rights that registering takes, one by one, then for
/// our ManagedCluster.
async::Awaitable<Verdict> probe(kube::Api& api, std::string cluster);

}  // namespace hubferry::klusterlet
