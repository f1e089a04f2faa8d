#include "migration/status_report.hpp"

#include "hubferry/async/clock.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::migration {

namespace {

// metav1.Condition allows 32 KiB: more than anybody reads.
constexpr std::size_t longest_message = 2048;

json::object* find_in(json::object& status, std::string_view type) {
  for (auto& entry : status["conditions"].as_array())
    if (auto* condition = entry.if_object(); condition != nullptr && kube::string_at(*condition, {"type"}) == type)
      return condition;
  return nullptr;
}

/// What a person can do on the source for clusters that did not come back.
std::string manual_advice(const Migration& migration, const ClusterNames& clusters) {
  if (clusters.empty()) return {};
  using namespace ocm::names;
  return " To roll " + some_names(clusters) + " back by hand, remove the annotations " + migrating_annotation + ", " +
         klusterlet_config_annotation + " and " + disable_auto_import_annotation + " from the ManagedCluster on hub '" +
         migration.from() + "' and set spec.hubAcceptsClient to true.";
}

}  // namespace

void set_condition(Migration& migration, std::string_view type, kube::ConditionStatus status, std::string_view reason,
                   std::string_view message, WallTime now) {
  const kube::Condition condition{std::string{type}, status, std::string{reason},
                                  phase::shortened(message, longest_message), migration.object.generation()};
  if (!kube::set_condition(migration.status, condition, now)) return;
  find_in(migration.status, type)->insert_or_assign("lastUpdateTime", async::format_time(now));
  migration.status["observedGeneration"] = migration.object.generation();
}

std::string condition_message(const Migration& migration, std::string_view type) {
  const auto* condition = kube::find_condition_in_status(migration.status, type);
  return condition == nullptr ? std::string{} : std::string{kube::string_at(*condition, {"message"})};
}

std::string condition_reason(const Migration& migration, std::string_view type) {
  const auto* condition = kube::find_condition_in_status(migration.status, type);
  return condition == nullptr ? std::string{} : std::string{kube::string_at(*condition, {"reason"})};
}

std::string left_behind_text(const Ledger& ledger) {
  const ClusterNames names{ledger.left_behind.begin(), ledger.left_behind.end()};
  return std::string{"left behind, as the annotation "} + names::leave_annotation + " asks: " + some_names(names, 20);
}

void put_counts(Migration& migration, const Ledger& ledger, bool working) {
  const auto rest = ledger.in_flight().size();
  json::array failures;
  for (const auto& [name, failure] : ledger.failures) {
    if (failures.size() == most_failures_shown) break;
    failures.emplace_back(json::object{{"name", name},
                                       {"stage", failure.stage},
                                       {"reason", failure.reason},
                                       {"message", phase::shortened(failure.message, longest_failure_shown)}});
  }
  json::object counts{{"total", ledger.all.size()},
                      {"pending", working ? 0 : rest},
                      {"migrating", working ? rest : 0},
                      {"migrated", ledger.success.size()},
                      {"failed", ledger.failures.size()},
                      {"rolledBack", ledger.rolled_back.size()},
                      {"progress", std::to_string(ledger.success.size()) + "/" + std::to_string(ledger.all.size())}};
  if (!failures.empty()) counts["failures"] = std::move(failures);
  migration.status["clusters"] = std::move(counts);
}

std::string count_clusters(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " cluster" : " clusters");
}

std::string some_names(const ClusterNames& names, std::size_t most) {
  std::string text;
  const auto shown = std::min(most, names.size());
  for (std::size_t index = 0; index < shown; ++index) {
    if (index > 0) text += index + 1 == names.size() ? " and " : ", ";
    text += names[index];
  }
  if (shown < names.size()) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

std::string some_failures(const Failures& failures, std::size_t most) {
  // Thousands often fail for one reason: it is said once, and hides no other one.
  std::vector<std::pair<std::string, ClusterNames>> groups;
  std::map<std::string, std::size_t> group_of;
  for (const auto& [name, failure] : failures) {
    auto message = phase::shortened(failure.message, longest_failure_shown);
    const auto [known, is_new] = group_of.try_emplace(message, groups.size());
    if (is_new) groups.emplace_back(std::move(message), ClusterNames{});
    groups[known->second].second.push_back(name);
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [message, names] : groups) {
    if (most-- == 0) break;
    text += (shown == 0 ? "" : "; ") + some_names(names, 3) + ": " + message;
    shown += names.size();
  }
  if (shown < failures.size()) text += "; and " + std::to_string(failures.size() - shown) + " more";
  return text;
}

std::string common_reason(const Failures& failures) {
  std::string reason;
  for (const auto& [name, failure] : failures) {
    if (!reason.empty() && failure.reason != reason) return reasons::error;
    reason = failure.reason;
  }
  return reason.empty() ? reasons::error : reason;
}

ClusterNames names_of(const Failures& failures) {
  ClusterNames names;
  for (const auto& [name, failure] : failures) names.push_back(name);
  return names;
}

void fail_remaining(const Migration& migration, Ledger& ledger) {
  const auto stage = migration.rollback_stage();
  if (!stage) return;
  const Phase phase{to_string(*stage)};
  const auto message = condition_message(migration, condition_of(phase));
  for (const auto& cluster : ledger.in_flight())
    ledger.fail(cluster, {phase, reasons::error, message.empty() ? "the migration stopped in " + phase : message});
}

const char* const spec_change_message =
    "the hubs or clusters in the spec were changed after the migration had begun: the change is ignored. Create "
    "another "
    "migration for other clusters";

void put_summary(Migration& migration, WallTime now) {
  if (migration.is_spec_changed()) {
    set_condition(migration, conditions::spec_changed, kube::ConditionStatus::yes, reasons::change_ignored,
                  spec_change_message, now);
  } else {
    kube::remove_condition(migration.status, conditions::spec_changed);
  }
  const auto phase = migration.phase();
  if (!is_terminal(phase)) {
    kube::remove_condition(migration.status, conditions::succeeded);
    kube::remove_condition(migration.status, conditions::stalled);
    set_condition(migration, conditions::ready, kube::ConditionStatus::unknown, "Migrating",
                  "the migration has not ended", now);
    return;
  }
  const auto status = read_status(migration.status);
  if (status.has_succeeded()) {
    const auto message =
        count_clusters(static_cast<std::size_t>(status.clusters.migrated)) + " migrated to " + migration.to();
    kube::remove_condition(migration.status, conditions::stalled);
    for (const auto* type : {conditions::ready, conditions::succeeded})
      set_condition(migration, type, kube::ConditionStatus::yes, phase, message, now);
    return;
  }
  const auto* cause = status.cause();
  const std::string reason = cause == nullptr ? reasons::error : cause->reason;
  const std::string message = cause == nullptr ? "the migration failed" : cause->message;
  for (const auto* type : {conditions::ready, conditions::succeeded})
    set_condition(migration, type, kube::ConditionStatus::no, reason, message, now);
  set_condition(migration, conditions::stalled, kube::ConditionStatus::yes, reason, message, now);
}

RollbackVerdict judge_rollback(const Migration& migration, const Ledger& ledger) {
  if (ledger.left_behind.empty()) {
    if (ledger.rolled_back.empty()) return {true, "ResourceRolledBack", "nothing had to be rolled back"};
    return {true, "ResourceRolledBack",
            "back on hub '" + migration.from() + "': " + count_clusters(ledger.rolled_back.size())};
  }
  return {false, reasons::left_behind,
          "the rollback is not complete: " + left_behind_text(ledger) + "." +
              manual_advice(migration, ledger.to_roll_back()) + " To retry the rollback, set the annotation " +
              names::request_annotation + ": " + names::rollback_request + " on the migration."};
}

}  // namespace hubferry::migration
