#pragma once

#include "hubferry/async/event.hpp"
#include "migration/attempts.hpp"

/// The Secrets that the source has left on clusters which it has deleted: the target has them removed.
namespace hubferry::migration {

/// Clusters that the source has deleted, while it may still be deleting their namespaces: Kubernetes takes five seconds
/// and more for one.
class Deletions {
 public:
  explicit Deletions(std::size_t expected) : expected_(expected) {}

  void add(std::string cluster);
  /// No more will come.
  void end();
  /// As soon as all are deleted, or no more will come.
  Awaitable<ClusterNames> all();

 private:
  std::size_t expected_;
  ClusterNames clusters_;
  bool ended_ = false;
  async::Notify changed_;
};

/// True if the work that removes them may still be on the target, and must be deleted there.
bool leaves_work(const Failure& failure);

/// Removes them as soon as all of `deletions` are there. What became of them is remembered until
/// delete_remaining_secrets(); not what a target that does not answer would have said.
Awaitable<> delete_secrets_early(Step& step, Deletions& deletions);

/// Removes them on those of the clusters on which nobody has tried it yet. What stays, now or before, is among the
/// results' failures.
Awaitable<Results> delete_remaining_secrets(Step& step, const std::set<std::string>& clusters);

}  // namespace hubferry::migration
