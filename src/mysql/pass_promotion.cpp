// The end of a failover: the chosen replica becomes the primary, and the others follow it.
#include <algorithm>

#include "mysql/pass.hpp"

namespace hubferry::mysql {

/// The chosen replica may have become writable before it was lost: it is fenced as the old primary was, and the next
/// one must have what it had.
ReconcileState Pass::choose_again(FailoverRecord record) {
  context_.log().warn("chosen replica lost, choosing again", {{"pod", record.to}});
  record.from = std::exchange(record.to, {});
  record.planned = false;
  record.wanted.clear();
  record.fenced.clear();
  record.chosen_start.clear();
  record.waiting_for.clear();
  record.waiting_since.clear();
  cluster_.set_failover(record);
  services_.prober.clear_waits(cluster_.object.key());
  return phase::not_done(phase::least_requeue_delay);
}

/// Nothing: it may become writable.
Awaitable<std::optional<ReconcileState>> Pass::check_chosen(FailoverRecord& record, const Reached& chosen) {
  std::vector<std::string> missing;
  if (co_await has_chosen_lost(record, chosen, missing)) co_return choose_again(record);
  // Also for a successor: each of them is waited for as long, and no longer. A definition that is older than this
  // process drops it, so what this process remembers counts too.
  const auto now = services_.env.clock.wall_now();
  const bool is_known =
      std::ranges::all_of(missing, [&](const auto& pod) { return is_named(record.waiting_for, pod); });
  if (!is_known) record.waiting_since = async::format_micro_time(now);
  if (missing.empty()) record.waiting_since.clear();
  auto waited = std::chrono::duration_cast<Duration>(now - time_of(record.waiting_since, now));
  std::string names;
  for (const auto& pod : missing) {
    names += (names.empty() ? "" : ", ") + pod;
    const auto since = services_.prober.waited_since(cluster_.object.key(), pod);
    waited = std::max<Duration>(waited, services_.env.clock.now() - since);
  }
  record.waiting_for = names;
  cluster_.set_failover(record);
  if (missing.empty()) co_return std::nullopt;
  if (waited < replicas_timeout) co_return wait_in_failover(record, record.to + " was restarted: waiting for " + names);
  // It may have accepted writes: the old primary is not to follow it.
  record.planned = false;
  co_return co_await abort(record, names + " did not answer and may have transactions that " + record.to + " lacks");
}

Awaitable<ReconcileState> Pass::promote(FailoverRecord record) {
  const auto* server = find(record.to);
  auto reached = server == nullptr ? sql::Result<Reached>{sql::Error{sql::ErrorKind::unreachable, 0, "no such pod"}}
                                   : co_await reach(*server);
  if (!reached) {
    const auto& probes = services_.prober.options();
    const auto since = services_.prober.waited_since(cluster_.object.key(), record.to);
    const auto waited = services_.env.clock.now() - since;
    // Neither its exporter alone, nor one connection that fails.
    const bool is_down = server == nullptr ||
                         (server->health.unreachable >= probes.strikes && waited >= probes.strikes * probes.interval);
    if (!is_down) co_return wait_in_failover(record, "waiting for " + record.to + ": " + reached.error().describe());
    co_return choose_again(std::move(record));
  }
  if (reached->facts.replication) {
    // A predecessor has drained it, but the relay log is about to be deleted.
    auto drained = co_await reached->session->drain(reached->facts, spec_.drain_timeout);
    if (!take(std::move(drained), "draining " + record.to))
      co_return co_await abort(record, record.to + " did not apply all it received");
    auto drained_facts = co_await reached->session->facts();
    reached->facts.applied = take(std::move(drained_facts), "draining " + record.to).applied;
  }
  if (reached->facts.read_only)
    if (auto other = co_await check_chosen(record, *reached)) co_return std::move(*other);
  if (reached->facts.replication) {
    auto left = co_await reached->session->leave_replication();
    take(std::move(left), "promoting " + record.to);
  }
  // Opened later, if the spec allows it: as any primary that is read-only.
  if (reached->facts.read_only && !spec_.read_only) {
    auto promoted = co_await reached->session->make_writable(semi_sync());
    take(std::move(promoted), "promoting " + record.to);
  }
  co_await ensure_endpoints(write_service_name(owner_.name), {server});
  const auto now = services_.env.clock.wall_now();
  // The others follow; those that cannot be reached now do so later.
  cluster_.status["primary"] = record.to;
  auto source = co_await reach(*server);
  take(sql::Result<>{source ? sql::Result<>{} : sql::Result<>{source.error()}}, "checking " + record.to);
  for (auto& other : co_await reach_all(others(record.to))) {
    const bool is_old = other.server->name == record.from;
    // They may be back already; they join as any server that returns.
    if ((is_old && !record.planned) || is_named(record.without, other.server->name)) continue;
    co_await join(other, source->facts);
  }
  unhealthy_.clear();
  const auto seconds = std::chrono::duration<double>(now - time_of(record.started, now)).count();
  // A planned one in between does not end the cool-down after a failure, nor does it begin one.
  auto failure = std::string{kube::string_at(cluster_.status, {"lastFailover", "failureTime"})};
  if (!record.planned) failure = async::format_time(now);
  cluster_.status["lastFailover"] = json::object{{"from", record.from},
                                                 {"to", record.to},
                                                 {"endTime", async::format_time(now)},
                                                 {"planned", record.planned},
                                                 {"seconds", record.planned ? 0.0 : std::max(seconds, 0.001)}};
  if (!record.without.empty()) cluster_.status["lastFailover"].as_object()["without"] = record.without;
  if (!failure.empty()) cluster_.status["lastFailover"].as_object()["failureTime"] = failure;
  cluster_.clear_failover();
  cluster_.set_given_up({});
  // The same if a successor repeats this step: the time tells failovers apart, the pod the turns of one.
  std::string id;
  for (const char c : record.started)
    if (c >= '0' && c <= '9') id += c;
  co_await services_.reporter.failover_succeeded(cluster_.object, id + "-" + record.to, record.to);
  set(conditions::failover_in_progress, ConditionStatus::no, reasons::failover_complete,
      record.to + " promoted in place of " + record.from);
  context_.log().warn("failover complete", {{"from", record.from}, {"to", record.to}, {"seconds", seconds}});
  services_.prober.poke(cluster_.object.key());
  co_return phase::not_done(std::chrono::seconds{1});
}

}  // namespace hubferry::mysql
