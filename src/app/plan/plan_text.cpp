#include "app/plan/plan.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>
#include <unordered_map>

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

/// Longer lists are grouped, unless a user asks for all of it: a plan is read by a person, and -o json has everything.
constexpr std::size_t longest_list = 50;

/// Of each group of problems in a long list.
constexpr std::size_t listed_per_group = 10;

using ProblemsByCluster = std::unordered_map<std::string_view, std::vector<const migration::Problem*>>;

/// Once for all clusters: to search them for each of thousands of clusters takes seconds.
ProblemsByCluster by_cluster(const std::vector<migration::Problem>& problems) {
  ProblemsByCluster found;
  for (const auto& problem : problems)
    if (!problem.cluster.empty()) found[problem.cluster].push_back(&problem);
  return found;
}

/// What the plan says about one cluster.
TextTable::Cell verdict(const std::vector<const migration::Problem*>& problems, bool is_checked) {
  if (problems.empty())
    return is_checked ? TextTable::Cell{"can move", Colour::green} : TextTable::Cell{"not checked", Colour::yellow};
  std::string reasons = problems.front()->reason;
  for (std::size_t index = 1; index < problems.size(); ++index) reasons += ", " + problems[index]->reason;
  return {reasons, Colour::red};
}

/// A row of the table of clusters: one cluster, or all with the same verdict.
struct ClusterRow {
  TextTable::Cell verdict;
  std::size_t clusters = 0;
  std::size_t objects = 0;
  std::size_t bytes = 0;

  void add(const PlannedCluster& cluster) {
    ++clusters;
    objects += cluster.objects.size();
    for (const auto& object : cluster.objects) bytes += object.bytes;
  }
  [[nodiscard]] std::vector<TextTable::Cell> cells(const std::string& first) const {
    return {first, objects == 0 ? "" : std::to_string(objects), objects == 0 ? "" : size_text(bytes), verdict};
  }
};

void add_clusters(std::vector<std::string>& lines, const Plan& plan, bool list_all, const Terminal& terminal) {
  // Of a hub that cannot be used nothing is known about any cluster.
  const bool is_checked = std::ranges::none_of(
      plan.problems, [](const auto& problem) { return problem.cluster.empty() && !problem.hub.empty(); });
  const bool is_grouped = !list_all && plan.clusters.size() > longest_list;
  TextTable table{{is_grouped ? "CLUSTERS" : "CLUSTER", "OBJECTS", "SIZE", "VERDICT"}};
  std::map<std::string, ClusterRow> groups;
  const auto problems = by_cluster(plan.problems);
  for (const auto& cluster : plan.clusters) {
    const auto of_cluster = problems.find(cluster.name);
    ClusterRow row{
        verdict(of_cluster != problems.end() ? of_cluster->second : ProblemsByCluster::mapped_type{}, is_checked)};
    if (is_grouped) {
      groups.try_emplace(row.verdict.text, row).first->second.add(cluster);
    } else {
      row.add(cluster);
      table.add(row.cells(cluster.name));
    }
  }
  for (const auto& [text, group] : groups) table.add(group.cells(std::to_string(group.clusters)));
  lines.emplace_back();
  for (auto& line : table.lines(terminal)) lines.push_back(std::move(line));
  if (is_grouped) lines.emplace_back("Each cluster: hubferry plan --objects, or -o json");
}

/// No message is truncated. Of a long list, the first ones of each reason and hub; those of no single cluster are few.
void add_problems(std::vector<std::string>& lines, const Plan& plan, bool list_all, const Terminal& terminal) {
  if (plan.problems.empty()) return;
  lines.emplace_back();
  lines.push_back(painted("Problems", Colour::bold, terminal.colour));
  const bool is_grouped = !list_all && plan.problems.size() > longest_list;
  std::map<std::string, std::size_t> groups;
  for (const auto& problem : plan.problems) {
    const auto hub = problem.hub.empty() ? "" : " (" + problem.hub + ")";
    if (is_grouped && !problem.cluster.empty() && ++groups[problem.reason + hub] > listed_per_group) continue;
    const auto who = problem.cluster.empty() ? problem.hub : problem.cluster + hub;
    const auto text = fitted((who.empty() ? "" : who + ": ") + problem.reason + ": " + problem.message, 0);
    for (const auto& line : wrapped(text, terminal.width, "  ", "    "))
      lines.push_back(painted(line, Colour::red, terminal.colour));
  }
  for (const auto& [group, count] : groups)
    if (count > listed_per_group)
      lines.push_back("  … and " + std::to_string(count - listed_per_group) + " more " + group +
                      " (all: hubferry plan --objects, or -o json)");
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
  if (!plan.clusters.empty()) add_clusters(lines, plan, list_objects, terminal);
  if (plan.objects() > 0) {
    add_kinds(lines, plan);
    if (list_objects) add_objects(lines, plan, terminal);
    add_staying(lines, plan, list_objects, terminal);
    if (plan.can_succeed()) add_times(lines, plan, terminal);
  }
  add_problems(lines, plan, list_objects, terminal);
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
  const auto of_clusters = by_cluster(plan.problems);
  for (const auto& cluster : plan.clusters) {
    json::array objects;
    for (const auto& object : cluster.objects) objects.push_back(to_json(object));
    json::array problems;
    if (const auto found = of_clusters.find(cluster.name); found != of_clusters.end())
      for (const auto* problem : found->second) problems.push_back(to_json(*problem));
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
