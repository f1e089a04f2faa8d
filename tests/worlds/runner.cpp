#include "runner.hpp"

#include <algorithm>
#include <optional>
#include <sstream>

#include "forked.hpp"

namespace hubferry::worlds {

namespace {

// Between the parts of a report.
constexpr char separator = '\x1e';

std::string take_part(std::string& text) {
  const auto end = text.find(separator);
  auto part = text.substr(0, end);
  text = end == std::string::npos ? std::string{} : text.substr(end + 1);
  return part;
}

/// What managers and people wrote, and what failed.
std::string essential(const std::string& timeline) {
  std::istringstream lines{timeline};
  std::string text;
  std::string line;
  bool begun = false;  // what built the world is no part of it
  while (std::getline(lines, line)) {
    begun = begun || line.find(" person create managedclustermigrations") != std::string::npos;
    if (!begun) continue;
    const bool concerns = line.find(manager_user) != std::string::npos || line.find(" person ") != std::string::npos ||
                          line.find(" managedclusters") != std::string::npos;
    const bool reads = line.find(" get ") != std::string::npos || line.find(" list ") != std::string::npos ||
                       line.find(" watch ") != std::string::npos;
    const bool noise = line.find(" leases.") != std::string::npos || line.find(" events") != std::string::npos;
    if (concerns && !reads && !noise) text += "    " + line + "\n";
  }
  return text;
}

Plan without_step(Plan plan, std::size_t index) {
  plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(index));
  return plan;
}

/// Of a migration that no step concerns. Those that follow have the next lower number then.
std::optional<Plan> without_migration(Plan plan, std::size_t index) {
  const auto concerns = [index](const Step& step) { return step.migration == index; };
  if (plan.migrations.size() == 1 || std::ranges::any_of(plan.steps, concerns)) return std::nullopt;
  plan.migrations.erase(plan.migrations.begin() + static_cast<std::ptrdiff_t>(index));
  for (auto& step : plan.steps)
    if (step.migration > index) --step.migration;
  return plan;
}

std::optional<Plan> with_one_manager(Plan plan) {
  const auto concerns_others = [](const Step& step) { return step.manager > 0; };
  if (plan.managers == 1 || std::ranges::any_of(plan.steps, concerns_others)) return std::nullopt;
  plan.managers = 1;
  return plan;
}

std::optional<Plan> with_shorter_step(Plan plan, std::size_t index) {
  auto& lasts = plan.steps[index].lasts;
  lasts /= 8;
  if (lasts.count() == 0) return std::nullopt;
  return plan;
}

}  // namespace

Result Runner::run(const Plan& plan, bool recorded) {
  auto& hubs = hubs_[{plan.hubs, plan.accounts, plan.newest_import, plan.upstream_agents, recorded}];
  if (hubs == nullptr) hubs = build_hubs(plan, recorded);
  auto report = run_in_clone([&] {
    // Never destroyed: the clone ends with its report, and to end each coroutine first is a part of what a world costs.
    auto& world = *std::make_unique<SeededWorld>(*hubs, plan).release();
    auto result = world.run();
    return result.summary + separator + result.violations + separator + result.timeline;
  });
  if (!report.crash.empty()) return {"crash: " + report.crash + "\n", "crashed", {}, report.cpu_seconds};
  if (report.text.find(separator) == std::string::npos) return {report.text + "\n", "failed", {}, report.cpu_seconds};
  Result result;
  result.cpu_seconds = report.cpu_seconds;
  result.summary = take_part(report.text);
  result.violations = take_part(report.text);
  result.timeline = take_part(report.text);
  return result;
}

Plan Runner::shortened(Plan plan) {
  const auto still_violates = [&](const Plan& shorter) { return !run(shorter).violations.empty(); };
  const auto keep = [&](std::optional<Plan> shorter) {
    if (shorter && still_violates(*shorter)) plan = std::move(*shorter);
  };
  for (std::size_t index = plan.steps.size(); index-- > 0;) keep(without_step(plan, index));
  for (std::size_t index = plan.migrations.size(); index-- > 0;) keep(without_migration(plan, index));
  keep(with_one_manager(plan));
  for (std::size_t index = 0; index < plan.steps.size(); ++index) keep(with_shorter_step(plan, index));
  return plan;
}

std::string explain(Runner& runner, const Plan& plan, const Result& result) {
  const auto shortest = runner.shortened(plan);
  const auto again = runner.run(shortest, true);
  return result.violations + to_string(plan) + "  " + result.summary + "\nshortest " + to_string(shortest) + "  " +
         again.summary + "\n" + again.violations + essential(again.timeline);
}

}  // namespace hubferry::worlds
