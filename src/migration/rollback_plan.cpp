#include "migration/rollback_plan.hpp"

#include "hubferry/ocm/resources.hpp"
#include "migration/status_text.hpp"

namespace hubferry::migration {

namespace {

/// What a person can do on the source for clusters that did not come back.
std::string manual_advice(const Migration& migration, const ClusterNames& clusters) {
  if (clusters.empty()) return {};
  using namespace ocm::names;
  return " To bring " + some_names(clusters) + " back by hand, remove the annotations " + migrating_annotation + ", " +
         klusterlet_config_annotation + " and " + disable_auto_import_annotation + " from the ManagedCluster on hub '" +
         migration.from() + "' and set spec.hubAcceptsClient to true.";
}

}  // namespace

std::map<hubagent::Stage, ClusterNames> plan_rollback(const Migration& migration, const Ledger& ledger,
                                                      const ClusterNames& clusters) {
  std::map<hubagent::Stage, ClusterNames> plan;
  const auto reached = migration.rollback_stage();
  if (!reached) return plan;
  for (const auto& cluster : clusters) {
    auto stage = *reached;
    if (const auto found = ledger.failures.find(cluster); found != ledger.failures.end())
      stage = stage_from(found->second.stage).value_or(*reached);
    plan[stage].push_back(cluster);
  }
  return plan;
}

void fail_all_others(const Migration& migration, Ledger& ledger) {
  const auto stage = migration.rollback_stage();
  if (!stage) return;
  const Phase phase{to_string(*stage)};
  const auto message = condition_message(migration, condition_of(phase));
  for (const auto& cluster : ledger.under_way())
    ledger.fail(cluster, {phase, "Error", message.empty() ? "the migration did not get further" : message});
}

RollbackVerdict judge_rollback(const Migration& migration, const Ledger& ledger, const json::object& problems) {
  const auto left = ledger.to_roll_back();
  const bool all_undone = (left.empty() && ledger.to_undo().empty()) || !migration.rollback_stage();
  if (problems.empty() && all_undone) {
    if (ledger.rolled_back.empty()) return {true, "ResourceRolledBack", "there was nothing to bring back"};
    return {true, "ResourceRolledBack",
            "back on hub '" + migration.from() + "': " + count_clusters(ledger.rolled_back.size())};
  }
  std::string text;
  for (const auto& [step, sentence] : problems)
    if (sentence.is_string()) text += std::string{sentence.get_string()} + " ";
  if (text.empty() && !left.empty()) text = "not back on hub '" + migration.from() + "': " + some_names(left) + ".";
  if (text.empty()) text = "not removed from hub '" + migration.to() + "': " + some_names(ledger.to_undo()) + ".";
  const bool timed_out = text.find("no answer within") != std::string::npos;
  return {false, timed_out ? "Timeout" : "Error",
          "the rollback is not complete: " + text + manual_advice(migration, left) +
              " To let it be tried again, set the annotation " + names::request_annotation + ": " +
              names::rollback_request + " on the migration."};
}

}  // namespace hubferry::migration
