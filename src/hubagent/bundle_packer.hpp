#pragma once

#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubagent/bundle.hpp"

namespace hubferry::hubagent {

/// Packs clusters into bundles and sends each as soon as it is full, a few at a time.
/// Lifetime: outlives `scope`'s tasks. Executor: one loop.
class BundlePacker {
 public:
  BundlePacker(async::TaskScope& scope, BundleSink sink, std::size_t limit = bundle_limit);

  /// Waits while too many bundles are on their way.
  async::Awaitable<> add(ClusterResources cluster);
  /// Sends what is left; the scope's join() waits for its arrival.
  async::Awaitable<> flush();

 private:
  async::Awaitable<> send(Bundle bundle, async::Semaphore::Permit permit);

  async::TaskScope& scope_;
  BundleSink sink_;
  std::size_t limit_;
  async::Semaphore on_their_way_;
  Bundle filling_;
  std::size_t size_ = 0;
};

/// The cluster's share of a bundle, in bytes of JSON.
std::size_t size_of(const ClusterResources& cluster);

}  // namespace hubferry::hubagent
