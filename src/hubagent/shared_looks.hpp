#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hubagent/hub_wide_rights.hpp"
#include "hubferry/async/clock.hpp"
#include "hubferry/kube/api.hpp"

namespace hubferry::hubagent {

/// One list of a kind on the whole hub, instead of one in the namespace of each cluster. Most hubs have none, or few,
/// of most kinds that move with a cluster: machines, deployments, add-ons.
///
/// Clusters that are processed at once share a list, and none gets an answer that is older than its question: only
/// lists that were begun after it count, and they are as new as one of its namespace would be (no list names a
/// version). Of lists that follow each other closely, the second waits a moment for further callers. A hub with more
/// than a few objects of a kind, or that does not let us list it everywhere, is left alone for a while. Executor: one
/// loop. Cancellation: a caller that is cancelled leaves the list to the next one.
class SharedLooks {
 public:
  using Objects = std::vector<kube::Object>;

  SharedLooks(kube::Api& api, HubWideRights& rights, async::Clock& clock) : api_(api), rights_(rights), clock_(clock) {}

  /// True for kinds that may be listed on the whole hub: not those that hold secrets, or are there for every cluster.
  /// Of the latter a selector may pick the few that matter.
  [[nodiscard]] static bool is_shared(const kube::Resource& resource);

  /// All objects of this kind on the hub, or those that the selector picks. Null: they are many, or it is not known:
  /// list those of the namespace.
  async::Awaitable<std::shared_ptr<const Objects>> all_on_hub(kube::Resource resource, std::string label_selector = {});

 private:
  struct Kind {
    std::string label_selector;
    std::uint64_t started = 0;   // lists so far
    std::uint64_t finished = 0;  // the last one that ended with `objects`
    std::size_t callers = 0;
    std::shared_ptr<const Objects> objects;  // dropped with the last caller
    async::TimePoint not_before{};
    async::TimePoint gathered{};  // the next list is not begun earlier
    Turn turn;
  };

  async::Awaitable<> look(Kind& kind, kube::Resource resource);

  kube::Api& api_;
  HubWideRights& rights_;
  async::Clock& clock_;
  std::map<std::string, Kind> kinds_;  // by plural.group and selector; kept while they are used, or left alone
};

}  // namespace hubferry::hubagent
