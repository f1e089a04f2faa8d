#include "hubagent/bundle_packer.hpp"

#include <boost/json/serialize.hpp>

namespace hubferry::hubagent {

namespace {

/// One is written on the target while the next waits and a third is being filled.
constexpr std::size_t bundles_on_their_way = 3;

}  // namespace

std::size_t size_of(const ClusterResources& cluster) {
  std::size_t size = cluster.cluster.size();
  for (const auto& carried : cluster.objects) size += kube::json::serialize(carried.object).size();
  return size;
}

BundlePacker::BundlePacker(async::TaskScope& scope, BundleSink sink, std::size_t limit)
    : scope_(scope), sink_(std::move(sink)), limit_(limit), on_their_way_(bundles_on_their_way) {}

async::Awaitable<> BundlePacker::add(ClusterResources cluster) {
  const auto size = size_of(cluster);
  // Others add meanwhile: look again after each wait.
  while (!filling_.clusters.empty() && size_ + size > limit_) co_await flush();
  filling_.clusters.push_back(std::move(cluster));
  size_ += size;
}

async::Awaitable<> BundlePacker::flush() {
  auto permit = co_await on_their_way_.acquire();
  if (filling_.clusters.empty()) co_return;
  size_ = 0;
  scope_.spawn(send(std::exchange(filling_, {}), std::move(permit)));
}

async::Awaitable<> BundlePacker::send(Bundle bundle, async::Semaphore::Permit permit) {
  co_await sink_(std::move(bundle));
  permit.release();
}

}  // namespace hubferry::hubagent
