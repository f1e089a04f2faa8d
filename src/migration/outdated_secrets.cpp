#include "migration/outdated_secrets.hpp"

namespace hubferry::migration {

namespace {

Awaitable<Results> delete_secrets(Step& step, ClusterNames clusters) {
  TargetOperation remove = [&](hubagent::TargetHub& hub, ClusterNames names) {
    return hub.delete_outdated_secrets(step.migration.ref(), std::move(names));
  };
  co_return co_await each_on_target(step, std::move(clusters), remove);
}

std::string uid_of(const Step& step) {
  return std::string{step.migration.object.uid()};
}

}  // namespace

bool leaves_work(const Failure& failure) {
  return failure.reason == to_string(hubagent::FailureReason::unknown);
}

void Deletions::add(std::string cluster) {
  clusters_.push_back(std::move(cluster));
  changed_.notify();
}

void Deletions::end() {
  ended_ = true;
  changed_.notify();
}

Awaitable<ClusterNames> Deletions::all() {
  while (!ended_ && clusters_.size() < expected_) co_await changed_.wait();
  co_return clusters_;
}

Awaitable<> delete_secrets_early(Step& step, Deletions& deletions) {
  auto clusters = co_await deletions.all();
  // A namespace that cannot be deleted brings its cluster back in each round.
  const auto& before = step->tried_secrets[uid_of(step)];
  std::erase_if(clusters, [&](const auto& name) {
    const auto known = before.find(name);
    return known != before.end() && !known->second;
  });
  if (clusters.empty()) co_return;
  const auto results = co_await delete_secrets(step, std::move(clusters));
  auto& tried = step->tried_secrets[uid_of(step)];
  for (const auto& name : results.done) tried.insert_or_assign(name, std::nullopt);
  for (const auto& [name, failure] : results.failed)
    if (!leaves_work(failure)) tried.insert_or_assign(name, failure);
}

Awaitable<Results> delete_remaining_secrets(Step& step, const std::set<std::string>& clusters) {
  const auto& tried = step->tried_secrets[uid_of(step)];
  ClusterNames rest;
  for (const auto& name : clusters)
    if (!tried.contains(name)) rest.push_back(name);
  auto results = co_await delete_secrets(step, std::move(rest));
  for (const auto& [name, failure] : step->tried_secrets[uid_of(step)])
    if (failure && clusters.contains(name)) results.failed.emplace(name, *failure);
  co_return results;
}

}  // namespace hubferry::migration
