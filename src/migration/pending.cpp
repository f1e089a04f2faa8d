#include "migration/pending.hpp"

#include "hubferry/kube/read_file.hpp"
#include "hubferry/migration/leave_behind.hpp"
#include "migration/status_report.hpp"

namespace hubferry::migration {

namespace {

constexpr Duration shortest_pause = std::chrono::seconds{1};
constexpr Duration longest_pause = std::chrono::minutes{5};

const char* activity_of(const Phase& phase) {
  return phase == phases::rollbacking ? activities::rollback : activities::cleanup;
}

}  // namespace

std::vector<std::string> read_leave_behind(std::string_view annotation) {
  std::vector<std::string> names;
  while (!annotation.empty()) {
    const auto comma = annotation.find(',');
    if (auto name = kube::trimmed(std::string{annotation.substr(0, comma)}); !name.empty())
      names.push_back(std::move(name));
    annotation = comma == std::string_view::npos ? std::string_view{} : annotation.substr(comma + 1);
  }
  return names;
}

LeftBehind::LeftBehind(const Migration& migration) {
  for (auto& name : read_leave_behind(migration.object.annotation(names::leave_annotation)))
    names_.insert(std::move(name));
}

bool LeftBehind::covers(const std::string& hub, const std::string& cluster) const {
  return names_.contains(hub) || names_.contains(hub + "/" + cluster);
}

bool Pending::add(const std::string& hub, const std::string& cluster, std::string message) {
  if (left_behind_.covers(hub, cluster)) {
    given_up_.insert(hub + "/" + cluster);
    return false;
  }
  clusters_.try_emplace(cluster, Wait{hub, std::move(message)});
  return true;
}

void Pending::add(const std::string& hub, const Failures& failures) {
  for (const auto& [cluster, failure] : failures) add(hub, cluster, failure.message);
}

void Pending::add_objects(const std::string& hub, std::string message) {
  if (left_behind_.covers(hub)) {
    given_up_.insert(hub);
    return;
  }
  objects_.try_emplace(hub, std::move(message));
}

bool Pending::waits_for(const std::string& hub) const {
  return std::ranges::any_of(clusters_, [&](const auto& entry) { return entry.second.hub == hub; });
}

std::map<std::string, std::string> Pending::waiting() const {
  std::map<std::string, std::string> all;
  for (const auto& [cluster, wait] : clusters_) all.emplace(cluster, wait.message);
  return all;
}

std::string Pending::message() const {
  Failures waits;
  for (const auto& [cluster, wait] : clusters_) waits[cluster] = {{}, {}, wait.message};
  std::string text;
  if (!waits.empty()) text = count_clusters(waits.size()) + " pending: " + some_failures(waits);
  for (const auto& [hub, message] : objects_) text += (text.empty() ? "" : ". ") + message;
  return text;
}

ReconcileState postpone(Step& step, const std::string& message) {
  const bool rolls_back = step.phase() == phases::rollbacking;
  const auto* reason = rolls_back ? reasons::rollback_pending : reasons::cleanup_pending;
  const auto text = message + ". It is retried until it succeeds; to end it before, annotate the migration with " +
                    names::leave_annotation + ", naming what stays: HUB, or HUB/CLUSTER";
  const bool is_new = condition_reason(step.migration, condition_of(step.phase())) != reason;
  step.report(kube::ConditionStatus::no, reason, text);
  step.migration.set_problem({activity_of(step.phase()), step.name(), message, false});
  step.log().warn(rolls_back ? "rollback is pending, retrying" : "cleanup is pending, retrying",
                  {{"problem", message}});
  if (is_new) step->reporter.warn(step.migration, reason, rolls_back ? "RollBack" : "CleanUp", message);
  const auto lasted = Duration{step.now() - step.migration.entered(step.phase()).value_or(step.now())};
  return phase::not_done(std::clamp<Duration>(lasted / 8, shortest_pause, longest_pause));
}

void clear_problem(Step& step) {
  step.migration.clear_problem(activity_of(step.phase()), step.name());
}

Awaitable<> wait_for_previous_writes(Step& step) {
  if (!step.migration.started() || step->started.contains(std::string{step.migration.object.uid()})) co_return;
  if (step.clock().now() >= step->settled) co_return;
  const Step::Wait waiting{step, "writes of a previous manager may still take effect, for a minute at most"};
  co_await step.clock().sleep_until(step->settled);
}

}  // namespace hubferry::migration
