#include "runner.hpp"

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

}  // namespace

Result Runner::run(const Plan& plan, bool recorded) {
  auto& hubs = hubs_[{plan.hubs, plan.accounts, plan.newest_import, recorded}];
  if (hubs == nullptr) hubs = build_hubs(plan, recorded);
  auto report = run_in_clone([&] {
    SeededWorld world{*hubs, plan};
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
  for (std::size_t index = plan.steps.size(); index-- > 0;) {
    auto shorter = plan;
    shorter.steps.erase(shorter.steps.begin() + static_cast<std::ptrdiff_t>(index));
    if (!run(shorter).violations.empty()) plan = std::move(shorter);
  }
  for (std::size_t index = 0; index < plan.steps.size(); ++index) {
    auto shorter = plan;
    shorter.steps[index].lasts /= 8;
    if (shorter.steps[index].lasts.count() > 0 && !run(shorter).violations.empty()) plan = std::move(shorter);
  }
  return plan;
}

std::string explain(Runner& runner, const Plan& plan, const Result& result) {
  const auto shortest = runner.shortened(plan);
  const auto again = runner.run(shortest, true);
  return result.violations + to_string(plan) + "  " + result.summary + "\nshortest " + to_string(shortest) + "  " +
         again.summary + "\n" + again.violations + essential(again.timeline);
}

}  // namespace hubferry::worlds
