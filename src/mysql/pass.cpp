#include "mysql/pass.hpp"

#include <algorithm>

#include "hubferry/kube/edit.hpp"

namespace hubferry::mysql {

namespace {

constexpr Duration first_retry = std::chrono::seconds{2};
constexpr Duration most_retry = std::chrono::minutes{2};

std::int64_t integer_in(const json::object& from, std::string_view field) {
  const auto* value = from.if_contains(field);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

/// Of the condition BackupRunning while it runs.
std::string backup_message(const std::string& backup) {
  return "backup " + backup;
}

bool is_pod_ready(const kube::Object& pod) {
  return kube::is_condition_true(pod, "Ready");
}

/// The reason why a container waits, if one does.
std::string waiting_reason(const kube::Object& pod) {
  const auto* list = pod.find({"status", "containerStatuses"});
  if (list == nullptr || !list->is_array()) return {};
  for (const auto& container : list->get_array())
    if (const auto* reason = kube::find(container, {"state", "waiting", "reason"});
        reason != nullptr && reason->is_string())
      return std::string{reason->get_string()};
  return {};
}

}  // namespace

Pass::Pass(ClusterContext& context, Cluster& cluster)
    : context_(context),
      cluster_(cluster),
      services_(context.services()),
      spec_(read_cluster_spec(cluster.object.json())),
      owner_{cluster.name(), cluster.ns()},
      phase_(context.phase()) {}

Awaitable<ReconcileState> Pass::run() {
  std::string problem;
  try {
    auto result = co_await steps();
    cluster_.status.erase("retryCount");
    cluster_.status.erase("message");
    cluster_.status["observedGeneration"] = cluster_.object.generation();
    co_return result;
  } catch (const PassError& error) {
    if (error.is_fatal()) {
      cluster_.status["message"] = error.what();
      cluster_.status["observedGeneration"] = cluster_.object.generation();
      warn("ReconcileFailed", error.what());
      co_return phase::failed(error.what());
    }
    problem = error.what();
  }
  const auto retries = integer_in(cluster_.status, "retryCount") + 1;
  cluster_.status["retryCount"] = retries;
  cluster_.status["message"] = problem;
  context_.log().warn("reconcile failed, retrying", {{"error", problem}, {"retries", retries}});
  auto pause = first_retry;
  for (std::int64_t at = 1; at < retries && pause < most_retry; ++at) pause *= 2;
  co_return phase::not_done(std::min(pause, most_retry));
}

Awaitable<ReconcileState> Pass::steps() {
  if (!cluster_.object.annotation(names::reconcile_annotation).empty())
    co_await remove_annotation(names::reconcile_annotation);
  co_await read_give_up();
  given_up_ = cluster_.given_up();
  std::optional<PassError> problem;
  co_await attempt(find_stateful_set(), problem);
  co_await attempt(check_spec(), problem);
  co_await attempt(ensure_secrets(), problem);
  if (problem && root_password_.empty()) throw *problem;  // no server lets us in
  co_await attempt(check_restore_claim(), problem);
  report_spec();
  co_await attempt(ensure_services(), problem);
  if (lacks_restore_claim_ && cluster_.primary().empty()) co_return phase::not_done(services_.options.resync);
  // Pods of a set with the new hash would count as having what its ConfigMap did not get: then it stays as it is.
  if (!problem) co_await attempt(ensure_stateful_set(), problem);
  observe();
  if (auto result = co_await replication()) {
    report();
    co_return std::move(*result);
  }
  const auto* healthy = kube::find_condition_in_status(cluster_.status, conditions::primary_healthy);
  if (!given_up_.empty() && healthy != nullptr && kube::string_at(*healthy, {"status"}) == "True")
    co_await forget_given_up();
  co_await attempt(ensure_all_endpoints(), problem);
  // Also if something is refused: that may last for weeks.
  if (phase_ != phases::creating) co_await attempt(schedule_backups(), problem);
  co_await check_volumes();
  if (problem) {
    report();
    throw *problem;
  }
  if (phase_ == phases::scaling) {
    if (auto result = co_await prepare_scale_down()) {
      report();
      co_return std::move(*result);
    }
    co_await remove_claims();
  }
  if (auto result = co_await restart_outdated()) {
    report();
    co_return std::move(*result);
  }
  report();
  co_return next_phase();
}

/// An object that the API server refuses must not keep a cluster that runs from its failover: it is reported after
/// that.
Awaitable<> Pass::attempt(Awaitable<> step, std::optional<PassError>& problem) {
  try {
    co_await std::move(step);
  } catch (const PassError& error) {
    if (error.is_fatal() || cluster_.primary().empty()) throw;
    if (!problem) problem = error;
  }
}

Awaitable<> Pass::remove_annotation(const char* annotation) {
  json::object patch{{"metadata", json::object{{"annotations", json::object{{annotation, nullptr}}}}}};
  auto patched = co_await services_.api.merge_patch(mysql_clusters, cluster_.object.key(), std::move(patch));
  // Our status write would conflict with the object as it was read: the next pass begins with the new one.
  take(std::move(patched), "removing the annotation " + std::string{annotation});
}

ServerView Pass::view_of(std::size_t ordinal) const {
  ServerView server;
  server.name = pod_name(owner_.name, ordinal);
  server.ordinal = ordinal;
  server.health = services_.prober.health(cluster_.object.key(), server.name);
  const auto pod = services_.pods->get({owner_.ns, server.name});
  if (pod == nullptr || pod->label(names::cluster_label) != owner_.name) return server;
  server.exists = true;
  server.uid = pod->uid();
  server.address = pod->string_at({"status", "podIP"});
  server.is_being_deleted = pod->is_being_deleted();
  server.ready = is_pod_ready(*pod) && !server.is_being_deleted;
  server.revision = pod->label("controller-revision-hash");
  server.waiting = waiting_reason(*pod);
  return server;
}

void Pass::observe() {
  std::vector<ProbeTarget> targets;
  const auto key = cluster_.object.key();
  for (std::size_t ordinal = 0;; ++ordinal) {
    const auto pod = services_.pods->get({owner_.ns, pod_name(owner_.name, ordinal)});
    if (pod == nullptr && ordinal >= set_replicas_) break;
    const auto& server = servers_.emplace_back(view_of(ordinal));
    targets.push_back({server.name, server.address, first_server_id + static_cast<std::uint32_t>(ordinal)});
  }
  services_.prober.watch(key, std::move(targets), cluster_.primary(), spec_.lag_limit);
  for (auto& server : servers_) server.health = services_.prober.health(key, server.name);
}

bool Pass::all_ready() const {
  return servers_.size() == set_replicas_ &&
         std::ranges::all_of(servers_, [](const ServerView& server) { return server.ready; });
}

bool Pass::all_replicating() const {
  const auto primary = cluster_.primary();
  return unhealthy_.empty() && std::ranges::all_of(servers_, [&](const ServerView& server) {
           if (server.name == primary) return server.health.verdict == Verdict::writable || spec_.read_only;
           return server.health.verdict == Verdict::read_only && !needs_attention(server);
         });
}

void Pass::set(const char* condition, ConditionStatus status, const char* reason, std::string_view message) {
  cluster_.set_condition(condition, status, reason, message, services_.env.clock.wall_now());
}

void Pass::warn(std::string_view reason, std::string_view note) {
  services_.reporter.event(mysql_clusters, cluster_.object, kube::EventType::warning, reason, "Reconcile", note);
}

void Pass::report() {
  const auto primary = cluster_.primary();
  std::int64_t ready = 0;
  json::array list;
  for (const auto& server : servers_) {
    ready += server.ready ? 1 : 0;
    const auto* role = server.name == primary ? "primary" : "replica";
    json::object entry{{"name", server.name}, {"role", role}, {"health", to_string(server.health.verdict)}};
    if (const auto found = unhealthy_.find(server.name); found != unhealthy_.end()) entry["message"] = found->second;
    if (!server.waiting.empty()) entry["message"] = server.waiting;
    list.push_back(std::move(entry));
  }
  cluster_.status["replicas"] = ready;
  cluster_.status["servers"] = std::move(list);
  report_backups();
  report_volumes();
  bool has_unknown = false;  // just started: the next probe will tell
  for (const auto& server : servers_) {
    const bool is_known = server.health.verdict != Verdict::unknown && !server.health.sample.replica_unknown;
    has_unknown = has_unknown || server.health.verdict == Verdict::unknown;
    if (set_replicas_ > 0 && !primary.empty() && server.name != primary && is_known && needs_attention(server))
      unhealthy_.try_emplace(server.name, "not replicating from " + primary);
  }
  const auto limit = std::chrono::duration<double>(spec_.lag_limit).count();
  std::string lagging;
  for (const auto& server : servers_)
    if (const auto& lag = server.health.sample.lag; server.name != primary && lag && *lag > limit)
      lagging += (lagging.empty() ? "" : ", ") + server.name;
  std::string missing;
  for (const auto& [pod, why] : unhealthy_) missing += (missing.empty() ? "" : "; ") + pod + ": " + why;
  const char* reason = password_denied_ ? reasons::password_mismatch
                       : errant_        ? reasons::errant_transactions
                                        : reasons::not_replicating;
  if (!missing.empty()) set(conditions::replicas_healthy, ConditionStatus::no, reason, missing);
  if (missing.empty() && !lagging.empty())
    set(conditions::replicas_healthy, ConditionStatus::no, reasons::lagging,
        lagging + ": more than maxReplicaLagSeconds behind");
  if (missing.empty() && lagging.empty() && !has_unknown && phase_ != phases::creating)
    set(conditions::replicas_healthy, ConditionStatus::yes, reasons::replicating, "all replicas replicate");
}

/// True while any backup of this cluster runs.
void Pass::report_backups() {
  std::string running;
  services_.backups->for_each([&](const kube::Key& key, const ObjectCache::Pointer& backup) {
    if (key.ns != owner_.ns || backup->string_at({"spec", "cluster"}) != owner_.name) return;
    if (backup->string_at({"status", "phase"}) == phases::running && (running.empty() || key.name < running))
      running = key.name;
  });
  if (!running.empty()) {
    set(conditions::backup_running, ConditionStatus::yes, reasons::job_created, backup_message(running));
  } else if (const auto* last = kube::find_condition_in_status(cluster_.status, conditions::backup_running);
             last != nullptr && kube::string_at(*last, {"status"}) == "True") {
    const std::string message{kube::string_at(*last, {"message"})};
    bool has_failed = false;
    services_.backups->for_each([&](const kube::Key& key, const ObjectCache::Pointer& backup) {
      has_failed = has_failed || (key.ns == owner_.ns && backup_message(key.name) == message &&
                                  backup->string_at({"status", "phase"}) == phases::failed);
    });
    if (has_failed)
      set(conditions::backup_running, ConditionStatus::no, reasons::backup_failed, message + " failed");
    else
      set(conditions::backup_running, ConditionStatus::no, reasons::backup_finished, "no backup runs");
  }
}

ReconcileState Pass::next_phase() {
  const auto resync = services_.options.resync;
  if (phase_ == phases::running) {
    const bool other_version =
        set_ &&
        (set_->string_at({"spec", "template", "metadata", "annotations", names::version_annotation}) != spec_.version ||
         image_of(set_->find({"spec", "template", "spec", "containers"})) != image_of(spec_));
    if (other_version) return phase::go_to(phases::upgrading);
    if (set_replicas_ != spec_.replicas) return phase::done();
    return phase::not_done(resync);
  }
  // A primary that is to be scaled away hands over in the phase for it.
  const bool has_replicas =
      set_replicas_ == spec_.replicas || (phase_ == phases::creating && set_replicas_ > spec_.replicas);
  const bool is_settled = has_replicas && all_ready() && (set_replicas_ == 0 || all_replicating());
  if (!is_settled) return phase::not_done(resync);
  if (phase_ == phases::upgrading) {
    if (!is_set_current()) return phase::not_done(phase::least_requeue_delay);
    for (const auto& server : servers_) {
      const auto& reported = server.health.sample.version;
      const bool matches = reported.starts_with(spec_.version) &&
                           (reported.size() == spec_.version.size() ||
                            std::isdigit(static_cast<unsigned char>(reported[spec_.version.size()])) == 0);
      if (!matches || is_outdated(server)) return phase::not_done(resync);
    }
  }
  return phase::done();
}

}  // namespace hubferry::mysql
