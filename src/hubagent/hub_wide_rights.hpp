#pragma once

#include <map>
#include <string>

#include "hubagent/turn.hpp"
#include "hubferry/async/clock.hpp"
#include "hubferry/kube/api.hpp"

namespace hubferry::hubagent {

/// What our account may do in all namespaces of a hub, and not only in those of its clusters: an administrator may have
/// granted either. It is reviewed before it is tried: a request that is refused would raise an alert for every
/// migration on a hub where all is as its administrator wants it.
///
/// Executor: one loop. Cancellation: a caller that is cancelled leaves the review to the next one.
class HubWideRights {
 public:
  explicit HubWideRights(kube::Api& api, async::Clock& clock) : api_(api), clock_(clock) {}

  /// As reviewed some minutes ago at most. False if it cannot be reviewed: do without.
  /// With a name: what it may do to the objects of that name, which is all that a field selector asks for.
  async::Awaitable<bool> may(std::string verb, kube::Resource resource, std::string name = {});

 private:
  struct Review {
    bool allowed = false;
    async::TimePoint until{};  // it counts until then
    Turn turn;
  };

  kube::Api& api_;
  async::Clock& clock_;
  std::map<std::string, Review> reviews_;  // by verb, kind and name
};

}  // namespace hubferry::hubagent
