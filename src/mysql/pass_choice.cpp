// Which replica becomes the primary: the one with everything, or none.
#include <algorithm>

#include "hubferry/async/task_scope.hpp"
#include "mysql/pass.hpp"

namespace hubferry::mysql {

/// True: the primary said itself, twice in a row, the second time around the last probe that found it writable, that
/// this replica was not connected, and `position` has all that the primary had then. So this replica has nothing more.
/// That it gives no answer proves nothing: it may be cut off from the operator only, and acknowledge writes all the
/// same. Nor does one such answer: a replica that has just lost its connection is about to make it again.
bool Pass::has_at_most(const ServerView& absent, const GtidPosition& position, const ServerView* primary) const {
  const auto& absence = absent.health.absence;
  if (!absence || primary == nullptr || !primary->health.last_writable_at) return false;
  const auto interval = services_.prober.options().interval;
  if (absence->at - absence->since < interval / 2) return false;  // passes may follow each other within a moment
  const bool is_recent = absence->at + interval + absence_margin >= *primary->health.last_writable_at;
  return is_recent && !has_more(absence->position, position);
}

/// True: this process saw it writable, and it has not started since then. Nothing else proves that: an uptime alone
/// does not tell when it became read-only. The margin is for its wall clock, which its uptime follows.
bool Pass::has_run_since_writable(const Reached& server) const {
  const auto& seen = server.server->health.last_writable_at;
  if (!seen) return false;
  const auto ago = services_.env.clock.now() - *seen + 2 * services_.prober.options().interval;
  return server.facts.uptime > std::chrono::duration<double>(ago).count();
}

/// A message if replicas do not answer that may have what the primary lacks: when a server of a semi-synchronous
/// replication recovers from a crash, it rolls back what it had not committed to the disk, also if a replica has it and
/// the client an answer.
std::string Pass::reason_to_wait(const std::vector<Reached>& reached, const Reached& primary) const {
  std::string missing;
  if (has_run_since_writable(primary)) return missing;
  for (const auto* server : others(primary.server->name)) {
    const bool has_answered = std::ranges::find(reached, server, &Reached::server) != reached.end();
    if (!has_answered && !has_at_most(*server, primary.facts.applied, primary.server) && !is_given_up(server->name))
      missing += (missing.empty() ? "" : ", ") + server->name;
  }
  if (missing.empty()) return missing;
  return "it may have been restarted, and may lack what " + missing + " received: waiting for an answer, or for the " +
         "annotation " + names::give_up_annotation + " with what is to be given up";
}

bool Pass::is_behind(const Reached& primary, const std::vector<Reached>& replicas) {
  return std::ranges::any_of(
      replicas, [&](const Reached& replica) { return has_more(replica.facts.has(), primary.facts.applied); });
}

/// While a cluster is created nothing fails over. Its primary may have accepted writes already, and have crashed.
Awaitable<bool> Pass::may_open_new(const Reached& primary) {
  const auto replicas = co_await reach_all(others(primary.server->name));
  const bool lacks = is_behind(primary, replicas);
  const auto why =
      lacks ? primary.server->name + " lacks transactions that a replica has" : reason_to_wait(replicas, primary);
  if (why.empty()) co_return true;
  set(conditions::primary_healthy, ConditionStatus::no, reasons::primary_read_only, why);
  if (lacks) throw PassError(PassError::Kind::fatal, why);
  co_return false;
}

/// True: its pod was made again, and it has all that the replicas have which answer.
Awaitable<bool> Pass::is_old_primary_back(const FailoverRecord& record) {
  const auto* server = find(record.from);
  if (server == nullptr || record.from != cluster_.primary()) co_return false;
  auto itself = co_await reach(*server);
  if (!itself || !itself->facts.read_only || itself->facts.replication) co_return false;
  if (has_more(parse_gtid(record.received), itself->facts.applied)) co_return false;
  auto replicas = co_await reach_all(others(record.from));
  unhealthy_.clear();
  // An empty volume has all of nothing.
  if (replicas.empty()) co_return false;
  co_return !is_behind(*itself, replicas);
}

/// True: it lacks what it had, or what another replica has. A predecessor may have made it writable already: then it
/// accepted writes, and crashed, and its recovery rolled back what a replica acknowledged. `missing`: replicas that
/// would have to be asked, but do not answer.
Awaitable<bool> Pass::has_chosen_lost(const FailoverRecord& record, const Reached& chosen,
                                      std::vector<std::string>& missing) {
  if (has_more(parse_gtid(record.received), chosen.facts.applied)) co_return true;
  // Both by its own clock: those of two operators may differ.
  const bool has_run = !record.chosen_start.empty() && record.chosen_start == chosen.facts.started;
  if (chosen.facts.replication || has_run) co_return false;
  const auto replicas = co_await reach_all(others(record.to));
  unhealthy_.clear();
  for (const auto* server : others(record.to)) {
    const bool has_answered = std::ranges::find(replicas, server, &Reached::server) != replicas.end();
    // One that failed was not attached to the new primary.
    const bool has_failed = !record.planned && server->name == record.from;
    if (!has_answered && !has_failed && !is_given_up(server->name)) missing.push_back(server->name);
  }
  // An old primary that is back may have what nobody acknowledged.
  co_return std::ranges::any_of(replicas, [&](const Reached& replica) {
    return replica.facts.replication && has_more(replica.facts.has(), chosen.facts.applied);
  });
}

/// On all replicas at once: a server takes two seconds for it if its thread waits for the lost primary.
Awaitable<> Pass::stop_receiving(std::vector<Reached>& replicas, std::set<const ServerView*>& silent) {
  auto stop = [&](Reached& replica) -> Awaitable<> {
    auto stopped = co_await replica.session->stop_receiving(*replica.facts.replication);
    auto facts = stopped ? co_await replica.session->facts() : sql::Result<Facts>{stopped.error()};
    if (facts)
      replica.facts = std::move(*facts);
    else
      silent.insert(replica.server);
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (auto& replica : replicas)
      if (replica.facts.replication) scope.spawn(stop(replica));
    co_return;
  };
  co_await async::with_scope(body);
}

/// The replica with everything that was received, applied.
Awaitable<Choice> Pass::choose(const FailoverRecord& record, const Fenced& fenced) {
  auto reached = co_await reach_all(others(record.from));
  unhealthy_.clear();
  Choice choice;
  const auto is_missing = [&](const ServerView& server) {
    auto& list = is_given_up(server.name) ? choice.without : choice.missing;
    list += (list.empty() ? "" : ", ") + server.name;
  };
  // After a failure, what only the old primary has was not acknowledged.
  const auto position = parse_gtid(record.planned ? fenced.position.value_or("") : "");
  // What a primary has that never stopped, all replicas have, or get from it.
  const bool compares = !record.planned || !fenced.has_run;
  std::vector<Candidate> candidates;
  std::vector<Candidate> compared;  // also those that are not to be promoted
  std::set<const ServerView*> silent;
  // Receiving ends everywhere first: what is compared must not change any more.
  if (!record.planned) co_await stop_receiving(reached, silent);
  for (auto& replica : reached) {
    if (silent.contains(replica.server)) {
      is_missing(*replica.server);
      continue;
    }
    const auto& facts = replica.facts;
    Candidate candidate;
    candidate.pod = replica.server->name;
    candidate.ordinal = replica.server->ordinal;
    candidate.applied = facts.applied;
    candidate.received = facts.has();
    candidate.replicated = facts.replication.has_value();
    if (facts.replication) candidate.sql_error = facts.replication->sql_error;
    candidate.lag = replica.server->health.last_lag;
    // It has caught up since then: without a primary there is no newer lag, and this one would count for ever.
    if (candidate.lag && !has_more(candidate.received, candidate.applied))
      candidate.lag = std::min(*candidate.lag, std::chrono::duration<double>(spec_.lag_limit).count());
    compared.push_back(candidate);
    // After a failure it may be the only one with everything: it hands over later.
    const bool leaves =
        record.planned && phase_ == phases::scaling && candidate.ordinal >= std::max<std::size_t>(1, spec_.replicas);
    const bool is_wanted = record.wanted.empty() || record.wanted == candidate.pod;
    if (is_wanted && !leaves) candidates.push_back(std::move(candidate));
  }
  const auto most_of = [&](bool without_given_up) {
    auto most = merged(position, parse_gtid(record.received));
    for (const auto& one : compared)
      if (one.replicated && !(without_given_up && is_given_up(one.pod))) most = merged(most, one.received);
    return most;
  };
  const auto* primary = find(cluster_.primary());
  for (const auto* server : others(record.from)) {
    const bool has_answered = std::ranges::find(reached, server, &Reached::server) != reached.end();
    if (compares && !has_answered && server != primary && !has_at_most(*server, most_of(false), primary))
      is_missing(*server);
  }
  if (!choice.missing.empty()) co_return choice;
  const auto eligible = [&](bool without_given_up) {
    std::vector<Candidate> list;
    const auto most = most_of(without_given_up);
    for (auto candidate : candidates) {
      if (without_given_up && is_given_up(candidate.pod)) continue;
      // From an old primary that answers it gets what that one has.
      const auto has = record.planned ? merged(candidate.received, position) : candidate.received;
      if (compares && has_more(most, has)) continue;
      if (record.planned) candidate.received = {};
      list.push_back(std::move(candidate));
    }
    return ranked(std::move(list), spec_.lag_limit);
  };
  auto best = eligible(false);
  bool is_without = false;
  if (best.empty() && !given_up_.empty()) {
    is_without = true;
    best = eligible(true);
    for (const auto& one : compared)
      if (is_given_up(one.pod)) choice.without += (choice.without.empty() ? "" : ", ") + one.pod;
  }
  const auto all = compares ? most_of(is_without) : position;
  for (const auto& candidate : best) {
    const auto found = std::ranges::find(reached, candidate.pod, [](const Reached& one) { return one.server->name; });
    auto drained = record.planned ? co_await found->session->wait_for(to_text(all), spec_.drain_timeout)
                                  : co_await found->session->drain(found->facts, spec_.drain_timeout);
    if (drained && *drained) {
      choice.pod = candidate.pod;
      choice.received = record.planned ? merged(found->facts.has(), all) : found->facts.has();
      choice.started = found->facts.started;
      co_return choice;
    }
    context_.log().warn("replica did not apply all it received", {{"pod", candidate.pod}});
    if (!record.planned) break;
  }
  co_return choice;
}

}  // namespace hubferry::mysql
