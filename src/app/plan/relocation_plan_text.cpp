#include "app/plan/relocation_plan_text.hpp"

namespace hubferry::app {

namespace {

namespace json = kube::json;

std::string verdict(const relocator::PlannedRelocation& planned) {
  if (!planned.reason.empty()) return planned.reason + ": " + planned.message;
  return planned.on_destination ? "the destination has it: would only be deleted here" : "would move";
}

json::array strings(const std::vector<std::string>& all) {
  return json::array(all.begin(), all.end());
}

json::value problem_json(const std::string& reason, const std::string& message) {
  if (reason.empty()) return nullptr;
  return json::object{{"reason", reason}, {"message", message}};
}

}  // namespace

std::vector<std::string> relocation_plan_text(const relocator::RelocationPlan& plan, bool list_objects,
                                              const Terminal& terminal) {
  std::vector<std::string> lines;
  lines.push_back("ClusterRelocator " + plan.name + " matches " + plural(plan.deployments.size(), "ClusterDeployment") +
                  ".");
  if (!plan.reason.empty()) lines.push_back("It cannot move any: " + plan.reason + ": " + fitted(plan.message, 0));
  if (!plan.deployments.empty()) {
    TextTable table{{"CLUSTERDEPLOYMENT", "OBJECTS", "RESULT"}};
    for (const auto& planned : plan.deployments)
      table.add({kube::to_string(planned.deployment),
                 std::to_string(planned.objects.size()),
                 {verdict(planned), planned.reason.empty() ? Colour::green : Colour::red}});
    lines.emplace_back();
    for (auto& line : table.lines(terminal)) lines.push_back(std::move(line));
  }
  for (const auto& planned : plan.deployments)
    for (const auto& name : planned.missing_sync_sets)
      lines.push_back("Warning: SelectorSyncSet " + name + " matches " + kube::to_string(planned.deployment) +
                      " here and is missing on the destination.");
  if (list_objects)
    for (const auto& planned : plan.deployments)
      for (const auto& object : planned.objects)
        lines.push_back(kube::to_string(planned.deployment) + ": " + fitted(object, 0));
  return lines;
}

json::object relocation_plan_json(const relocator::RelocationPlan& plan) {
  json::array deployments;
  for (const auto& planned : plan.deployments)
    deployments.emplace_back(json::object{{"namespace", planned.deployment.ns},
                                          {"name", planned.deployment.name},
                                          {"objects", strings(planned.objects)},
                                          {"problem", problem_json(planned.reason, planned.message)},
                                          {"onDestination", planned.on_destination},
                                          {"missingSelectorSyncSets", strings(planned.missing_sync_sets)}});
  return json::object{{"possible", plan.can_succeed()},
                      {"relocator", plan.name},
                      {"problem", problem_json(plan.reason, plan.message)},
                      {"clusterDeployments", std::move(deployments)}};
}

}  // namespace hubferry::app
