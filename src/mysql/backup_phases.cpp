#include <algorithm>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "mysql/backup_job.hpp"
#include "mysql/children.hpp"
#include "mysql/cluster_phases.hpp"

namespace hubferry::mysql {

namespace {

using BackupHandler = phase::Handler<Services, Backup>;

// After the first, second and third failed attempt; the fourth is the last.
constexpr Duration pauses[] = {std::chrono::minutes{1}, std::chrono::minutes{2}, std::chrono::minutes{4}};
constexpr Duration backup_resync = std::chrono::seconds{30};
constexpr Duration longest_pause = pauses[std::size(pauses) - 1];  // whatever the status says
constexpr std::string_view waiting_prefix = "waiting for ";

ReconcileState refuse(Backup& backup, const std::string& why) {
  backup.status["message"] = why;
  return phase::failed(why);
}

std::int64_t attempt_of(const Backup& backup) {
  const auto* value = backup.status.if_contains("attempt");
  return value != nullptr && value->is_int64() ? std::max<std::int64_t>(1, value->get_int64()) : 1;
}

std::string status_text(const Backup& backup, std::string_view field) {
  return std::string{kube::string_at(backup.status, {field})};
}

bool keeps_up(const Health& health, Duration lag_limit) {
  const auto& sample = health.sample;
  return health.verdict == Verdict::read_only && sample.io_running == true && sample.sql_running == true &&
         sample.lag && *sample.lag <= std::chrono::duration<double>(lag_limit).count();
}

/// The first replica that keeps up, else the primary.
std::string choose_source(const Services& services, const kube::Object& cluster) {
  const auto spec = read_cluster_spec(cluster.json());
  const std::string primary{cluster.string_at({"status", "primary"})};
  for (std::size_t ordinal = 0; ordinal < spec.replicas; ++ordinal) {
    const auto pod = pod_name(cluster.name(), ordinal);
    if (pod != primary && keeps_up(services.prober.health(cluster.key(), pod), spec.lag_limit)) return pod;
  }
  return primary;
}

Awaitable<ReconcileState> check_backup(phase::Context<Services>& context, Backup& backup, const phase::State&) {
  const auto spec = read_backup_spec(backup.object.json());
  if (spec.cluster.empty()) {
    backup.status["message"] = "waiting for spec.cluster";
    co_return phase::not_done(backup_resync);
  }
  const std::string ns{backup.object.ns()};
  auto cluster = co_await context->api.get(mysql_clusters, {ns, spec.cluster});
  if (!cluster && cluster.error().kind == kube::ErrorKind::not_found)
    co_return refuse(backup, "MySQLCluster " + spec.cluster + " does not exist");
  if (!cluster) co_return phase::failed(phase::Error{cluster.error()});
  if (cluster->string_at({"status", "phase"}) != phases::running)
    co_return refuse(backup, "MySQLCluster " + spec.cluster + " is not Running");
  if (spec.claim.empty()) co_return refuse(backup, "spec.storage.claimName is missing");
  auto claim = co_await context->api.get(kinds::persistent_volume_claims, {ns, spec.claim});
  if (!claim && claim.error().kind == kube::ErrorKind::not_found)
    co_return refuse(backup, "PersistentVolumeClaim " + spec.claim + " does not exist");
  if (!claim) co_return phase::failed(phase::Error{claim.error()});
  const auto source = spec.source.empty() ? choose_source(context.services(), *cluster) : spec.source;
  if (source.empty() || !ordinal_of(spec.cluster, source))
    co_return refuse(backup, "spec.source " + source + " is not a pod of MySQLCluster " + spec.cluster);
  backup.status["source"] = source;
  backup.status["attempt"] = 1;
  backup.status["startTime"] = async::format_time(context.clock().wall_now());
  backup.status.erase("message");
  co_return phase::done();
}

Awaitable<std::vector<kube::Object>> pods_of(kube::Api& api, std::string ns, std::string job) {
  kube::ListOptions options;
  options.ns = ns;
  options.label_selector = "job-name=" + job;
  auto pods = co_await api.list_all(kinds::pods, options);
  co_return pods ? std::move(*pods) : std::vector<kube::Object>{};
}

/// A text of the first container that has one there.
std::string of_container(const kube::Object& pod, std::initializer_list<std::string_view> path) {
  const auto* list = pod.find({"status", "containerStatuses"});
  if (list == nullptr || !list->is_array()) return {};
  for (const auto& container : list->get_array())
    if (const auto* text = kube::find(container, path); text != nullptr && text->is_string())
      return phase::shortened(std::string_view{text->get_string()}, 500);
  return {};
}

/// What the attempt's pod said last.
Awaitable<std::string> failure_of(kube::Api& api, std::string ns, std::string job) {
  for (const auto& pod : co_await pods_of(api, std::move(ns), std::move(job)))
    if (auto text = of_container(pod, {"state", "terminated", "message"}); !text.empty()) co_return text;
  co_return "";
}

/// Why the attempt's pod does not start; empty: it does.
Awaitable<std::string> delay_of(kube::Api& api, std::string ns, std::string job) {
  for (const auto& pod : co_await pods_of(api, std::move(ns), std::move(job))) {
    auto why = of_container(pod, {"state", "waiting", "reason"});
    if (const auto* scheduled = kube::find_condition(pod, "PodScheduled");
        scheduled != nullptr && kube::string_at(*scheduled, {"status"}) == "False")
      why = phase::shortened(std::string{kube::string_at(*scheduled, {"reason"})} + ": " +
                                 std::string{kube::string_at(*scheduled, {"message"})},
                             500);
    if (!why.empty()) co_return std::string{waiting_prefix} + "pod " + std::string{pod.name()} + ": " + why;
  }
  co_return "";
}

ReconcileState try_again(phase::Context<Services>& context, Backup& backup, const std::string& why) {
  const auto attempt = attempt_of(backup);
  const auto most = static_cast<std::int64_t>(std::size(pauses)) + 1;
  const auto text = "attempt " + std::to_string(attempt) + " of " + std::to_string(most) + " failed" +
                    (why.empty() ? "" : ": " + why);
  backup.status["message"] = text;
  if (attempt >= most) return phase::failed(text);
  const auto pause = pauses[attempt - 1];
  backup.status["attempt"] = attempt + 1;
  backup.status["nextAttemptTime"] = async::format_micro_time(context.clock().wall_now() + pause);
  backup.status.erase("job");
  // Chosen anew: this one may be the reason.
  if (read_backup_spec(backup.object.json()).source.empty()) backup.status.erase("source");
  return phase::not_done(pause);
}

Awaitable<kube::Result<kube::Object>> create_job(phase::Context<Services>& context, Backup& backup, std::string name,
                                                 kube::Object cluster) {
  const auto spec = read_backup_spec(backup.object.json());
  BackupJob job;
  job.name = std::move(name);
  job.ns = backup.object.ns();
  job.backup = backup.object.name();
  job.uid = backup.object.uid();
  job.cluster = spec.cluster;
  job.claim = spec.claim;
  job.keep = spec.keep;
  job.source = status_text(backup, "source");
  if (job.source.empty()) {
    job.source = choose_source(context.services(), cluster);
    backup.status["source"] = job.source;
  }
  // What the servers have: the spec may ask for what they do not have yet, or never get.
  auto set = co_await context->api.get(kinds::stateful_sets, {job.ns, spec.cluster});
  if (!set) co_return set.error();
  job.image = image_of(set->find({"spec", "template", "spec", "containers"}));
  job.root_secret = root_secret_of(*set);
  auto pod = co_await context->api.get(kinds::pods, {job.ns, job.source});
  if (!pod) co_return pod.error();
  job.source_address = pod->string_at({"status", "podIP"});
  auto object = wanted_job(job);
  if (auto owned = kube::set_owner(object, mysql_backups, backup.object); !owned) co_return owned.error();
  auto made = co_await context->api.create(kinds::jobs, std::move(object));
  co_return made;
}

Awaitable<ReconcileState> run_backup(phase::Context<Services>& context, Backup& backup, const phase::State&) {
  const auto now = context.clock().wall_now();
  if (const auto next = time_of(status_text(backup, "nextAttemptTime"), now); next > now)
    co_return phase::not_done(std::min<Duration>(next - now, longest_pause));
  const auto name = std::string{backup.object.name()} + "-" + std::to_string(attempt_of(backup));
  const kube::Key key{std::string{backup.object.ns()}, name};
  auto job = co_await context->api.get(kinds::jobs, key);
  if (!job && job.error().kind != kube::ErrorKind::not_found) co_return phase::failed(phase::Error{job.error()});
  if (!job && status_text(backup, "job") == name) co_return try_again(context, backup, "its Job was deleted");
  if (job && !kube::is_owned_by(*job, backup.object.uid()))
    co_return try_again(context, backup, "Job " + name + " belongs to somebody else");
  if (!job) {
    const kube::Key owner{key.ns, read_backup_spec(backup.object.json()).cluster};
    auto cluster = co_await context->api.get(mysql_clusters, owner);
    if (!cluster && kube::is_transient(cluster.error().kind)) co_return phase::failed(phase::Error{cluster.error()});
    if (!cluster) co_return try_again(context, backup, cluster.error().describe());
    const auto what = "MySQLCluster " + owner.name;
    const auto is_in = cluster->string_at({"status", "phase"});
    // They end, and the servers have two versions until then, or become fewer.
    if (is_in == phases::upgrading || is_in == phases::scaling) {
      backup.status["message"] = std::string{waiting_prefix} + what + ", which is " + std::string{is_in};
      co_return phase::not_done(backup_resync);
    }
    if (is_in != phases::running) co_return try_again(context, backup, what + " is " + std::string{is_in});
    job = co_await create_job(context, backup, name, *cluster);
    const bool is_there = !job && job.error().kind == kube::ErrorKind::already_exists;
    if (!job && !is_there && kube::is_transient(job.error().kind)) co_return phase::failed(phase::Error{job.error()});
    if (!job && !is_there) co_return try_again(context, backup, job.error().describe());
    backup.status["job"] = name;
    co_return phase::not_done(backup_resync);
  }
  backup.status["job"] = name;
  switch (outcome_of(*job)) {
    case JobOutcome::running: {
      const auto why = co_await delay_of(context->api, key.ns, name);
      if (!why.empty()) backup.status["message"] = why;
      if (why.empty() && status_text(backup, "message").starts_with(waiting_prefix)) backup.status.erase("message");
      co_return phase::not_done(backup_resync);
    }
    case JobOutcome::failed: {
      const auto why = co_await failure_of(context->api, key.ns, name);
      co_return try_again(context, backup, why);
    }
    case JobOutcome::succeeded:
      break;
  }
  const auto text = [&](std::initializer_list<std::string_view> path) { return std::string{job->string_at(path)}; };
  const auto begun =
      text({"status", "startTime"}).empty() ? text({"metadata", "creationTimestamp"}) : text({"status", "startTime"});
  const auto ended = text({"status", "completionTime"});
  const auto end = ended.empty() ? now : async::parse_time(ended);
  const auto start = begun.empty() ? end : async::parse_time(begun);
  backup.status["completionTime"] = async::format_time(end);
  backup.status["durationSeconds"] = std::chrono::duration_cast<std::chrono::seconds>(end - start).count();
  backup.status.erase("message");
  co_return phase::done();
}

}  // namespace

/// Pending -> Running -> Succeeded, or Failed: at once if it cannot start, else after four attempts.
void declare(phase::DefaultDefinition<Services, Backup>& definition) {
  definition.initial = phases::pending;
  definition.terminals = {{phases::succeeded, phase::Ending::success}, {phases::failed, phase::Ending::failure}};
  definition.normal = {{phases::pending, phases::running}, {phases::running, phases::succeeded}};
  definition.error = {{phases::pending, phases::failed}, {phases::running, phases::failed}};
  definition.handlers.emplace(phases::pending, BackupHandler::leaf({.description = "can it start?"}, check_backup));
  definition.handlers.emplace(phases::running,
                              BackupHandler::leaf({.description = "run a Job, up to four times"}, run_backup));
}

}  // namespace hubferry::mysql
