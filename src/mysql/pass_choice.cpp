// Which replica becomes the primary: the one with everything, or none.
#include <algorithm>

#include "mysql/pass.hpp"

namespace hubferry::mysql {

/// True: it got no answer for some time when the primary was still seen writable. What was acknowledged since then,
/// another replica has, and with it all that came before.
bool Pass::was_down_before(const ServerView& server, const ServerView* primary) const {
  if (server.health.unreachable == 0 || primary == nullptr || !primary->health.last_writable_at) return false;
  return server.health.unreachable_since + 2 * services_.prober.options().interval < *primary->health.last_writable_at;
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
    if (!has_answered && !was_down_before(*server, primary.server) && !is_given_up(server->name))
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

/// The replica with everything that was received, applied.
Awaitable<Choice> Pass::choose(const FailoverRecord& record, const std::string& position) {
  auto reached = co_await reach_all(others(record.from));
  unhealthy_.clear();
  Choice choice;
  const auto is_missing = [&](const ServerView& server) {
    auto& list = is_given_up(server.name) ? choice.without : choice.missing;
    list += (list.empty() ? "" : ", ") + server.name;
  };
  const auto* primary = find(cluster_.primary());
  if (!record.planned) {
    for (const auto* server : others(record.from)) {
      const bool has_answered = std::ranges::find(reached, server, &Reached::server) != reached.end();
      if (!has_answered && server != primary && !was_down_before(*server, primary)) is_missing(*server);
    }
  }
  std::vector<Candidate> candidates;
  std::vector<Candidate> compared;  // also those that are not to be promoted
  for (auto& replica : reached) {
    // Receiving ends everywhere first: what is compared must not change any more.
    if (replica.facts.replication && !record.planned) {
      auto stopped = co_await replica.session->stop_receiving(*replica.facts.replication);
      auto facts = stopped ? co_await replica.session->facts() : sql::Result<Facts>{stopped.error()};
      if (!facts) {
        is_missing(*replica.server);
        continue;
      }
      replica.facts = std::move(*facts);
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
    // With a planned switchover everybody gets everything, below.
    if (record.planned) candidate.received = {};
    compared.push_back(candidate);
    const bool leaves = phase_ == phases::scaling && candidate.ordinal >= std::max<std::size_t>(1, spec_.replicas);
    const bool is_wanted = record.wanted.empty() || record.wanted == candidate.pod;
    if (is_wanted && !leaves) candidates.push_back(std::move(candidate));
  }
  if (!choice.missing.empty()) co_return choice;
  const auto eligible = [&](bool without_given_up) {
    auto list = candidates;
    auto most = parse_gtid(record.received);
    const auto is_left_out = [&](const Candidate& one) { return without_given_up && is_given_up(one.pod); };
    std::erase_if(list, is_left_out);
    for (const auto& one : compared)
      if (one.replicated && !is_left_out(one)) most = merged(most, one.received);
    if (!record.planned)
      std::erase_if(list, [&](const Candidate& candidate) { return has_more(most, candidate.received); });
    return ranked(std::move(list), spec_.lag_limit);
  };
  auto best = eligible(false);
  if (best.empty() && !given_up_.empty()) {
    best = eligible(true);
    for (const auto& one : compared)
      if (is_given_up(one.pod)) choice.without += (choice.without.empty() ? "" : ", ") + one.pod;
  }
  for (const auto& candidate : best) {
    const auto found = std::ranges::find(reached, candidate.pod, [](const Reached& one) { return one.server->name; });
    auto drained = record.planned ? co_await found->session->wait_for(position, spec_.drain_timeout)
                                  : co_await found->session->drain(found->facts, spec_.drain_timeout);
    if (drained && *drained) {
      choice.pod = candidate.pod;
      choice.received = merged(found->facts.has(), parse_gtid(position));
      co_return choice;
    }
    context_.log().warn("replica did not apply all it received", {{"pod", candidate.pod}});
    if (!record.planned) break;
  }
  co_return choice;
}

}  // namespace hubferry::mysql
