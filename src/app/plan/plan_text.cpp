#include "app/plan/plan.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "app/cli/terminal.hpp"
#include "app/status/migration_view.hpp"
#include "hubferry/migration/phases.hpp"

namespace hubferry::app {

namespace json = kube::json;

namespace {

constexpr std::size_t readable_width = 100;  // if the output is not a terminal

/// How long the manager waits for clusters to register.
async::Duration registering_timeout(const Plan& plan) {
  return plan.spec.stage_timeout.value_or(migration::default_timeout(migration::phases::registering));
}

std::string selection_text(const migration::MigrationSpec& spec) {
  return spec.placement ? " (selected by placement " + *spec.placement + ")" : "";
}

json::object to_json(const migration::Problem& problem) {
  json::object out;
  if (!problem.hub.empty()) out["hub"] = problem.hub;
  if (!problem.cluster.empty()) out["cluster"] = problem.cluster;
  out["reason"] = problem.reason;
  out["message"] = problem.message;
  return out;
}

json::object to_json(const PlannedObject& object) {
  json::object out{{"apiVersion", object.api_version}, {"kind", object.kind}};
  if (!object.ns.empty()) out["namespace"] = object.ns;
  out["name"] = object.name;
  out["bytes"] = object.bytes;
  if (object.with_status) out["withStatus"] = true;
  return out;
}

std::string seconds_text(async::Duration duration) {
  return duration < std::chrono::seconds{1} ? "less than 1s" : "about " + short_duration(duration);
}

void add_clusters(std::vector<std::string>& lines, const Plan& plan, const Terminal& terminal) {
  TextTable table{{"CLUSTER", "OBJECTS", "SIZE", "VERDICT"}};
  // Of a hub that cannot be used nothing is known about any cluster.
  const bool is_checked = std::ranges::none_of(
      plan.problems, [](const auto& problem) { return problem.cluster.empty() && !problem.hub.empty(); });
  for (const auto& cluster : plan.clusters) {
    std::size_t bytes = 0;
    for (const auto& object : cluster.objects) bytes += object.bytes;
    const auto problems = plan.problems_of(cluster.name);
    const bool is_fine = problems.empty();
    std::string verdict = is_checked ? "can move" : "not checked";
    if (!is_fine) verdict = problems.front()->reason;
    for (std::size_t index = 1; index < problems.size(); ++index) verdict += ", " + problems[index]->reason;
    table.add({cluster.name,
               cluster.objects.empty() ? "" : std::to_string(cluster.objects.size()),
               cluster.objects.empty() ? "" : size_text(bytes),
               {verdict, !is_fine     ? Colour::red
                         : is_checked ? Colour::green
                                      : Colour::yellow}});
  }
  lines.emplace_back();
  for (auto& line : table.lines(terminal)) lines.push_back(std::move(line));
}

/// All problems, not truncated.
void add_problems(std::vector<std::string>& lines, const Plan& plan, const Terminal& terminal) {
  if (plan.problems.empty()) return;
  lines.emplace_back();
  lines.push_back(painted("Problems", Colour::bold, terminal.colour));
  for (const auto& problem : plan.problems) {
    std::string who = problem.cluster;
    if (!problem.hub.empty()) who += who.empty() ? problem.hub : " (" + problem.hub + ")";
    const auto text = fitted((who.empty() ? "" : who + ": ") + problem.reason + ": " + problem.message, 0);
    for (const auto& line : wrapped(text, terminal.width, "  ", "    "))
      lines.push_back(painted(line, Colour::red, terminal.colour));
  }
}

void add_times(std::vector<std::string>& lines, const Plan& plan, const Terminal& terminal) {
  const auto seconds_read = seconds_text(plan.reading);
  const auto& own = plan.spec.stage_timeout;
  const std::string text =
      "reading took " + seconds_read.substr(plan.reading < std::chrono::seconds{1} ? 0 : 6) +
      "; copying and comparing will take " + seconds_text(writing_time(plan)) +
      ". Then each cluster has no hub until its agent has registered on " + plan.spec.to +
      ", which takes seconds to minutes. Clusters that have not registered within " +
      async::format_duration(registering_timeout(plan)) +
      (own ? " (spec.supportedConfigs.stageTimeout)" : " (the default; see spec.supportedConfigs.stageTimeout)") +
      " are rolled back.";
  lines.emplace_back();
  for (auto& line : wrapped(text, terminal.width == 0 ? readable_width : terminal.width, "Time: ", "      "))
    lines.push_back(std::move(line));
}

void add_kinds(std::vector<std::string>& lines, const Plan& plan) {
  lines.emplace_back();
  lines.push_back("To be copied: " + plural(plan.objects(), "object") + ", " + size_text(plan.bytes()));
  for (const auto& [kind, count] : plan.kinds()) lines.push_back("  " + std::to_string(count) + " " + kind);
}

/// What users have on the source and would not find on the target.
void add_staying(std::vector<std::string>& lines, const Plan& plan, bool list_objects, const Terminal& terminal) {
  std::map<std::string, std::size_t> reasons;
  TextTable table{{"CLUSTER", "NOT COPIED", "NAME", "REASON"}};
  for (const auto& cluster : plan.clusters)
    for (const auto& object : cluster.staying) {
      ++reasons[object.kind + ": " + object.why];
      table.add({cluster.name, object.kind, object.name, object.why});
    }
  if (reasons.empty()) return;
  lines.emplace_back();
  if (list_objects) {
    for (auto& line : table.lines(terminal)) lines.push_back(std::move(line));
    return;
  }
  lines.emplace_back("Not copied:");
  for (const auto& [reason, count] : reasons) lines.push_back("  " + std::to_string(count) + " " + reason);
}

void add_objects(std::vector<std::string>& lines, const Plan& plan, const Terminal& terminal) {
  TextTable table{{"CLUSTER", "KIND", "NAME", "SIZE"}};
  for (const auto& cluster : plan.clusters)
    for (const auto& object : cluster.objects)
      table.add({cluster.name, object.kind + (object.with_status ? " with status" : ""), object.name,
                 size_text(object.bytes)});
  lines.emplace_back();
  for (auto& line : table.lines(terminal)) lines.push_back(std::move(line));
}

}  // namespace

std::string size_text(std::size_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  std::array<char, 32> text{};
  const double kibibytes = static_cast<double>(bytes) / 1024;
  if (kibibytes < 1024)
    std::snprintf(text.data(), text.size(), "%.1f KiB", kibibytes);
  else
    std::snprintf(text.data(), text.size(), "%.1f MiB", kibibytes / 1024);
  return text.data();
}

async::Duration writing_time(const Plan& plan) {
  // Every object is created, and later compared with what was sent: one write and one read per read now.
  return plan.reading * 2;
}

std::vector<std::string> plan_text(const Plan& plan, bool list_objects, const Terminal& terminal) {
  std::vector<std::string> lines;
  const auto& spec = plan.spec;
  lines.push_back(painted(
      "Plan: " + spec.from + " -> " + spec.to + ", " + plural(plan.clusters.size(), "cluster") + selection_text(spec),
      Colour::bold, terminal.colour));
  if (!plan.clusters.empty()) add_clusters(lines, plan, terminal);
  if (plan.objects() > 0) {
    add_kinds(lines, plan);
    if (list_objects) add_objects(lines, plan, terminal);
    add_staying(lines, plan, list_objects, terminal);
    add_times(lines, plan, terminal);
  }
  add_problems(lines, plan, terminal);
  lines.emplace_back();
  if (plan.can_succeed())
    lines.push_back(painted("This migration can succeed. Nothing was changed.", Colour::green, terminal.colour));
  else
    lines.push_back(
        painted("This migration cannot succeed: " + plural(plan.problems.size(), "problem") + ". Nothing was changed.",
                Colour::red, terminal.colour));
  return lines;
}

json::object plan_json(const Plan& plan) {
  json::array clusters;
  for (const auto& cluster : plan.clusters) {
    json::array objects;
    for (const auto& object : cluster.objects) objects.push_back(to_json(object));
    json::array problems;
    for (const auto* problem : plan.problems_of(cluster.name)) problems.push_back(to_json(*problem));
    json::array staying;
    for (const auto& object : cluster.staying)
      staying.push_back(json::object{{"kind", object.kind}, {"name", object.name}, {"why", object.why}});
    clusters.push_back(json::object{{"name", cluster.name},
                                    {"objects", std::move(objects)},
                                    {"staying", std::move(staying)},
                                    {"problems", std::move(problems)}});
  }
  json::array problems;
  for (const auto& problem : plan.problems) problems.push_back(to_json(problem));
  const auto seconds = [](async::Duration duration) { return std::chrono::duration<double>(duration).count(); };
  return {{"possible", plan.can_succeed()},
          {"from", plan.spec.from},
          {"to", plan.spec.to},
          {"problems", std::move(problems)},
          {"clusters", std::move(clusters)},
          {"estimate", json::object{{"readingSeconds", seconds(plan.reading)},
                                    {"copyingSeconds", seconds(writing_time(plan))},
                                    {"registeringTimeoutSeconds", seconds(registering_timeout(plan))}}}};
}

}  // namespace hubferry::app
