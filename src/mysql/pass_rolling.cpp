// Restarts one pod after the other, the primary last; and what scaling needs.
#include <algorithm>

#include "mysql/pass.hpp"

namespace hubferry::mysql {

namespace {

// After a switchover that was given up: each attempt interrupts the writes.
constexpr Duration switchover_pause = std::chrono::minutes{5};

/// Both times have the same format, so they compare as text.
bool is_older(const kube::Object& one, const kube::Object& other) {
  return one.string_at({"metadata", "creationTimestamp"}) < other.string_at({"metadata", "creationTimestamp"});
}

}  // namespace

/// The operator's own wish to hand over: only if a replica that stays keeps up, and the last attempt is some time ago.
bool Pass::may_switch_over() const {
  const auto* last = kube::find_condition_in_status(cluster_.status, conditions::failover_in_progress);
  if (last != nullptr && kube::string_at(*last, {"reason"}) == reasons::failover_aborted) {
    const auto now = services_.env.clock.wall_now();
    if (now - time_of(std::string{kube::string_at(*last, {"lastTransitionTime"})}, now) < switchover_pause)
      return false;
  }
  const auto limit = std::chrono::duration<double>(spec_.lag_limit).count();
  return std::ranges::any_of(servers_, [&](const ServerView& server) {
    const bool leaves = phase_ == phases::scaling && server.ordinal >= std::max<std::size_t>(1, spec_.replicas);
    const auto& lag = server.health.sample.lag;
    return server.name != cluster_.primary() && !leaves && lag && *lag <= limit;
  });
}

/// A server that is scaled away may alone have what the others lack: so not while a failover compares them, and only if
/// those that stay have everything, by their own account. Before observe().
Awaitable<bool> Pass::may_scale_down() {
  const auto failover = cluster_.failover();
  // The chosen replica, or one that was chosen before and died, may have accepted writes, and nothing else says that it
  // is the primary.
  if (failover && (!failover->to.empty() || failover->from != cluster_.primary())) co_return false;
  if (spec_.replicas == 0 && spec_.when_scaled == VolumePolicy::keep) co_return true;  // nothing is lost
  if (failover) co_return false;
  const auto primary = view_of(ordinal_of(owner_.name, cluster_.primary()).value_or(0));
  for (std::size_t ordinal = 0; ordinal < std::max<std::size_t>(1, spec_.replicas); ++ordinal) {
    const auto server = view_of(ordinal);
    const bool is_primary = server.name == primary.name;
    if (is_primary ? !is_primary_well(server) : needs_attention(server)) co_return false;
    auto reached = co_await reach(server);
    if (!reached || !(is_primary ? is_open(*reached) : follows(reached->facts, primary.address))) co_return false;
  }
  co_return true;
}

/// By its own account: it accepts writes, if the spec allows it, and replicates from nobody.
bool Pass::is_open(const Reached& primary) const {
  return primary.facts.read_only == spec_.read_only && !primary.facts.replication;
}

bool Pass::is_primary_well(const ServerView& primary) const {
  return primary.health.verdict == (spec_.read_only ? Verdict::read_only : Verdict::writable);
}

bool Pass::is_set_current() const {
  const auto* observed = set_->find({"status", "observedGeneration"});
  return observed != nullptr && observed->is_number() && observed->to_number<std::int64_t>() == set_->generation();
}

bool Pass::is_outdated(const ServerView& server) const {
  const auto wanted = set_->string_at({"status", "updateRevision"});
  return server.exists && !wanted.empty() && !server.revision.empty() && server.revision != wanted;
}

/// Deletes one pod whose template is out of date, if all servers are well: its successor has the new one. The primary
/// hands over first.
Awaitable<std::optional<ReconcileState>> Pass::restart_outdated() {
  if (!is_set_current() || phase_ == phases::creating) co_return std::nullopt;
  if (lacks_restore_claim_) co_return std::nullopt;  // it would not start again
  const ServerView* next = nullptr;
  const auto primary = cluster_.primary();
  for (const auto& server : servers_)
    if (is_outdated(server) && (server.name != primary || next == nullptr)) next = &server;
  if (next != nullptr && next->name == primary)
    for (const auto& server : servers_)
      if (is_outdated(server) && server.name != primary) next = &server;
  if (next == nullptr) co_return std::nullopt;
  // A pod that does not start may be cured by the new template; nothing else is restarted meanwhile.
  const bool is_stuck = !next->ready && !next->waiting.empty() && next->name != primary;
  if (!is_stuck && (!all_ready() || !all_replicating())) co_return std::nullopt;
  if (next->name == primary && servers_.size() > 1 && !may_switch_over()) co_return std::nullopt;
  if (next->name == primary && servers_.size() > 1) co_return begin(planned_switchover());
  // With a Secret that was changed behind our back the new pod would not let us in: that is reported, not rolled out.
  if (!is_stuck) {
    auto reached = co_await reach(*next);
    if (!reached) {
      unhealthy_[next->name] = reached.error().describe();
      password_denied_ = password_denied_ || reached.error().kind == sql::ErrorKind::denied;
      co_return std::nullopt;
    }
  }
  kube::Request removal;
  removal.verb = kube::Verb::remove;
  removal.resource = kinds::pods;
  removal.key = {owner_.ns, next->name};
  removal.precondition_uid = next->uid;
  auto removed = co_await services_.api.call(std::move(removal));
  if (!removed && removed.error().kind != kube::ErrorKind::not_found)
    take(std::move(removed), "restarting " + next->name);
  context_.log().info("pod restarted with the current template", {{"pod", next->name}});
  co_return phase::not_done(std::chrono::seconds{5});
}

/// A primary among the pods that go hands over first; and the last server does not wait for replicas.
Awaitable<std::optional<ReconcileState>> Pass::prepare_scale_down() {
  if (spec_.replicas >= set_replicas_) {
    if (spec_.replicas > 1 || set_replicas_ != 1) co_return std::nullopt;
    const auto* last = find(cluster_.primary());
    if (last == nullptr) co_return std::nullopt;
    auto reached = co_await reach(*last);
    if (reached) {
      auto set_off = co_await reached->session->set_semi_sync(semi_sync());
      take(std::move(set_off), "semi-synchronous replication of " + last->name);
    }
    co_return std::nullopt;
  }
  const auto ordinal = ordinal_of(owner_.name, cluster_.primary()).value_or(0);
  if (ordinal < std::max<std::size_t>(1, spec_.replicas)) co_return std::nullopt;
  if (!all_ready() || !all_replicating() || !may_switch_over()) co_return std::nullopt;
  co_return begin(planned_switchover());
}

/// The claims of pods that are gone for good, never that of ordinal 0: it has all data.
Awaitable<> Pass::remove_claims() {
  if (spec_.when_scaled != VolumePolicy::remove || set_replicas_ != spec_.replicas) co_return;
  // What is deleted here may be needed if the primary is lost.
  const auto* primary = find(cluster_.primary());
  if (spec_.replicas > 0 && (primary == nullptr || !is_primary_well(*primary))) co_return;
  bool is_asked = spec_.replicas == 0;
  for (std::size_t ordinal = std::max<std::size_t>(1, spec_.replicas);; ++ordinal) {
    const kube::Key key{owner_.ns, claim_name(owner_.name, ordinal)};
    const auto claim = services_.claims->get(key);
    if (claim == nullptr) break;
    const bool is_used = services_.pods->get({owner_.ns, pod_name(owner_.name, ordinal)}) != nullptr;
    if (is_used || claim->is_being_deleted() || claim->label(names::cluster_label) != owner_.name) continue;
    // Of a cluster of this name that was deleted, and kept its volumes: not of a server that was scaled away.
    if (is_older(*claim, cluster_.object)) continue;
    if (!is_asked) {
      auto reached = co_await reach(*primary);
      if (!reached || !is_open(*reached)) co_return;
      is_asked = true;
    }
    kube::Request removal;
    removal.verb = kube::Verb::remove;
    removal.resource = kinds::persistent_volume_claims;
    removal.key = key;
    removal.precondition_uid = claim->uid();
    auto removed = co_await services_.api.call(std::move(removal));
    if (!removed && removed.error().kind != kube::ErrorKind::not_found)
      take(std::move(removed), "PersistentVolumeClaim " + key.name);
  }
}

}  // namespace hubferry::mysql
