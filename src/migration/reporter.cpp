#include "migration/reporter.hpp"

#include "migration/status_report.hpp"

namespace hubferry::migration {

namespace {

kube::EventRecorderOptions event_options(std::string instance) {
  kube::EventRecorderOptions options;
  options.controller = "hubferry.io/migration";
  options.instance = std::move(instance);
  // A migration has an event for each of nine phases, and for each of twenty failed clusters in at most three phases.
  options.similar_limit = Reporter::most_single_events + 5;
  options.object_burst = 100;
  return options;
}

/// The counts in status.clusters.
constexpr std::array cluster_states{"pending", "migrating", "migrated", "failed", "rolledBack"};

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// From a second to four hours.
std::vector<double> long_buckets() {
  return obs::exponential_buckets(1, 2, 15);
}

}  // namespace

Reporter::Reporter(kube::Api& global, std::string instance, const kube::Env& env)
    : events_(global, event_options(std::move(instance)), env),
      clock_(env.clock),
      migrations_(env.metrics.gauge_family("hubferry_migrations", "Migrations by phase.", {"phase"})),
      entries_(env.metrics.counter_family("hubferry_migration_phase_entries_total", "Phases entered by migrations.",
                                          {"phase"})),
      outcomes_(env.metrics.counter_family("hubferry_migration_phase_outcomes_total",
                                           "Phases left by migrations, by result.", {"phase", "result"})),
      phase_duration_(env.metrics.histogram_family("hubferry_migration_phase_duration_seconds",
                                                   "Time that migrations spent in a phase.", {"phase"},
                                                   long_buckets())),
      duration_(env.metrics.histogram_family("hubferry_migration_duration_seconds",
                                             "Duration of migrations, from admission to the end.", {"result"},
                                             long_buckets())),
      clusters_(env.metrics.counter_family("hubferry_migration_clusters_total",
                                           "Clusters of ended migrations, by result.", {"result"})),
      cut_over_(env.metrics.histogram("hubferry_migration_cluster_cut_over_seconds",
                                      "Time from detaching a cluster until it is Available on the target.",
                                      obs::exponential_buckets(0.125, 2, 15))),
      rollbacks_(env.metrics.counter_family("hubferry_migration_rollbacks_total",
                                            "Rollbacks, by the phase that failed and by result.", {"stage", "result"})),
      cleanup_pending_(env.metrics.gauge_family(
          "hubferry_migration_cleanup_pending",
          "Migrations whose rollback or cleanup cannot be finished now and is retried, by phase.", {"phase"})),
      clusters_now_(env.metrics.gauge_family("hubferry_migration_clusters_current",
                                             "Clusters of migrations that have not ended, by state.", {"state"})) {
  for (const auto* state : cluster_states) clusters_now_.with({state});
  for (const auto* phase : {phases::rollbacking, phases::cleaning}) cleanup_pending_.with({phase});
  for (const auto& phase : phase_table) {
    migrations_.with({phase.name});
    entries_.with({phase.name});
    if (is_terminal(phase.name)) continue;
    for (const auto* result : {"done", "failed"}) {
      outcomes_.with({phase.name, result});
      if (phase.rollback_depth) rollbacks_.with({phase.name, result});
    }
    phase_duration_.with({phase.name});
  }
  for (const auto* result : {"completed", "failed"}) duration_.with({result});
  for (const auto* result : {"migrated", "failed", "rolled_back"}) clusters_.with({result});
}

void Reporter::see(const Migration* old, const Migration* now) {
  const auto count = [&](const Migration* migration, double by) {
    if (migration == nullptr) return;
    const auto phase = migration->phase();
    migrations_.with({phase.empty() ? Phase{phases::pending} : phase}).add(by);
    if (migration->is_cleanup_pending()) cleanup_pending_.with({phase}).add(by);
    if (is_terminal(phase)) return;
    for (const auto* state : cluster_states)
      if (const auto* clusters = kube::find(migration->status, {"clusters", state});
          clusters != nullptr && clusters->is_number())
        clusters_now_.with({state}).add(by * clusters->to_number<double>());
  };
  // A new migration has no phase yet: no transition reports its first.
  if (old == nullptr && now != nullptr && now->phase().empty()) entries_.with({phases::pending}).increment();
  count(old, -1);
  count(now, 1);
}

void Reporter::remember(const Migration& migration, const Phase& phase, WallTime began) {
  messages_[migration.object.key()] = {kube::reference_to(managed_cluster_migrations, migration.object),
                                       condition_message(migration, condition_of(phase)), began};
}

void Reporter::moved(const phase::Transition& transition) {
  const bool failed =
      transition.state.failed || transition.to == phases::failed || transition.to == phases::rollbacking;
  entries_.with({transition.to}).increment();
  // A terminal phase that is left again has neither an outcome nor a duration.
  const bool resumed = transition.edge == phase::EdgeKind::resume;
  if (!resumed) outcomes_.with({transition.from, failed ? "failed" : "done"}).increment();
  if (const auto result = results_.extract(transition.key); result && is_terminal(transition.to))
    count(result.mapped());
  const auto found = messages_.find(transition.key);
  if (found == messages_.end()) return;
  // Not from the State, which counts in whole seconds: most phases of small migrations take less.
  if (!resumed) phase_duration_.with({transition.from}).observe(seconds(clock_.wall_now() - found->second.began));
  auto note = transition.to + " after " + transition.from;
  if (!found->second.message.empty()) note += ": " + found->second.message;
  events_.event(found->second.regarding, failed ? kube::EventType::warning : kube::EventType::normal, transition.to,
                "Migrate", note);
  messages_.erase(found);
}

void Reporter::ends(const Migration& migration, const Ledger& ledger, bool success) {
  results_[migration.object.key()] = {kube::reference_to(managed_cluster_migrations, migration.object),
                                      ledger.success.size(),
                                      ledger.failures.size(),
                                      ledger.rolled_back.size(),
                                      migration.started(),
                                      success};
}

void Reporter::count(const Result& result) {
  clusters_.with({"migrated"}).increment(static_cast<double>(result.migrated));
  clusters_.with({"failed"}).increment(static_cast<double>(result.failed));
  clusters_.with({"rolled_back"}).increment(static_cast<double>(result.rolled_back));
  if (result.started)
    duration_.with({result.success ? "completed" : "failed"}).observe(seconds(clock_.wall_now() - *result.started));
}

void Reporter::forget(const kube::Key& key) {
  messages_.erase(key);
  // Its deletion was asked for: with the finalizer it is gone, and no status can be written any more.
  const auto ended = results_.extract(key);
  if (!ended) return;
  const auto& result = ended.mapped();
  count(result);
  auto note = "deleted: " + count_clusters(result.migrated) + " migrated, " + std::to_string(result.rolled_back) +
              " rolled back";
  events_.event(result.regarding, kube::EventType::normal, result.success ? phases::completed : reasons::cancelled,
                "Migrate", note);
}

void Reporter::clusters_failed(const Migration& migration, const Phase& phase, const Failures& failures) {
  const auto reason = phase + "Failed";
  if (failures.size() > most_single_events) {
    warn(migration, reason, "Migrate",
         count_clusters(failures.size()) + " failed: " + some_failures(failures) + ". All of them are in ConfigMap " +
             kube::to_string(migration.object.key()) + ".");
    return;
  }
  for (const auto& [cluster, failure] : failures)
    warn(migration, reason, "Migrate", "cluster " + cluster + ": " + failure.message);
}

void Reporter::warn(const Migration& migration, std::string_view reason, std::string_view action,
                    std::string_view note) {
  events_.event(kube::reference_to(managed_cluster_migrations, migration.object), kube::EventType::warning, reason,
                action, note);
}

void Reporter::joined(Duration cut_over) {
  cut_over_.observe(seconds(std::max(Duration::zero(), cut_over)));
}

void Reporter::rolled_back(hubagent::Stage stage, bool success) {
  rollbacks_.with({to_string(stage), success ? "done" : "failed"}).increment();
}

}  // namespace hubferry::migration
