// The passwords of a cluster, and how that of root is changed.
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/edit.hpp"
#include "mysql/pass.hpp"

namespace hubferry::mysql {

namespace {

constexpr std::size_t password_length = 16;
/// Enough for a replica that keeps up; one that does not is waited for in the next pass, which must not wait long.
constexpr Duration apply_timeout = std::chrono::seconds{2};

std::optional<obs::Secret> secret_value(const kube::Object& secret, const std::string& key) {
  const auto decoded = kube::decode_base64(secret.string_at({"data", key}));
  if (!decoded || decoded->empty()) return std::nullopt;
  return obs::Secret{*decoded};
}

}  // namespace

Awaitable<> Pass::ensure_secrets() {
  const kube::Key internal{owner_.ns, internal_secret_name(owner_.name)};
  auto found = co_await services_.api.get(kube::resources::secrets, internal);
  if (!found && found.error().kind != kube::ErrorKind::not_found) take(found, "Secret " + internal.name);
  if (!found) {
    auto made = co_await ensure(kube::resources::secrets,
                                wanted_secret(owner_, internal.name,
                                              {{"replication", generate_password(password_length)},
                                               {"exporter", generate_password(password_length)}}),
                                nullptr);
    found = made;
  }
  replication_password_ = secret_value(*found, "replication").value_or(obs::Secret{});
  exporter_password_ = secret_value(*found, "exporter").value_or(obs::Secret{});
  if (replication_password_.empty() || exporter_password_.empty())
    throw PassError(PassError::Kind::retry, "Secret " + internal.name + " lacks a key");
  co_await ensure_root_secret();
}

/// Of a Secret of this namespace, if it is there and has one.
Awaitable<std::optional<obs::Secret>> Pass::read_password(std::string secret) {
  const kube::Key key{owner_.ns, std::move(secret)};
  auto found = co_await services_.api.get(kube::resources::secrets, key);
  if (!found && found.error().kind != kube::ErrorKind::not_found) take(found, "Secret " + key.name);
  co_return found ? secret_value(*found, names::password_key) : std::nullopt;
}

/// By the primary.
Awaitable<bool> Pass::is_accepted(obs::Secret password) {
  const auto primary = view_of(ordinal_of(owner_.name, cluster_.primary()).value_or(0));
  sql::Credentials credentials{"root", std::move(password)};
  auto connection = co_await connect(primary, std::move(credentials));
  co_return connection.has_value();
}

/// By the servers; empty: nobody says.
std::string Pass::root_secret_in_use() const {
  if (set_) return root_secret_of(*set_);
  const auto pod = any_pod();
  return pod == nullptr ? "" : root_secret_of(pod->find({"spec", "containers"}));
}

Awaitable<> Pass::ensure_root_secret() {
  const auto reference = referenced_secret(spec_.root_password, owner_.ns);
  if (!reference && is_reference(spec_.root_password))
    throw PassError(PassError::Kind::retry,
                    "spec.rootPassword names no Secret, and none is known that the servers use");
  root_secret_ = reference.value_or(root_secret_name(owner_.name));
  const kube::Key key{owner_.ns, root_secret_};
  auto found = co_await services_.api.get(kube::resources::secrets, key);
  if (!found && found.error().kind != kube::ErrorKind::not_found) take(found, "Secret " + key.name);
  const auto present = found ? secret_value(*found, names::password_key) : std::nullopt;
  if (!present && (found || reference)) {
    const auto why = "Secret " + key.name + (found ? " has no key 'password'" : " of spec.rootPassword does not exist");
    keep_in_force({SpecProblem::Field::root_password, why});
    // It is the one that the servers use.
    if (referenced_secret(spec_.root_password, owner_.ns) == root_secret_) throw PassError(PassError::Kind::retry, why);
    co_return co_await ensure_root_secret();
  }
  // Another Secret than the servers have used so far.
  const auto used = cluster_.primary().empty() ? "" : root_secret_in_use();
  std::optional<obs::Secret> current;
  if (!used.empty() && used != root_secret_) current = co_await read_password(used);
  if (present && current && !(*present == *current)) {
    const bool accepted = co_await is_accepted(*present);
    // Servers may have the other one: those that lag, or all, if the primary does not answer.
    other_password_ = accepted ? *current : *present;
    if (!accepted) {
      const auto why = "Secret " + key.name + " has another password than Secret " + used + ", which the servers have";
      keep_in_force({SpecProblem::Field::root_password, why});
      co_return co_await ensure_root_secret();
    }
  }
  if (!found) {
    const bool generated = spec_.root_password.empty() && !current;
    // Another password would only look like theirs.
    if (generated && co_await has_claims())
      throw PassError(PassError::Kind::retry, "Secret " + key.name +
                                                  " does not exist, and there are volumes with its password: create it "
                                                  "with root's, or delete the volumes");
    const auto password = current ? *current : generated ? generate_password(password_length) : spec_.root_password;
    auto wanted = wanted_secret(owner_, key.name, {{names::password_key, password}});
    // With the cluster's volumes its password is kept too: the data is worth nothing without it.
    if (spec_.when_deleted == VolumePolicy::remove)
      if (auto owned = kube::set_owner(wanted, mysql_clusters, cluster_.object); !owned)
        throw PassError(PassError::Kind::retry, owned.error().describe());
    auto made = co_await services_.api.create(kube::resources::secrets, std::move(wanted));
    root_password_ = password;
    auto secret = take(std::move(made), "Secret " + key.name);
    if (current && !spec_.root_password.empty()) co_await change_root_password(std::move(secret), spec_.root_password);
    if (!generated) co_return;
    set(conditions::root_password_generated, ConditionStatus::yes, "SecretGenerated", "generated Secret " + key.name);
    services_.reporter.event(mysql_clusters, cluster_.object, kube::EventType::normal, "SecretGenerated", "Reconcile",
                             "Generated new root password Secret/" + key.name);
    co_return;
  }
  root_password_ = *present;
  // Also if a predecessor died before it could say so.
  if (spec_.root_password.empty() && found->label(names::cluster_label) == owner_.name)
    set(conditions::root_password_generated, ConditionStatus::yes, "SecretGenerated", "generated Secret " + key.name);
  const bool is_plain = !spec_.root_password.empty() && !reference;
  const obs::Secret wanted = is_plain ? spec_.root_password : *present;
  // Another Secret is the user's, or that of another cluster which may be changing it.
  if (root_secret_ == root_secret_name(owner_.name)) co_await change_root_password(*found, wanted);
}

/// In the servers first: images read the Secret only when they initialize an empty data directory. As long as that is
/// not possible the old password stays in force, and so does everything else, failover included.
///
/// While a change is under way a server may have either password. So the Secret has both, from before the first server
/// is changed until all accept the same one:
///
///   password -> password and pendingPassword -> the pending one is the password
///                           \-> password and revokedPassword -> the previous password, on all servers again
///
/// A revoked change is taken back to the end, whatever the spec says by then: a replica that lags may have received
/// several changes, and which password it accepts does not tell how many of them it has applied. So each must reach the
/// primary's position after the change, which is in the Secret too: a newer one in each pass would never be reached by
/// a replica that is always a little behind.
Awaitable<> Pass::change_root_password(kube::Object secret, obs::Secret wanted) {
  const auto pending = secret_value(secret, names::pending_password_key);
  const auto revoked = secret_value(secret, names::revoked_password_key);
  const bool is_new = !pending && !revoked;
  if (is_new && wanted == root_password_) co_return;
  const bool is_revoked = revoked || (pending && !(*pending == wanted));
  const obs::Secret target = is_revoked ? root_password_ : wanted;
  const obs::Secret other = revoked ? *revoked : pending.value_or(wanted);
  other_password_ = other;
  std::vector<ServerView> servers;
  auto why = co_await find_servers_to_change(servers, is_new);
  if (why.empty() && !servers.empty()) {
    SecretData both{{is_revoked ? names::revoked_password_key : names::pending_password_key, other}};
    // That of a change which is revoked now says nothing about its reversal.
    const bool has_begun = is_revoked ? revoked.has_value() : pending.has_value();
    const auto kept = secret_value(secret, names::change_position_key);
    const std::string position = has_begun && kept ? kept->reveal() : "";
    secret = co_await write_root_secret(secret, both, position);
    why = co_await set_root_password(servers, target, secret, both);
  }
  if (!why.empty()) {
    const std::string what = is_revoked ? "an unfinished change of spec.rootPassword is not taken back yet, "
                                        : "spec.rootPassword is not changed yet, ";
    pending_ = what + why;
    co_return;
  }
  SecretData one{{names::password_key, target}};
  secret = co_await write_root_secret(secret, std::move(one), "");
  other_password_ = is_revoked ? other : root_password_;
  root_password_ = target;
  if (!(wanted == target)) co_await change_root_password(std::move(secret), std::move(wanted));
}

/// Writes these keys, and the position of the change. Those of a change that are not given are removed.
Awaitable<kube::Object> Pass::write_root_secret(kube::Object secret, SecretData wanted, std::string position) {
  if (!position.empty()) wanted.emplace_back(names::change_position_key, obs::Secret{position});
  kube::Mutation mutate = [&](json::object& object) {
    auto& data = kube::object_in(object, "data");
    const json::object before = data;
    for (const auto* key : {names::pending_password_key, names::revoked_password_key, names::change_position_key})
      data.erase(key);
    for (const auto& [key, value] : wanted) data[key] = kube::encode_base64(value.reveal());
    return data != before;
  };
  kube::EditOptions options;
  auto written =
      co_await kube::edit(services_.api, kube::resources::secrets, std::move(secret), std::move(mutate), options);
  co_return take(std::move(written), "Secret " + root_secret_);
}

/// Of this cluster, or of an earlier one of this name that kept them.
Awaitable<bool> Pass::has_claims() {
  bool found = false;
  services_.claims->for_each([&](const kube::Key& key, const ObjectCache::Pointer& claim) {
    found = found || (key.ns == owner_.ns && claim->label(names::cluster_label) == owner_.name);
  });
  // Also those without the label, and those that the cache does not have yet.
  for (std::size_t ordinal = 0; !found && ordinal < spec_.replicas; ++ordinal) {
    const kube::Key key{owner_.ns, claim_name(owner_.name, ordinal)};
    auto claim = co_await services_.api.get(kinds::persistent_volume_claims, key);
    if (!claim && claim.error().kind != kube::ErrorKind::not_found) take(claim, "PersistentVolumeClaim " + key.name);
    found = claim.has_value();
  }
  co_return found;
}

/// All servers, the primary first; none, if there are neither servers nor volumes yet. A new change begins only when
/// each can be reached and replicates: it would be left half done. The result is why it has to wait.
Awaitable<std::string> Pass::find_servers_to_change(std::vector<ServerView>& servers, bool is_new) {
  if (!set_) {
    // Volumes that were kept have the password of the Secret, which nobody else knows: their servers start with it.
    if (cluster_.primary().empty() && is_new && !co_await has_claims()) co_return "";
    co_return "StatefulSet " + owner_.name + " does not exist";
  }
  if (cluster_.failover()) co_return "a failover is in progress";
  if (cluster_.primary().empty()) co_return "there is no primary yet";
  const auto first = ordinal_of(owner_.name, cluster_.primary()).value_or(0);
  servers.push_back(view_of(first));
  for (std::size_t ordinal = 0; ordinal < set_replicas_; ++ordinal)
    if (ordinal != first) servers.push_back(view_of(ordinal));
  if (!is_new) co_return "";
  const auto& primary = servers.front();
  for (const auto& server : servers) {
    auto reached = co_await reach(server);
    if (!reached) co_return "waits for " + server.name + ": " + reached.error().describe();
    if (&server == &primary) {
      if (auto why = co_await reason_not_to_write(*reached, servers); !why.empty()) co_return why;
      continue;
    }
    if (!follows(reached->facts, primary.address)) co_return "waits for " + server.name + ", which does not replicate";
  }
  co_return "";
}

/// Empty: the primary may be written to. One that crashed may lack what a replica acknowledged: with new transactions
/// it would have the same numbers as that replica, and nobody could tell any more. Until that is decided it is
/// read-only.
Awaitable<std::string> Pass::reason_not_to_write(const Reached& primary, const std::vector<ServerView>& servers) {
  if (!primary.facts.read_only) co_return "";
  const auto& name = primary.server->name;
  if (!spec_.read_only) co_return "waits until " + name + " is writable";
  std::vector<Reached> replicas;
  for (const auto& server : servers) {
    if (server.name == name) continue;
    auto reached = co_await reach(server);
    if (!reached) co_return "waits for " + server.name + ": " + reached.error().describe();
    replicas.push_back(std::move(*reached));
  }
  co_return is_behind(primary, replicas) ? name + " lacks transactions that a replica has" : "";
}

/// Empty: every server accepts it. Otherwise why not: after a failover a server that lacks it would let nobody in.
///
/// The primary is changed if no position says that it was, or if that is lost: after a failover, or a crash.
Awaitable<std::string> Pass::set_root_password(const std::vector<ServerView>& servers, obs::Secret password,
                                               kube::Object& secret, const SecretData& both) {
  const auto& primary = servers.front();
  auto reached = co_await reach(primary);
  if (!reached) co_return "waits for " + primary.name + ": " + reached.error().describe();
  if (auto why = co_await reason_not_to_write(*reached, servers); !why.empty()) co_return why;
  sql::Credentials credentials{"root", password};
  const auto kept = secret_value(secret, names::change_position_key);
  std::string position = kept ? kept->reveal() : "";
  if (!position.empty()) {
    auto accepted = co_await connect(primary, credentials);
    if (!accepted && accepted.error().kind != sql::ErrorKind::denied)
      co_return "waits for " + primary.name + ": " + accepted.error().describe();
    if (!accepted || has_more(parse_gtid(position), reached->facts.applied)) position.clear();
  }
  if (position.empty()) {
    // First: if this process ends after the change, the old position would count for the new one.
    secret = co_await write_root_secret(secret, both, "");
    auto changed = co_await reached->session->set_root_password(password);
    if (!changed) co_return primary.name + ": " + changed.error().describe();
    auto facts = co_await reached->session->facts();
    if (!facts) co_return "waits for " + primary.name + ": " + facts.error().describe();
    position = facts->binlog_text;
    secret = co_await write_root_secret(secret, both, position);
  }
  for (const auto& server : servers) {
    // With either password. One that is revoked may still be ahead of this server, in its relay log.
    auto session = co_await open(server);
    if (!session) co_return "waits for " + server.name + ": " + session.error().describe();
    if (server.name != primary.name) {
      auto applied = co_await session->wait_for(position, apply_timeout);
      if (!applied) co_return "waits for " + server.name + ": " + applied.error().describe();
      if (!*applied) co_return "waits for " + server.name + ", which has not applied it yet";
    }
    auto accepted = co_await connect(server, credentials);
    if (accepted) continue;
    // The primary crashed between changing its own table and writing that to its binary log: it has to do it again.
    if (accepted.error().kind == sql::ErrorKind::denied) secret = co_await write_root_secret(secret, both, "");
    co_return "waits for " + server.name + ": " + accepted.error().describe();
  }
  co_return "";
}

}  // namespace hubferry::mysql
