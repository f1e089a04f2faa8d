#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::kube {

/// A term of leadership. Its number only grows and is a fencing token: what the leader writes carries it or is
/// conditional on it, so that the late write of a deposed leader fails. A Lease alone is not a lock.
struct LeaderEpoch {
  std::string identity;
  std::int64_t number = 0;  // leaseTransitions of the Lease

  bool operator==(const LeaderEpoch&) const = default;
};

/// What keeps a deposed leader from writing. LeaderElector is one.
/// Executor: one loop, that of the controllers. Cancellation: terminal.
class Fence {
 public:
  virtual ~Fence() = default;

  /// The term of this process. outrank() may raise its number.
  [[nodiscard]] virtual LeaderEpoch epoch() const = 0;
  /// When the term ends unless the Lease is renewed before: no write may be in flight then. In the past: not leading.
  [[nodiscard]] virtual TimePoint until() const = 0;
  /// A write that has less time than this is not sent.
  [[nodiscard]] virtual Duration least_time() const = 0;
  /// True if the Lease, read not longer than a second ago, says that this process leads.
  virtual Awaitable<bool> confirm() = 0;
  /// Somebody has written with the term `number`, which is not below ours: either a newer leader, or the Lease was
  /// deleted meanwhile and its numbers started over. Waits until the Lease, renewed with a higher number, has decided.
  /// False: this process does not lead.
  virtual Awaitable<bool> outrank(std::int64_t number) = 0;
};

/// True for a write after which others cannot simply continue: by default a deletion.
using IsDestructive = std::function<bool(const Request&)>;

/// `api`, for the writes of a leader: no write is sent with a deadline beyond the end of the term, and none at all if
/// hardly any time is left (retry_later). Before a destructive one the Lease is read. Reads pass.
/// Lifetime: `fence` outlives it. Executor: that of `fence`.
std::shared_ptr<Api> make_fenced_api(std::shared_ptr<Api> api, Fence& fence, Env env, IsDestructive is_destructive);
std::shared_ptr<Api> make_fenced_api(std::shared_ptr<Api> api, Fence& fence, Env env);

}  // namespace hubferry::kube
