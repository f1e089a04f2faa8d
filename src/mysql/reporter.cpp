#include "mysql/reporter.hpp"

#include "hubferry/kube/conditions.hpp"
#include "hubferry/mysql/resource.hpp"

namespace hubferry::mysql {

namespace {

constexpr const char* cluster_phases[] = {phases::creating, phases::running, phases::scaling, phases::upgrading,
                                          phases::failed};

constexpr const char* event_controller = "hubferry.io/mysql";

kube::EventRecorderOptions mysql_event_options(const std::string& instance) {
  kube::EventRecorderOptions options;
  options.controller = event_controller;
  options.instance = instance;
  return options;
}

std::string phase_of(const kube::Object& object) {
  return std::string{object.string_at({"status", "phase"})};
}

std::string reason_of(const kube::Object& object, const char* type) {
  const auto* condition = kube::find_condition(object, type);
  return condition == nullptr ? "" : std::string{kube::string_at(*condition, {"reason"})};
}

bool has_condition(const kube::Object* object, const char* type, std::string_view status) {
  if (object == nullptr) return false;
  const auto* condition = kube::find_condition(*object, type);
  return condition != nullptr && kube::string_at(*condition, {"status"}) == status;
}

double number_at(const kube::Object& object, std::initializer_list<std::string_view> path) {
  const auto* value = object.find(path);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

}  // namespace

Reporter::Reporter(kube::Api& api, const std::string& instance, const kube::Env& env)
    : api_(api),
      instance_(instance),
      env_(env),
      events_(api, mysql_event_options(instance), env),
      phases_(env.metrics.counter_family("mysqlcluster_phase_total", "Phases entered by MySQL clusters.", {"phase"})),
      clusters_(env.metrics.gauge_family("hubferry_mysql_clusters", "MySQL clusters by phase.", {"phase"})),
      without_primary_(env.metrics.gauge("hubferry_mysql_clusters_without_primary",
                                         "MySQL clusters whose condition PrimaryHealthy is False.")),
      unhealthy_replicas_(env.metrics.gauge("hubferry_mysql_clusters_with_unhealthy_replicas",
                                            "MySQL clusters with a replica that does not replicate.")),
      lagging_replicas_(
          env.metrics.gauge("hubferry_mysql_clusters_with_lagging_replicas",
                            "MySQL clusters with a replica that is further behind than its spec allows.")),
      overdue_backups_(env.metrics.gauge("hubferry_mysql_clusters_with_overdue_backup",
                                         "MySQL clusters that missed two scheduled backups in a row.")),
      full_volumes_(env.metrics.gauge("hubferry_mysql_clusters_with_full_volume",
                                      "MySQL clusters with a server whose volume is nearly full.")),
      failover_seconds_(env.metrics.histogram("mysqlcluster_failover_seconds",
                                              "Duration of failovers, from the third failed probe until writes go to "
                                              "the new primary.",
                                              obs::exponential_buckets(0.25, 2, 12))),
      failovers_(env.metrics.counter_family("hubferry_mysql_failovers_total", "Failovers and switchovers, by result.",
                                            {"result"})),
      backup_seconds_(env.metrics.histogram("mysqlbackup_duration_seconds",
                                            "Duration of the successful attempts of backups.",
                                            obs::exponential_buckets(1, 2, 15))),
      backups_(env.metrics.counter_family("hubferry_mysql_backups_total", "Ended backups, by result.", {"result"})) {
  for (const auto* phase : cluster_phases) {
    phases_.with({phase});
    clusters_.with({phase});
  }
  for (const auto* result : {"succeeded", "failed"}) {
    failovers_.with({result});
    backups_.with({result});
  }
}

void Reporter::event(const kube::Resource& kind, const kube::Object& object, kube::EventType type,
                     std::string_view reason, std::string_view action, std::string_view note) {
  events_.event(kube::reference_to(kind, object), type, reason, action, note);
}

async::Awaitable<> Reporter::failover_succeeded(const kube::Object& cluster, std::string id, std::string promoted) {
  json::object regarding{{"apiVersion", mysql_clusters.api_version()},
                         {"kind", mysql_clusters.kind},
                         {"namespace", cluster.ns()},
                         {"name", cluster.name()},
                         {"uid", cluster.uid()}};
  json::object event{
      {"metadata", json::object{{"name", std::string{cluster.name()} + "." + id}, {"namespace", cluster.ns()}}},
      {"eventTime", async::format_micro_time(env_.clock.wall_now())},
      {"reportingController", event_controller},
      {"reportingInstance", instance_.empty() ? event_controller : instance_},
      {"type", "Normal"},
      {"reason", "FailoverSuccess"},
      {"action", "Failover"},
      {"note", "Replica " + promoted + " promoted to Primary"},
      {"regarding", std::move(regarding)}};
  auto written = co_await api_.create(kube::resources::events, std::move(event));
  if (!written && written.error().kind != kube::ErrorKind::already_exists)
    env_.log.warn("event dropped", {{"reason", "FailoverSuccess"}, {"error", written.error().describe()}});
}

void Reporter::see_cluster(const kube::Object* old, const kube::Object* now) {
  const auto count = [&](const kube::Object* cluster, double by) {
    if (cluster == nullptr) return;
    const auto phase = phase_of(*cluster);
    clusters_.with({phase.empty() ? phases::creating : phase}).add(by);
    if (has_condition(cluster, conditions::primary_healthy, "False")) without_primary_.add(by);
    const bool is_lagging = reason_of(*cluster, conditions::replicas_healthy) == reasons::lagging;
    if (is_lagging) lagging_replicas_.add(by);
    if (!is_lagging && has_condition(cluster, conditions::replicas_healthy, "False")) unhealthy_replicas_.add(by);
    if (has_condition(cluster, conditions::backups_on_time, "False")) overdue_backups_.add(by);
    if (has_condition(cluster, conditions::volumes_healthy, "False")) full_volumes_.add(by);
  };
  count(old, -1);
  count(now, 1);
  // A new cluster has no phase yet: no transition reports its first.
  if (old == nullptr && now != nullptr && phase_of(*now).empty()) phases_.with({phases::creating}).increment();
  if (now == nullptr || !has_condition(old, conditions::failover_in_progress, "True") ||
      !has_condition(now, conditions::failover_in_progress, "False"))
    return;
  const auto& condition = *kube::find_condition(*now, conditions::failover_in_progress);
  const std::string message{kube::string_at(condition, {"message"})};
  if (kube::string_at(condition, {"reason"}) == reasons::failover_complete) {
    failovers_.with({"succeeded"}).increment();
    const bool was_planned = number_at(*now, {"status", "lastFailover", "seconds"}) == 0;
    if (!was_planned) failover_seconds_.observe(number_at(*now, {"status", "lastFailover", "seconds"}));
  } else if (kube::string_at(condition, {"reason"}) == reasons::failover_aborted) {
    failovers_.with({"failed"}).increment();
    event(mysql_clusters, *now, kube::EventType::warning, "FailoverFailed", "Failover", message);
  }
}

void Reporter::cluster_moved(const phase::Transition& transition) {
  phases_.with({transition.to}).increment();
}

void Reporter::see_backup(const kube::Object* old, const kube::Object* now) {
  if (old == nullptr || now == nullptr || phase_of(*old) == phase_of(*now)) return;
  const auto phase = phase_of(*now);
  if (phase == phases::succeeded) {
    const auto seconds = number_at(*now, {"status", "durationSeconds"});
    backups_.with({"succeeded"}).increment();
    backup_seconds_.observe(seconds);
    const auto text = async::format_duration(std::chrono::seconds{static_cast<std::int64_t>(seconds)});
    event(mysql_backups, *now, kube::EventType::normal, "BackupCompleted", "Backup",
          "Backup " + std::string{now->name()} + " finished in " + text);
  } else if (phase == phases::failed) {
    backups_.with({"failed"}).increment();
    event(mysql_backups, *now, kube::EventType::warning, "BackupFailed", "Backup",
          now->string_at({"status", "message"}));
  }
}

}  // namespace hubferry::mysql
