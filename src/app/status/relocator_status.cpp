#include "app/status/relocator_status.hpp"

#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/selector.hpp"
#include "hubferry/relocator/names.hpp"

namespace hubferry::app {

namespace {

std::string count_in(const kube::Object& relocator, std::string_view field) {
  const auto* value = relocator.find({"status", field});
  return value != nullptr && value->is_number() ? std::to_string(value->to_number<std::int64_t>()) : "";
}

kube::LabelSelector selector_of(const kube::Object& relocator, bool& usable) {
  const auto* selector = relocator.find({"spec", "clusterDeploymentSelector"});
  usable = false;
  if (selector == nullptr || !selector->is_object()) return {};
  auto parsed = kube::LabelSelector::from_json(selector->get_object());
  usable = parsed && !parsed->empty();
  return parsed ? std::move(*parsed) : kube::LabelSelector{};
}

std::string text_of_condition(const kube::Object& object, std::string_view type) {
  const auto* condition = kube::find_condition(object, type);
  if (condition == nullptr) return "";
  return std::string{kube::string_at(*condition, {"reason"})} + ": " +
         std::string{kube::string_at(*condition, {"message"})};
}

}  // namespace

std::vector<std::string> relocator_table(const std::vector<kube::Object>& relocators, const Terminal& terminal) {
  TextTable table{{"NAME", "MATCHING", "MOVING", "MOVED", "FAILED", "SELECTOR"}};
  for (const auto& relocator : relocators) {
    bool usable = false;
    const auto selector = selector_of(relocator, usable);
    const auto failed = count_in(relocator, "failed");
    table.add({fitted(relocator.name(), 0),
               count_in(relocator, "matching"),
               count_in(relocator, "moving"),
               count_in(relocator, "moved"),
               {failed, failed.empty() || failed == "0" ? Colour::plain : Colour::red},
               {usable ? selector.to_string() : "refused", usable ? Colour::plain : Colour::red}});
  }
  return table.lines(terminal);
}

std::vector<std::string> relocator_details(const kube::Object& relocator, const std::vector<kube::Object>& deployments,
                                           const Terminal& terminal) {
  auto lines = relocator_table({relocator}, terminal);
  lines.emplace_back();
  for (const char* type : {"Valid", "Relocating", "Released"}) {
    const auto* condition = kube::find_condition(relocator, type);
    if (condition == nullptr) continue;
    lines.push_back(std::string{type} + " since " + std::string{kube::string_at(*condition, {"lastTransitionTime"})} +
                    ": " + std::string{kube::string_at(*condition, {"status"})} + ", " +
                    fitted(text_of_condition(relocator, type), 0));
  }
  bool usable = false;
  const auto selector = selector_of(relocator, usable);
  TextTable table{{"CLUSTERDEPLOYMENT", "STATE", "CONDITION"}};
  for (const auto& deployment : deployments) {
    const bool moves = deployment.annotation(relocator::names::relocating) == relocator.name();
    const bool moved = deployment.annotation(relocator::names::relocated) == relocator.name();
    if (!moves && !moved && !(usable && selector.matches(deployment))) continue;
    const bool failed = kube::is_condition_true(deployment, relocator::names::condition);
    table.add({kube::to_string(deployment.key()),
               moved   ? "moved"
               : moves ? "moving"
                       : "waiting",
               {text_of_condition(deployment, relocator::names::condition), failed ? Colour::red : Colour::plain}});
  }
  lines.emplace_back();
  if (table.empty()) {
    lines.emplace_back("It matches no ClusterDeployment of this hub.");
    return lines;
  }
  for (auto& line : table.lines(terminal)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace hubferry::app
