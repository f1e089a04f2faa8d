#include "app/plan/relocation_plan_text.hpp"

#include <algorithm>

namespace hubferry::app {

namespace {

namespace json = kube::json;

/// `looked`: at the destination.
std::string verdict(const relocator::PlannedRelocation& planned, bool looked) {
  if (!planned.reason.empty()) return planned.reason + ": " + planned.message;
  if (!looked) return "nothing is in the way on this hub";
  if (planned.on_destination) return "the destination has it: would only be deleted here";
  std::string text = "would move";
  if (!planned.present.empty()) text += ", " + std::to_string(planned.present.size()) + " there already";
  if (!planned.outdated.empty()) text += ", " + std::to_string(planned.outdated.size()) + " there to update";
  return text;
}

json::array strings(const std::vector<std::string>& all) {
  return json::array(all.begin(), all.end());
}

json::array obstacles_json(const std::vector<relocator::Obstacle>& all) {
  json::array found;
  for (const auto& one : all) found.emplace_back(json::object{{"object", one.object}, {"message", one.message}});
  return found;
}

json::value problem_json(const std::string& reason, const std::string& message) {
  if (reason.empty()) return nullptr;
  return json::object{{"reason", reason}, {"message", message}};
}

/// What becomes of one of its objects, as far as the destination was looked at.
std::string fate(const relocator::PlannedRelocation& planned, const std::string& object) {
  const auto is_in = [&](const std::vector<std::string>& all) { return std::ranges::find(all, object) != all.end(); };
  if (is_in(planned.present)) return " (the destination has it)";
  if (is_in(planned.outdated)) return " (the destination has an older copy: would be updated)";
  const auto blocked = std::ranges::find(planned.obstacles, object, &relocator::Obstacle::object);
  return blocked != planned.obstacles.end() ? " (in the way: " + blocked->message + ")" : "";
}

}  // namespace

std::vector<std::string> relocation_plan_text(const relocator::RelocationPlan& plan, bool list_objects,
                                              const Terminal& terminal) {
  std::vector<std::string> lines;
  lines.push_back("ClusterRelocator " + plan.name + " matches " + plural(plan.deployments.size(), "ClusterDeployment") +
                  ".");
  if (!plan.reason.empty()) lines.push_back("It cannot move any: " + plan.reason + ": " + fitted(plan.message, 0));
  if (!plan.deployments.empty()) {
    const bool looked = plan.reason.empty();
    TextTable table{{"CLUSTERDEPLOYMENT", "OBJECTS", "RESULT"}};
    for (const auto& planned : plan.deployments)
      table.add({kube::to_string(planned.deployment),
                 std::to_string(planned.objects.size()),
                 {verdict(planned, looked), !planned.reason.empty() ? Colour::red
                                            : looked                ? Colour::green
                                                                    : Colour::plain}});
    lines.emplace_back();
    for (auto& line : table.lines(terminal)) lines.push_back(std::move(line));
  }
  for (const auto& planned : plan.deployments)
    for (const auto& name : planned.missing_sync_sets)
      lines.push_back("Warning: SelectorSyncSet " + name + " matches " + kube::to_string(planned.deployment) +
                      " here and is missing on the destination.");
  // The first one is in the table.
  for (const auto& planned : plan.deployments)
    for (std::size_t i = 1; i < planned.obstacles.size(); ++i)
      lines.push_back("In the way of " + kube::to_string(planned.deployment) + ": " +
                      fitted(planned.obstacles[i].message, 0));
  if (list_objects)
    for (const auto& planned : plan.deployments)
      for (const auto& object : planned.objects)
        lines.push_back(kube::to_string(planned.deployment) + ": " + fitted(object + fate(planned, object), 0));
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
                                          {"present", strings(planned.present)},
                                          {"outdated", strings(planned.outdated)},
                                          {"inTheWay", obstacles_json(planned.obstacles)},
                                          {"missingSelectorSyncSets", strings(planned.missing_sync_sets)}});
  return json::object{{"possible", plan.can_succeed()},
                      {"relocator", plan.name},
                      {"problem", problem_json(plan.reason, plan.message)},
                      {"clusterDeployments", std::move(deployments)}};
}

}  // namespace hubferry::app
