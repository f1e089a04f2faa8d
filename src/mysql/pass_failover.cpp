// Failover and switchover, in the order: record, fence, choose, drain, promote, move the endpoint, repoint, verify.
// Each step may be repeated: a successor continues from what the record and the servers say.
#include <algorithm>

#include "hubferry/kube/api.hpp"
#include "mysql/pass.hpp"

namespace hubferry::mysql {

namespace {

// How long a planned switchover may wait for its old primary before it is given up.
constexpr Duration switchover_timeout = std::chrono::seconds{60};
constexpr Duration failover_poll = std::chrono::seconds{1};

}  // namespace

/// Nothing: the rest of the pass may continue.
Awaitable<std::optional<ReconcileState>> Pass::replication() {
  const auto status_of_failover = cluster_.failover();
  if (set_replicas_ == 0) {
    if (status_of_failover) cluster_.clear_failover();
    set(conditions::failover_in_progress, ConditionStatus::no, reasons::no_failover, "scaled to zero");
    // Neither healthy nor a problem: a person wanted no primary.
    set(conditions::primary_healthy, ConditionStatus::unknown, reasons::no_primary, "scaled to zero");
    co_return std::nullopt;
  }
  // While this is recorded no other path changes read_only or attaches servers.
  if (status_of_failover) co_return co_await proceed(*status_of_failover);
  if (cluster_.primary().empty()) co_return co_await elect();
  if (!kube::find_condition_in_status(cluster_.status, conditions::failover_in_progress))
    set(conditions::failover_in_progress, ConditionStatus::no, reasons::no_failover, "no failover so far");
  if (const std::string wanted{cluster_.object.annotation(names::switchover_annotation)}; !wanted.empty()) {
    co_await remove_annotation(names::switchover_annotation);
    const bool is_pod = wanted != "any";
    if (is_pod && (find(wanted) == nullptr || wanted == cluster_.primary())) {
      warn("SwitchoverRefused", "pod " + wanted + " is not a replica of this cluster");
    } else {
      auto record = planned_switchover();
      if (is_pod) record.wanted = wanted;
      co_return begin(std::move(record));
    }
  }
  if (co_await wants_failover()) {
    FailoverRecord record;
    record.from = cluster_.primary();
    const auto* old = find(record.from);
    const auto ago = old == nullptr ? Duration::zero() : services_.env.clock.now() - old->health.last_strike_at;
    record.started =
        async::format_micro_time(services_.env.clock.wall_now() - std::min<Duration>(ago, std::chrono::minutes{1}));
    co_return begin(std::move(record));
  }
  co_await maintain();
  co_return std::nullopt;
}

/// Also sets PrimaryHealthy: why there is no failover is what an operator wants to know.
Awaitable<bool> Pass::wants_failover() {
  const auto* primary = find(cluster_.primary());
  if (primary == nullptr) co_return false;  // its pod is not one of this StatefulSet any more
  const auto& health = primary->health;
  const auto unhealthy = [&](const char* reason, const std::string& message) {
    set(conditions::primary_healthy, ConditionStatus::no, reason, message);
    return false;
  };
  if (health.verdict == Verdict::writable || (spec_.read_only && health.verdict == Verdict::read_only)) {
    set(conditions::primary_healthy, ConditionStatus::yes, reasons::heartbeat_ok, "primary " + cluster_.primary());
    co_return false;
  }
  if (health.strikes < services_.prober.options().strikes || phase_ == phases::creating) co_return false;
  const auto* reason = health.verdict == Verdict::read_only ? reasons::primary_read_only : reasons::primary_unreachable;
  if (spec_.read_only) co_return unhealthy(reason, "the cluster is read-only by its spec: no failover");
  if (set_replicas_ < 2) {
    may_heal_ = health.verdict == Verdict::read_only;
    co_return unhealthy(reasons::no_primary, may_heal_ ? "making the server writable again" : "no replica to promote");
  }
  // The exporter may lack a grant, or be down alone: the servers themselves are asked.
  auto reached = co_await reach_all(others(cluster_.primary()));
  unhealthy_.clear();
  std::optional<Reached> itself;
  // If no exporter answers, the primary's own silence says nothing.
  if (health.verdict == Verdict::read_only || services_.prober.is_silent(cluster_.object.key()))
    if (auto answer = co_await reach(*primary)) itself.emplace(std::move(*answer));
  if (reached.empty() && !itself)
    co_return unhealthy(reasons::probe_unknown, "no server can be reached: the operator may be cut off");
  std::size_t connected = 0;
  for (const auto& replica : reached)
    if (replica.facts.replication && replica.facts.replication->io_running == "Yes") ++connected;
  if (health.verdict == Verdict::read_only) {
    // Making it writable again is cheaper, unless a replica has what it lost.
    if (itself && !is_behind(*itself, reached)) {
      if (const auto why = reason_to_wait(reached, *itself); !why.empty()) co_return unhealthy(reason, why);
      may_heal_ = true;
      co_return unhealthy(reason, "making the primary writable again");
    }
  } else if (itself) {
    co_return unhealthy(reason, "the server itself answers: only its exporter does not");
  } else if (connected * 2 > reached.size()) {
    co_return unhealthy(reason, "its replicas are still connected to it: only the operator or the exporter is cut off");
  }
  const auto now = services_.env.clock.wall_now();
  const auto last =
      time_of(std::string{kube::string_at(cluster_.status, {"lastFailover", "failureTime"})}, now - spec_.cool_down);
  if (now - last < spec_.cool_down) co_return unhealthy(reason, "the last failover was less than the cool-down ago");
  set(conditions::primary_healthy, ConditionStatus::no, reason, "failing over");
  co_return true;
}

FailoverRecord Pass::planned_switchover() const {
  FailoverRecord record;
  record.from = cluster_.primary();
  record.planned = true;
  return record;
}

ReconcileState Pass::begin(FailoverRecord record) {
  if (record.started.empty()) record.started = async::format_micro_time(services_.env.clock.wall_now());
  context_.log().warn("failover started", {{"from", record.from}, {"planned", record.planned}});
  cluster_.set_failover(record);
  services_.prober.clear_waits(cluster_.object.key());
  set(conditions::failover_in_progress, ConditionStatus::yes, reasons::promote_replica,
      "replacing the primary " + record.from);
  return phase::not_done(phase::least_requeue_delay);
}

Awaitable<ReconcileState> Pass::proceed(FailoverRecord record) {
  if (!record.to.empty()) co_return co_await promote(std::move(record));
  Fenced fenced;
  const auto wall_now = services_.env.clock.wall_now();
  // Once is enough: whatever starts in its place is read-only, and must be given the time to start.
  const bool is_fenced = !record.planned && !record.fenced.empty();
  if (!is_fenced && !co_await fence(record, fenced)) {
    const auto age = wall_now - time_of(record.started, wall_now);
    if (record.planned && age > switchover_timeout)
      co_return co_await abort(record, "the primary could not be made read-only");
    co_return wait_in_failover(record, "waiting until pod " + record.from + " is really gone");
  }
  // Its pod is gone: nobody knows its last transaction, so the replicas are compared as after a failure.
  if (!fenced.position) record.planned = false;
  if (record.fenced.empty()) record.fenced = async::format_micro_time(wall_now);
  // The last one that was chosen: what it had goes with it.
  if (is_given_up(record.from)) record.received.clear();
  cluster_.set_failover(record);
  auto chosen = co_await choose(record, fenced);
  const bool loses = chosen.pod.empty() || !chosen.without.empty();
  if (!record.planned && chosen.missing.empty() && loses && co_await is_old_primary_back(record))
    co_return keep_old_primary(record);
  if (!chosen.missing.empty()) {
    if (wall_now - time_of(record.fenced, wall_now) < replicas_timeout)
      co_return wait_in_failover(record, "waiting for " + chosen.missing);
    co_return co_await abort(record, chosen.missing + " did not answer and may have transactions that the others lack");
  }
  if (chosen.pod.empty()) co_return co_await abort(record, "no replica can be promoted without losing transactions");
  record.to = chosen.pod;
  record.without = chosen.without;
  record.chosen_start = chosen.started;
  record.received = to_text(merged(parse_gtid(record.received), chosen.received));
  cluster_.set_failover(record);
  context_.log().info("replica chosen", {{"from", record.from}, {"to", record.to}, {"without", record.without}});
  co_return phase::not_done(phase::least_requeue_delay);
}

/// True: the old primary accepts no writes any more, whatever it is doing.
Awaitable<bool> Pass::fence(const FailoverRecord& record, Fenced& fenced) {
  // Nobody new gets there; connections that are open survive this.
  co_await ensure_endpoints(write_service_name(owner_.name), {});
  const kube::Key key{owner_.ns, record.from};
  auto pod = co_await services_.api.get(kinds::pods, key);
  if (!pod && pod.error().kind == kube::ErrorKind::not_found) co_return true;
  const auto uid = std::string{take(std::move(pod), "Pod " + key.name).uid()};
  const auto* server = find(record.from);
  // A pod that was made since then started read-only.
  for (int attempt = 0; attempt < 2 && server != nullptr && server->uid == uid; ++attempt) {
    auto reached = co_await reach(*server);
    if (!reached) break;
    // It waits for commits that are running: clients that hold it up lose their connection, then it is repeated.
    auto set = co_await reached->session->set_read_only(true);
    if (!set) context_.log().warn("making the old primary read-only failed", {{"error", set.error().describe()}});
    auto fresh = co_await reach(*server);
    if (!fresh) break;
    auto killed = co_await fresh->session->kill_clients();
    if (!killed) continue;
    // After that: privileged users may write to a read-only server, and until now some were connected.
    auto last = co_await fresh->session->facts();
    if (!last || !last->read_only) continue;
    fresh->facts = std::move(*last);
    fenced.position = fresh->facts.binlog_text;
    fenced.has_run = has_run_since_writable(*fresh);
    co_return true;
  }
  if (record.planned) co_return false;
  kube::Request removal;
  removal.verb = kube::Verb::remove;
  removal.resource = kinds::pods;
  removal.key = key;
  removal.precondition_uid = uid;
  auto removed = co_await services_.api.call(std::move(removal));
  if (!removed && removed.error().kind != kube::ErrorKind::not_found &&
      removed.error().kind != kube::ErrorKind::conflict)
    take(std::move(removed), "deleting Pod " + key.name);
  auto again = co_await services_.api.get(kinds::pods, key);
  // On a lost node it stays until somebody confirms that the node is gone: until then it may be alive.
  co_return !again ? again.error().kind == kube::ErrorKind::not_found : again->uid() != uid;
}

/// It is made writable as any primary that became read-only, and its replicas follow it again.
ReconcileState Pass::keep_old_primary(const FailoverRecord& record) {
  context_.log().warn("failover ended, the old primary is back", {{"primary", record.from}});
  cluster_.clear_failover();
  set(conditions::failover_in_progress, ConditionStatus::no, reasons::no_failover,
      record.from + " is back with all transactions and stays the primary");
  return phase::not_done(phase::least_requeue_delay);
}

/// Gives up. A switchover leaves the primary as it was; after a failure nothing is writable, and a person decides.
Awaitable<ReconcileState> Pass::abort(FailoverRecord record, std::string why) {
  cluster_.clear_failover();
  set(conditions::failover_in_progress, ConditionStatus::no, reasons::failover_aborted, why);
  context_.log().error("failover aborted", {{"from", record.from}, {"reason", why}});
  if (record.planned) {
    const auto* server = find(record.from);
    if (server != nullptr && !spec_.read_only) {
      auto reached = co_await reach(*server);
      sql::Result<> restored = sql::Error{sql::ErrorKind::refused, 0, "it may have been restarted"};
      if (!reached) restored = reached.error();
      if (reached && has_run_since_writable(*reached)) restored = co_await reached->session->make_writable(semi_sync());
      // Then it is noticed as any primary that is read-only.
      if (!restored)
        context_.log().warn("the primary is still read-only",
                            {{"pod", record.from}, {"error", restored.error().describe()}});
      services_.prober.poke(cluster_.object.key());
    }
    co_return phase::not_done(std::chrono::seconds{1});
  }
  throw PassError(PassError::Kind::fatal, why);
}

ReconcileState Pass::wait_in_failover(const FailoverRecord& record, const std::string& why) {
  set(conditions::failover_in_progress, ConditionStatus::yes, reasons::promote_replica,
      "replacing the primary " + record.from + ": " + why);
  return phase::not_done(failover_poll);
}

}  // namespace hubferry::mysql
