#include "app/status/migration_view.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>

#include "app/cli/table.hpp"
#include "hubferry/migration/phases.hpp"

namespace hubferry::app {

namespace json = kube::json;
using migration::PhaseKind;

namespace {

bool is_of(std::string_view phase, PhaseKind kind) {
  const auto* known = migration::find_phase(phase);
  return known != nullptr && known->kind == kind;
}

std::optional<async::WallTime> time_of(std::string_view text) {
  if (text.empty()) return std::nullopt;
  try {
    return async::parse_time(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

std::int64_t count_of(const kube::Object& object, std::string_view name) {
  const auto* found = object.find({"status", "clusters", name});
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

std::string text_of(const json::object& from, std::string_view name) {
  return std::string{kube::string_at(from, {name})};
}

/// Calls `visit` for each object in the array at `path`.
template <typename Visit>
void for_each_object(const kube::Object& object, std::initializer_list<std::string_view> path, Visit visit) {
  const auto* list = object.find(path);
  if (list == nullptr || !list->is_array()) return;
  for (const auto& item : list->get_array())
    if (item.is_object()) visit(item.get_object());
}

MigrationView::Condition condition_of(const json::object& from) {
  auto changed = time_of(text_of(from, "lastUpdateTime"));
  if (!changed) changed = time_of(text_of(from, "lastTransitionTime"));
  return {text_of(from, "type"), text_of(from, "status"), text_of(from, "reason"), text_of(from, "message"), changed};
}

void sort_failures(MigrationView& view) {
  std::sort(view.failures.begin(), view.failures.end(),
            [](const auto& one, const auto& other) { return natural_less(one.cluster, other.cluster); });
}

void add_problems(const kube::Object& object, std::string_view activity, std::vector<std::string>& problems) {
  const auto* recorded = object.find({"status", activity});
  if (recorded == nullptr || !recorded->is_object()) return;
  for (const auto& [step, message] : recorded->get_object())
    if (message.is_string())
      problems.push_back(std::string{activity} + ", " + std::string{step} + ": " + std::string{message.get_string()});
}

}  // namespace

bool MigrationView::has_ended() const {
  return migration::is_terminal(phase);
}

bool MigrationView::has_succeeded() const {
  return is_of(phase, PhaseKind::success);
}

bool MigrationView::is_failing() const {
  return is_of(phase, PhaseKind::failure) || is_of(phase, PhaseKind::rollback);
}

const MigrationView::Condition* MigrationView::cause() const {
  if (!is_failing()) return nullptr;
  // Conditions are in the order of their creation: later failures follow from the first.
  const auto is_failure = [](const Condition& condition) {
    return condition.status == "False" && condition.reason != "Waiting";
  };
  const auto found = std::find_if(conditions.begin(), conditions.end(), is_failure);
  return found == conditions.end() ? nullptr : &*found;
}

const MigrationView::Condition* MigrationView::latest_condition() const {
  const Condition* newest = nullptr;
  for (const auto& condition : conditions)
    if (newest == nullptr || condition.changed >= newest->changed) newest = &condition;
  return newest;
}

std::vector<MigrationView::Span> MigrationView::timeline() const {
  std::vector<Span> spans;
  for (const auto& info : migration::phase_table) {
    const std::string name = info.name;
    const auto known = states.find(name);
    const phase::State state = known == states.end() ? phase::State{} : known->second;
    Span span{name, state.start_time, state.end_time, state.failed};
    if (info.kind == PhaseKind::waiting && (known != states.end() || name == phase)) {
      span.start = created;
      if (!span.end) span.end = started;
    }
    if (name == phase && !span.start) span.start = phase_started;
    if (name == phase && has_ended()) {
      span.start = completed;
      span.end = completed;
      span.failed = !has_succeeded();
    }
    // The current phase has not ended, even if its handler has.
    if (name == phase && !has_ended()) span.end.reset();
    if (!span.start || (name != phase && known == states.end())) continue;
    const auto is_later = [](const Span& one, const Span& other) { return one.start < other.start; };
    spans.insert(std::upper_bound(spans.begin(), spans.end(), span, is_later), span);
  }
  return spans;
}

std::optional<async::Duration> MigrationView::time_left(async::WallTime now) const {
  const auto settled = clusters.migrated + clusters.failed + clusters.rolled_back;
  if (phase != migration::phases::registering || !phase_started || clusters.migrated == 0 || settled >= clusters.total)
    return std::nullopt;
  const auto elapsed = std::max(now - *phase_started, async::Duration{0});
  return elapsed * (clusters.total - settled) / clusters.migrated;
}

MigrationView view_of(const kube::Object& migration) {
  MigrationView view;
  view.key = migration.key();
  view.phase = migration.string_at({"status", "phase"});
  view.from = migration.string_at({"spec", "from"});
  view.to = migration.string_at({"spec", "to"});
  view.placement = migration.string_at({"spec", "includedManagedClustersPlacementRef"});
  view.being_deleted = migration.is_being_deleted();
  view.clusters = {count_of(migration, "total"),    count_of(migration, "pending"), count_of(migration, "migrating"),
                   count_of(migration, "migrated"), count_of(migration, "failed"),  count_of(migration, "rolledBack")};
  const auto* listed = migration.find({"spec", "includedManagedClusters"});
  if (view.clusters.total == 0 && listed != nullptr && listed->is_array())
    view.clusters.total = static_cast<std::int64_t>(listed->get_array().size());
  view.created = time_of(migration.string_at({"metadata", "creationTimestamp"}));
  view.started = time_of(migration.string_at({"status", "startTime"}));
  view.completed = time_of(migration.string_at({"status", "completionTime"}));
  if (migration.string_at({"status", "stage", "phase"}) == view.phase)
    view.phase_started = time_of(migration.string_at({"status", "stage", "startTime"}));
  for_each_object(migration, {"status", "conditions"},
                  [&](const json::object& item) { view.conditions.push_back(condition_of(item)); });
  for_each_object(migration, {"status", "clusters", "failures"}, [&](const json::object& item) {
    view.failures.push_back(
        {text_of(item, "name"), text_of(item, "stage"), text_of(item, "reason"), text_of(item, "message")});
  });
  sort_failures(view);
  add_problems(migration, "rollback", view.problems);
  add_problems(migration, "cleanup", view.problems);
  if (const auto* state = migration.find({"status", "state"})) view.states = phase::states_from_json(*state);
  return view;
}

void add_failures(MigrationView& view, const kube::Object& config_map) {
  const auto parsed = [&](std::string_view key) {
    boost::system::error_code bad;
    auto value = json::parse(std::string{config_map.string_at({"data", key})}, bad);
    return bad ? json::value{} : value;
  };
  const auto names = parsed("failure");
  const auto details = parsed("failure-details");
  if (!names.is_array()) return;
  for (const auto& name : names.get_array()) {
    if (!name.is_string()) continue;
    MigrationView::Failure failure{std::string{name.get_string()}, "", "", ""};
    const bool is_known = std::any_of(view.failures.begin(), view.failures.end(),
                                      [&](const auto& known) { return known.cluster == failure.cluster; });
    if (is_known) continue;
    if (const auto* entry = kube::find(details, {failure.cluster}); entry != nullptr && entry->is_object()) {
      failure.stage = text_of(entry->get_object(), "stage");
      failure.reason = text_of(entry->get_object(), "reason");
      failure.message = text_of(entry->get_object(), "message");
    }
    view.failures.push_back(std::move(failure));
  }
  sort_failures(view);
}

}  // namespace hubferry::app
