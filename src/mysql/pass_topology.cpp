// Which server is the primary, and the others as its replicas.
#include <algorithm>

#include "hubferry/async/task_scope.hpp"
#include "mysql/pass.hpp"

namespace hubferry::mysql {

namespace {

constexpr Duration connect_timeout = std::chrono::seconds{3};
// The position that the replica asks for is not in the primary's binary log: purged, or never written there.
constexpr std::uint32_t position_not_found = 1236;

std::string names_of(const std::vector<const Reached*>& servers) {
  std::string text;
  for (const auto* one : servers) text += (text.empty() ? "" : ", ") + one->server->name;
  return text;
}

}  // namespace

const ServerView* Pass::find(const std::string& pod) const {
  const auto found = std::ranges::find(servers_, pod, &ServerView::name);
  return found == servers_.end() ? nullptr : &*found;
}

std::vector<const ServerView*> Pass::others(const std::string& pod) const {
  std::vector<const ServerView*> list;
  for (const auto& server : servers_)
    if (server.name != pod) list.push_back(&server);
  return list;
}

SemiSync Pass::semi_sync() const {
  return {spec_.semi_sync && spec_.replicas > 1, spec_.semi_sync_timeout};
}

Awaitable<sql::Result<std::unique_ptr<sql::Connection>>> Pass::connect(const ServerView& server,
                                                                       sql::Credentials credentials) {
  if (server.address.empty()) co_return sql::Error{sql::ErrorKind::unreachable, 0, "the pod has no address"};
  const auto deadline = async::later(services_.env.clock.now(), connect_timeout);
  const sql::Address address{server.address, mysql_port};
  co_return co_await services_.connector.connect(address, std::move(credentials), deadline);
}

/// A session with this server, not with another one that was given its address and may have the same password.
Awaitable<sql::Result<Session>> Pass::open(const ServerView& server) {
  sql::Credentials credentials{"root", root_password_};
  auto connection = co_await connect(server, credentials);
  if (!connection && connection.error().kind == sql::ErrorKind::denied && other_password_) {
    credentials.password = *other_password_;
    connection = co_await connect(server, credentials);
  }
  if (!connection) co_return connection.error();
  Session session{std::move(*connection), services_.env.clock, services_.options.fence};
  auto pod = co_await session.pod();
  if (!pod) co_return pod.error();
  const bool is_stranger = !pod->empty() && *pod != server.name;
  services_.prober.set_stranger(cluster_.object.key(), server.name, is_stranger ? server.address : "");
  if (is_stranger) co_return sql::Error{sql::ErrorKind::unreachable, 0, "another server answers at its address"};
  co_return session;
}

Awaitable<sql::Result<Reached>> Pass::reach(const ServerView& server) {
  auto session = co_await open(server);
  if (!session) co_return session.error();
  Reached reached;
  reached.server = &server;
  reached.session.emplace(std::move(*session));
  auto facts = co_await reached.session->facts();
  if (!facts) co_return facts.error();
  reached.facts = std::move(*facts);
  services_.prober.set_answered(cluster_.object.key(), server.name);
  co_return reached;
}

Awaitable<> Pass::ask(const ServerView* server, std::optional<Reached>& answer) {
  auto reached = co_await reach(*server);
  if (reached) {
    answer.emplace(std::move(*reached));
  } else {
    unhealthy_[server->name] = reached.error().describe();
    password_denied_ = password_denied_ || reached.error().kind == sql::ErrorKind::denied;
  }
}

/// Those that answer, in their order. A wrong password is remembered: it is nothing that passes by itself.
Awaitable<std::vector<Reached>> Pass::reach_all(std::vector<const ServerView*> servers) {
  std::vector<std::optional<Reached>> answers(servers.size());
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    for (std::size_t at = 0; at < servers.size(); ++at) scope.spawn(ask(servers[at], answers[at]));
    co_return;
  };
  co_await async::with_scope(body);
  std::vector<Reached> reached;
  for (auto& answer : answers)
    if (answer) reached.push_back(std::move(*answer));
  co_return reached;
}

/// The first primary, or after its name was lost. Only what cannot be mistaken counts: everything else is left
/// read-only for a person to decide.
Awaitable<ReconcileState> Pass::elect() {
  auto reached = co_await reach_all(others(""));
  if (reached.size() < set_replicas_) {
    set(conditions::primary_healthy, ConditionStatus::no, reasons::no_primary, "waiting for all servers to answer");
    co_return phase::not_done(std::chrono::seconds{5});
  }
  std::vector<const Reached*> writable;
  std::vector<const Reached*> free;  // of any replication
  for (const auto& one : reached) {
    if (!one.facts.read_only) writable.push_back(&one);
    if (!one.facts.replication) free.push_back(&one);
  }
  const Reached* chosen = writable.size() == 1 ? writable.front() : nullptr;
  if (writable.size() > 1) {
    for (auto& one : reached) {
      if (one.facts.read_only) continue;
      auto fenced = co_await one.session->set_read_only(true);
      take(std::move(fenced), "making " + one.server->name + " read-only");
    }
    set(conditions::primary_healthy, ConditionStatus::no, reasons::no_primary, "more than one server was writable");
    throw PassError(PassError::Kind::fatal,
                    "more than one server was writable, all are read-only now: " + names_of(writable));
  }
  if (chosen == nullptr) {
    for (const auto* one : free)
      if (chosen == nullptr || has_more(one->facts.has(), chosen->facts.has())) chosen = one;
    const bool is_behind = chosen != nullptr && std::ranges::any_of(reached, [&](const Reached& other) {
                             return has_more(other.facts.has(), chosen->facts.has());
                           });
    if (chosen == nullptr || is_behind) {
      set(conditions::primary_healthy, ConditionStatus::no, reasons::no_primary, "no server has all transactions");
      throw PassError(PassError::Kind::fatal, chosen == nullptr ? "no primary: every server is the replica of another"
                                                                : "no primary: no server has all transactions");
    }
  }
  context_.log().info("primary elected", {{"pod", chosen->server->name}});
  // Written before it becomes writable.
  cluster_.status["primary"] = chosen->server->name;
  services_.prober.poke(cluster_.object.key());
  co_return phase::not_done(phase::least_requeue_delay);
}

/// By its own account, not by what the probes say.
bool Pass::follows(const Facts& replica, const std::string& address) {
  const auto& replication = replica.replication;
  return replication && replication->host == address && replication->runs() && replication->sql_error == 0;
}

bool Pass::needs_attention(const ServerView& server) const {
  const auto& sample = server.health.sample;
  if (server.health.verdict != Verdict::read_only) return true;
  const auto primary = ordinal_of(owner_.name, cluster_.primary()).value_or(0);
  return sample.io_running != true || sample.sql_running != true ||
         sample.master_server_id != first_server_id + static_cast<std::uint32_t>(primary);
}

/// Corrects by SQL what the probes show as wrong.
Awaitable<> Pass::maintain() {
  const auto primary_name = cluster_.primary();
  const auto* primary = find(primary_name);
  if (primary == nullptr) co_return;
  if (!co_await maintain_primary(*primary)) co_return;
  co_await maintain_semi_sync(*primary);
  std::vector<const ServerView*> suspects;
  for (const auto* server : others(primary_name))
    if (phase_ == phases::creating || needs_attention(*server)) suspects.push_back(server);
  if (suspects.empty()) co_return;
  auto source = co_await reach(*primary);
  if (!source) {
    password_denied_ = password_denied_ || source.error().kind == sql::ErrorKind::denied;
    unhealthy_[primary->name] = source.error().describe();
    co_return;
  }
  auto reached = co_await reach_all(suspects);
  co_await record_absent(*source, suspects, reached);
  for (auto& server : reached) {
    auto users = co_await server.session->ensure_users(replication_password_, exporter_password_);
    if (!users) unhealthy_[server.server->name] = users.error().describe();
    if (users) co_await join(server, source->facts);
  }
}

/// Asks the primary about replicas that do not answer: the operator, or the exporter, may be cut off from one that
/// still receives and acknowledges.
Awaitable<> Pass::record_absent(Reached& primary, const std::vector<const ServerView*>& suspects,
                                const std::vector<Reached>& reached) {
  std::vector<const ServerView*> silent;
  for (const auto* server : suspects)
    if (server->health.unreachable > 0 && std::ranges::find(reached, server, &Reached::server) == reached.end())
      silent.push_back(server);
  if (silent.empty()) co_return;
  // The primary is asked with every probe: it may be lost after each.
  services_.prober.notify_after_probes(cluster_.object.key());
  const auto now = services_.env.clock.now();
  // In this order: who is not connected has nothing beyond what the primary has afterwards.
  auto connected = co_await primary.session->connected_replicas();
  if (!connected) co_return;
  auto facts = co_await primary.session->facts();
  if (!facts) co_return;
  for (const auto* server : silent) {
    if (!connected->contains(first_server_id + static_cast<std::uint32_t>(server->ordinal)))
      services_.prober.set_absent(cluster_.object.key(), server->name, facts->applied, now);
    else
      services_.prober.clear_absent(cluster_.object.key(), server->name);  // back, and it may have more since
  }
}

/// False: there is nothing that replicas could follow.
Awaitable<bool> Pass::maintain_primary(const ServerView& primary) {
  const auto& health = primary.health;
  const bool is_wrong = spec_.read_only ? health.verdict == Verdict::writable : may_heal_;
  if (phase_ != phases::creating && !is_wrong) co_return true;
  auto reached = co_await reach(primary);
  if (!reached) {
    password_denied_ = password_denied_ || reached.error().kind == sql::ErrorKind::denied;
    unhealthy_[primary.name] = reached.error().describe();
    co_return false;
  }
  auto users = co_await reached->session->ensure_users(replication_password_, exporter_password_);
  take(std::move(users), "users on " + primary.name);
  if (reached->facts.read_only == spec_.read_only) co_return true;
  const auto young = std::chrono::duration<double>(services_.options.young).count();
  if (phase_ != phases::creating && reached->facts.uptime < young) co_return false;
  if (phase_ == phases::creating && !spec_.read_only && !co_await may_open_new(*reached)) co_return false;
  auto changed = spec_.read_only ? co_await reached->session->set_read_only(true)
                                 : co_await reached->session->make_writable(semi_sync());
  take(std::move(changed), "changing read_only of " + primary.name);
  context_.log().info("primary's read_only corrected", {{"pod", primary.name}, {"read_only", spec_.read_only}});
  services_.prober.poke(cluster_.object.key());
  co_return true;
}

/// As the spec has it now: it may have changed, or the number of servers.
Awaitable<> Pass::maintain_semi_sync(const ServerView& primary) {
  const auto& sample = primary.health.sample;
  if (primary.health.verdict != Verdict::writable || !sample.semi_sync) co_return;
  auto wanted = semi_sync();
  // While the cluster scales down, commits still wait for its replicas.
  wanted.enabled = wanted.enabled || (spec_.semi_sync && set_replicas_ > 1);
  // Before a replica is attached every commit would wait until the timeout.
  const bool has_replica = std::ranges::any_of(servers_, [&](const ServerView& server) {
    return server.name != primary.name && server.health.sample.io_running == true;
  });
  if (!*sample.semi_sync && !has_replica) co_return;
  const auto timeout = std::chrono::duration<double, std::milli>(wanted.timeout).count();
  const bool is_timeout_wrong = sample.semi_sync_timeout && *sample.semi_sync_timeout != timeout;
  if (*sample.semi_sync == wanted.enabled && !(wanted.enabled && is_timeout_wrong)) co_return;
  auto reached = co_await reach(primary);
  auto changed = reached ? co_await reached->session->set_semi_sync(wanted) : sql::Result<>{reached.error()};
  if (!changed) {
    context_.log().warn("changing semi-synchronous replication failed", {{"error", changed.error().describe()}});
    co_return;
  }
  context_.log().info("semi-synchronous replication corrected", {{"pod", primary.name}, {"enabled", wanted.enabled}});
  services_.prober.poke(cluster_.object.key());
}

/// Makes a server a replica of the primary, unless it has transactions that the primary has not.
Awaitable<> Pass::join(Reached& server, const Facts& primary) {
  const auto& name = server.server->name;
  const auto* source = find(cluster_.primary());
  auto& facts = server.facts;
  if (!facts.read_only) {
    auto fenced = co_await server.session->set_read_only(true);
    if (fenced) fenced = co_await server.session->kill_clients();
    take(std::move(fenced), "making " + name + " read-only");
  }
  if (facts.replication && facts.replication->host == source->address) {
    const auto& replication = *facts.replication;
    if (replication.sql_error != 0 || replication.io_error == position_not_found) {
      unhealthy_[name] = replication.describe_error();
      // With a later number on the primary, only the primary can tell that it never had the replica's last transaction.
      errant_ = errant_ || has_more(facts.applied, primary.applied) || replication.has_diverged;
      co_return;
    }
    if (replication.runs()) co_return;
    auto started = co_await server.session->start_replication();
    if (!started) unhealthy_[name] = started.error().describe();
    co_return;
  }
  // To follow another server deletes the relay log. What a server that was given up has in it may be nowhere else: the
  // primary's numbers may be higher by now, and say nothing. Once applied, the primary itself can tell.
  const bool was_given_up = is_named(kube::string_at(cluster_.status, {"lastFailover", "without"}), name);
  const bool is_unapplied = was_given_up && has_more(facts.has(), facts.applied);
  if (is_unapplied || has_more(facts.has(), primary.applied)) {
    // Its data is not touched: a person decides, or rebuilds it from a backup.
    errant_ = true;
    unhealthy_[name] = "has transactions that the primary " + source->name + " has not: not attached";
    co_return;
  }
  auto attached =
      co_await server.session->replicate_from(source->address, replication_password_, facts.replication.has_value());
  if (!attached) unhealthy_[name] = attached.error().describe();
  services_.prober.poke(cluster_.object.key());
}

}  // namespace hubferry::mysql
