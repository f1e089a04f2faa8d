#pragma once

#include "migration/attempts.hpp"
#include "migration/rollback.hpp"

/// Clusters that were detached and are on the target, or may be: on which hub they stay.
namespace hubferry::migration {

/// What the target says of clusters that were detached.
struct Look {
  ClusterNames arrived = {};
  Failures present = {};      // alive there, though their arrival is not complete
  ClusterNames absent = {};   // known not to be there
  ClusterNames leaving = {};  // there, and known not to stay
  Failures unknown = {};      // the target could not be asked
};

/// Of clusters that are on the target, those that the source accepts as well: a previous round accepted them again
/// while the target did not answer. Without an answer that may be all of them.
Awaitable<ClusterNames> find_accepted_by_both(Rollback& rollback, ClusterNames clusters);

/// Clusters that have arrived count as such once the source has detached them. What it cannot detach is pending.
/// Returns those that count.
Awaitable<ClusterNames> keep_late_arrivals(Rollback& rollback, ClusterNames clusters);

/// Of a cluster that stays on the target for now: its agent lives there, and may have applied the klusterlet's work
/// already, with which it knows no other hub. Denied, it would be on none. Its arrival is completed, and found by the
/// next round. False: a person has given the target up.
bool wait_for_completion(Rollback& rollback, const std::string& cluster, const Failure& failure);

/// How soon a target that did not answer is asked to approve registrations again.
constexpr auto approve_again = std::chrono::seconds{15};

/// An agent that is registering on the target does so until it succeeds, and only then sees that it is denied there, or
/// stays if the source is down: the target approves its certificate requests until this is cancelled.
Awaitable<> let_registrations_finish(Rollback& rollback, ClusterNames clusters);

/// Both hubs accept these clusters, and the target calls a cluster Available for minutes after its agent has left: the
/// agent may have returned to the source since. The hub on which it renews its lease from now on keeps it: seen as a
/// change of that lease, since the clock of an agent may be hours ahead of ours. One that renews it on neither within
/// an attempt stays as it is: accepted by both, and looked at again in the next round.
Awaitable<> settle_accepted_by_both(Rollback& rollback, ClusterNames clusters);

/// Returns clusters to the source; the arrivals of `staying` are completed meanwhile. `look`: where they are not.
/// rollback_detached.cpp has it.
Awaitable<> return_with_registrations(Rollback& rollback, ClusterNames clusters, Look look, ClusterNames staying);

}  // namespace hubferry::migration
