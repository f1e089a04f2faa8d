#pragma once

#include <algorithm>

#include "hubferry/async/backoff.hpp"
#include "hubferry/kube/error.hpp"

namespace hubferry::klusterlet {

/// The pause after a request that a hub has refused: the next one of the backoff, or what the hub asks for
/// (Retry-After) if that is longer, with jitter, since it tells a whole fleet the same.
inline async::Duration pause_after(const kube::Error& error, async::Backoff& backoff, async::Random& random) {
  const auto own = backoff.next();
  if (!error.retry_after) return own;
  return std::max(own, random.between(*error.retry_after, *error.retry_after + *error.retry_after / 4));
}

}  // namespace hubferry::klusterlet
