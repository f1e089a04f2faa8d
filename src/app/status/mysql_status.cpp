#include "app/status/mysql_status.hpp"

#include <cstdio>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/mysql/resource.hpp"

namespace hubferry::app {

namespace {

std::string number_text(const kube::Object& object, std::initializer_list<std::string_view> path) {
  const auto* value = object.find(path);
  return value != nullptr && value->is_number() ? std::to_string(value->to_number<std::int64_t>()) : "";
}

Colour colour_of_mysql_phase(std::string_view phase) {
  if (phase == mysql::phases::failed) return Colour::red;
  return phase == mysql::phases::running || phase == mysql::phases::succeeded ? Colour::green : Colour::plain;
}

/// What a person should look at first: the first condition that is not as it should be.
std::string trouble_of(const kube::Object& cluster) {
  if (const auto message = cluster.string_at({"status", "message"}); !message.empty()) return std::string{message};
  if (kube::is_condition_true(cluster, mysql::conditions::failover_in_progress))
    return std::string{
        kube::string_at(*kube::find_condition(cluster, mysql::conditions::failover_in_progress), {"message"})};
  for (const char* type : {mysql::conditions::primary_healthy, mysql::conditions::replicas_healthy,
                           mysql::conditions::spec_accepted, mysql::conditions::backups_on_time}) {
    const auto* condition = kube::find_condition(cluster, type);
    if (condition == nullptr || kube::string_at(*condition, {"status"}) != "False") continue;
    return std::string{kube::string_at(*condition, {"reason"})} + ": " +
           std::string{kube::string_at(*condition, {"message"})};
  }
  return "";
}

void append(std::vector<std::string>& lines, const TextTable& table, const Terminal& terminal) {
  for (auto& line : table.lines(terminal)) lines.push_back(std::move(line));
}

TextTable cluster_table(const std::vector<kube::Object>& clusters) {
  TextTable table{{"CLUSTER", "PHASE", "PRIMARY", "READY", "VERSION", "PROBLEM"}};
  for (const auto& cluster : clusters) {
    const std::string phase{cluster.string_at({"status", "phase"})};
    const auto trouble = trouble_of(cluster);
    table.add({fitted(kube::to_string(cluster.key()), 0),
               {phase, colour_of_mysql_phase(phase)},
               std::string{cluster.string_at({"status", "primary"})},
               number_text(cluster, {"status", "replicas"}) + "/" + number_text(cluster, {"spec", "replicas"}),
               std::string{cluster.string_at({"spec", "mysqlVersion"})},
               {fitted(trouble, 0), trouble.empty() ? Colour::plain : Colour::red}});
  }
  return table;
}

TextTable backup_table(const std::vector<kube::Object>& backups) {
  TextTable table{{"BACKUP", "CLUSTER", "PHASE", "SOURCE", "STARTED", "SECONDS", "MESSAGE"}};
  for (const auto& backup : backups) {
    const std::string phase{backup.string_at({"status", "phase"})};
    table.add({fitted(kube::to_string(backup.key()), 0),
               fitted(backup.string_at({"spec", "cluster"}), 0),
               {phase, colour_of_mysql_phase(phase)},
               std::string{backup.string_at({"status", "source"})},
               std::string{backup.string_at({"status", "startTime"})},
               number_text(backup, {"status", "durationSeconds"}),
               fitted(backup.string_at({"status", "message"}), 0)});
  }
  return table;
}

std::string last_failover(const kube::Object& cluster) {
  const auto at = [&](std::string_view field) {
    return std::string{cluster.string_at({"status", "lastFailover", field})};
  };
  if (at("to").empty()) return "";
  const auto* seconds = cluster.find({"status", "lastFailover", "seconds"});
  const auto* planned = cluster.find({"status", "lastFailover", "planned"});
  const bool was_planned = planned != nullptr && planned->is_bool() && planned->get_bool();
  std::string text = (was_planned ? "Last switchover: " : "Last failover: ") + at("endTime") + ", from " + at("from") +
                     " to " + at("to");
  if (!was_planned && seconds != nullptr && seconds->is_number()) {
    char number[32];
    std::snprintf(number, sizeof number, "%.1f", seconds->to_number<double>());
    text += ", " + std::string{number} + "s after the third failed probe";
  }
  if (!at("without").empty()) text += "; given up: " + at("without");
  return text;
}

}  // namespace

std::vector<std::string> mysql_table(const std::vector<kube::Object>& clusters,
                                     const std::vector<kube::Object>& backups, const Terminal& terminal) {
  std::vector<std::string> lines;
  if (clusters.empty()) lines.emplace_back("No MySQL clusters found.");
  if (!clusters.empty()) append(lines, cluster_table(clusters), terminal);
  if (backups.empty()) return lines;
  lines.emplace_back();
  append(lines, backup_table(backups), terminal);
  return lines;
}

std::vector<std::string> mysql_details(const kube::Object& cluster, const std::vector<kube::Object>& backups,
                                       const Terminal& terminal) {
  std::vector<std::string> lines;
  append(lines, cluster_table({cluster}), terminal);
  lines.emplace_back();
  TextTable conditions{{"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"}};
  const auto* list = cluster.find({"status", "conditions"});
  if (list != nullptr && list->is_array())
    for (const auto& one : list->get_array()) {
      const auto text = [&](std::string_view field) { return std::string{kube::string_at(one.as_object(), {field})}; };
      conditions.add(
          {text("type"), text("status"), text("reason"), text("lastTransitionTime"), fitted(text("message"), 0)});
    }
  if (!conditions.empty()) append(lines, conditions, terminal);
  TextTable servers{{"SERVER", "ROLE", "HEALTH", "MESSAGE"}};
  const auto* found = cluster.find({"status", "servers"});
  if (found != nullptr && found->is_array())
    for (const auto& one : found->get_array()) {
      const auto text = [&](std::string_view field) { return std::string{kube::string_at(one.as_object(), {field})}; };
      servers.add({text("name"), text("role"), text("health"), fitted(text("message"), 0)});
    }
  if (!servers.empty()) {
    lines.emplace_back();
    append(lines, servers, terminal);
  }
  if (const auto text = last_failover(cluster); !text.empty()) {
    lines.emplace_back();
    lines.push_back(text);
  }
  std::vector<kube::Object> own;
  for (const auto& backup : backups)
    if (backup.ns() == cluster.ns() && backup.string_at({"spec", "cluster"}) == cluster.name()) own.push_back(backup);
  if (!own.empty()) {
    lines.emplace_back();
    append(lines, backup_table(own), terminal);
  }
  return lines;
}

}  // namespace hubferry::app
