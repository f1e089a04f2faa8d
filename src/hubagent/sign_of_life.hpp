#pragma once

#include <map>
#include <optional>
#include <string>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/object.hpp"

/// What a cluster's lease says about its agent. Only the agent renews it, by the agent's clock. (The hub creates the
/// lease, with the time of its creation.)
namespace hubferry::hubagent {

/// Absent if it was never renewed.
std::optional<async::WallTime> renewed_at(const kube::Object& lease);
async::Duration period_of(const kube::Object& lease);

/// Why the lease does not prove that the agent is here: absent if it was renewed after `since`, and within the last
/// five periods. That is the rule by which a hub keeps a cluster Available, applied here because the hub's own
/// controller may be down. By the clock of the agent: one that is slow delays the proof, and cannot bring it about. For
/// one that is fast see is_ahead().
std::optional<std::string> why_not_alive(const kube::Object* lease, async::WallTime since, async::WallTime now);

/// True if the time of the last renewal is in the future, by more than a period: it says nothing of when that was.
bool is_ahead(const kube::Object& lease, async::WallTime now);

struct SignOfLife {
  enum class Kind { alive, absent, unknown };

  Kind kind = Kind::absent;
  std::string why{};  // unless alive: what is missing, for people
};

/// The leases of a hub whose times are in the future, or were, as they were read before: their renewals are seen as
/// changes.
/// Executor: one loop.
class SeenLeases {
 public:
  /// Judges the lease as it was read just now; null: there is none. One that is ahead counts as renewed if it has
  /// changed between two looks, both after `since`; and as not renewed once it was seen unchanged for five periods.
  /// Until then it is unknown. What was ahead proves no more when the clock has reached it.
  SignOfLife judge(const std::string& cluster, const kube::Object* lease, async::WallTime since,
                   const async::Clock& clock);

 private:
  struct Seen {
    std::string uid;
    std::string renewal;
    async::TimePoint first{};     // when this renewal was first seen
    async::TimePoint last{};      // when it was last seen
    async::WallTime last_wall{};  // the same
    async::WallTime before{};     // when the previous renewal was last seen
    bool renewed = false;         // there was a previous one
  };

  std::map<std::string, Seen> seen_;  // by cluster
};

}  // namespace hubferry::hubagent
