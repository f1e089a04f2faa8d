#include "hubferry/migration/resource.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "hubferry/migration/phases.hpp"
#include "migration/ledger.hpp"
#include "migration/status_fields.hpp"

namespace hubferry::migration {

const kube::Resource managed_cluster_migrations{"global-hub.open-cluster-management.io", "v1alpha1",
                                                "managedclustermigrations", "ManagedClusterMigration"};

namespace {

constexpr std::int64_t longest_time_to_live = std::int64_t{100} * 365 * 24 * 3600;  // fits into a Duration

const json::value* find_field(const json::object& migration, std::initializer_list<std::string_view> path) {
  const auto* value = kube::find(migration, path);
  return value == nullptr || value->is_null() ? nullptr : value;
}

ClusterNames sorted_names(const json::value& list) {
  ClusterNames names;
  if (!list.is_array()) return names;
  for (const auto& entry : list.get_array())
    if (entry.is_string() && !entry.get_string().empty()) names.emplace_back(entry.get_string());
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

void read_stage_timeout(const json::value& given, MigrationSpec& spec) {
  const auto is_string = given.is_string();
  const std::string text = is_string ? std::string{given.get_string()} : json::serialize(given);
  const auto refuse = [&](const char* problem) {
    spec.stage_timeout_problem = "spec.supportedConfigs.stageTimeout '" + text + "' " + problem +
                                 ": use a positive duration such as 10m or 1h30m";
  };
  if (!is_string) return refuse("is not a string");
  try {
    const auto timeout = async::parse_duration(text);
    if (timeout <= Duration::zero()) return refuse("is not positive");
    spec.stage_timeout = timeout;
  } catch (const std::invalid_argument&) {
    refuse("is not a duration");
  }
}

std::int64_t count_in(const json::object& status, std::string_view name) {
  const auto* count = kube::find(status, {"clusters", name});
  // A status that was not read from JSON, but written here just now, may have it as an unsigned one.
  if (count == nullptr || !count->is_number()) return 0;
  boost::system::error_code no_integer;
  const auto value = count->to_number<std::int64_t>(no_integer);
  return no_integer ? 0 : value;
}

std::string text_in(const json::object& object, std::string_view field) {
  return std::string{kube::string_at(object, {field})};
}

/// Calls `visit` for each object in the array at `path`.
template <typename Visit>
void for_each_object(const json::object& status, std::initializer_list<std::string_view> path, Visit visit) {
  const auto* list = kube::find(status, path);
  if (list == nullptr || !list->is_array()) return;
  for (const auto& item : list->get_array())
    if (item.is_object()) visit(item.get_object());
}

MigrationStatus::Condition read_condition(const json::object& condition) {
  auto changed = time_in(condition, "lastUpdateTime");
  if (!changed) changed = time_in(condition, "lastTransitionTime");
  return {text_in(condition, "type"), text_in(condition, "status"), text_in(condition, "reason"),
          text_in(condition, "message"), changed};
}

bool is_summary(std::string_view condition) {
  return condition == conditions::ready || condition == conditions::succeeded || condition == conditions::stalled ||
         condition == conditions::spec_changed;
}

bool is_of(std::string_view phase, PhaseKind kind) {
  const auto* known = find_phase(phase);
  return known != nullptr && known->kind == kind;
}

}  // namespace

MigrationSpec read_spec(const json::object& migration) {
  MigrationSpec spec;
  spec.from = kube::string_at(migration, {"spec", "from"});
  spec.to = kube::string_at(migration, {"spec", "to"});
  if (const auto* list = find_field(migration, {"spec", "includedManagedClusters"}))
    spec.clusters = sorted_names(*list);
  if (find_field(migration, {"spec", "includedManagedClustersPlacementRef"}) != nullptr)
    spec.placement = kube::string_at(migration, {"spec", "includedManagedClustersPlacementRef"});
  if (const auto* timeout = find_field(migration, {"spec", "supportedConfigs", "stageTimeout"}))
    read_stage_timeout(*timeout, spec);
  if (const auto* restart = find_field(migration, {"spec", "supportedConfigs", "restartAgents"}))
    spec.restart_agents = *restart == true;
  if (const auto* seconds = find_field(migration, {"spec", "ttlSecondsAfterFinished"});
      seconds != nullptr && seconds->is_int64() && seconds->get_int64() >= 0)
    spec.time_to_live = std::chrono::seconds{std::min(seconds->get_int64(), longest_time_to_live)};
  return spec;
}

std::string selection_of(const MigrationSpec& spec) {
  std::string text;
  // A line for each name. No valid name needs the escapes: they keep two lists apart of which one has a line break.
  const auto add = [&text](const std::string& name) {
    for (const char c : name) text += c == '\n' ? std::string{"\\n"} : c == '\\' ? std::string{"\\\\"} : std::string{c};
    text += '\n';
  };
  for (const auto& name : {spec.from, spec.to, spec.placement.value_or(std::string{})}) add(name);
  for (const auto& cluster : spec.clusters.value_or(ClusterNames{})) add(cluster);
  // FNV-1a: the next version of the manager must find the same.
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  constexpr const char* digits = "0123456789abcdef";
  std::string digest;
  for (int shift = 60; shift >= 0; shift -= 4) digest += digits[(hash >> shift) & 0xFU];
  return digest;
}

MigrationStatus read_status(const json::object& status) {
  MigrationStatus read;
  read.phase = text_in(status, "phase");
  read.source_hub = text_in(status, "from");
  read.target_hub = text_in(status, "to");
  read.started = time_in(status, status_fields::started);
  read.completed = time_in(status, status_fields::completed);
  read.cut_over = time_in(status, status_fields::cut_over);
  read.phase_started = phase_start_in(status, read.phase);
  read.credential = credential_in(status);
  read.rollback_stage = rollback_stage_in(status);
  read.clusters = {count_in(status, "total"),    count_in(status, "pending"), count_in(status, "migrating"),
                   count_in(status, "migrated"), count_in(status, "failed"),  count_in(status, "rolledBack")};
  for_each_object(status, {"clusters", "failures"}, [&](const json::object& item) {
    read.failures.push_back(
        {text_in(item, "name"), text_in(item, "stage"), text_in(item, "reason"), text_in(item, "message")});
  });
  for_each_object(status, {"conditions"}, [&](const json::object& item) {
    auto condition = read_condition(item);
    if (!is_summary(condition.type)) read.conditions.push_back(std::move(condition));
  });
  for (const auto* activity : {activities::rollback, activities::cleanup})
    for (auto& problem : problems_in(status, activity)) read.problems.push_back(std::move(problem));
  if (const auto* state = kube::find(status, {"state"})) read.states = phase::states_from_json(*state);
  return read;
}

MigrationStatus read_status(const kube::Object& migration) {
  const auto* status = migration.find({"status"});
  return status != nullptr && status->is_object() ? read_status(status->get_object()) : MigrationStatus{};
}

std::optional<WallTime> read_creation_time(const kube::Object& migration) {
  const auto* metadata = migration.find({"metadata"});
  if (metadata == nullptr || !metadata->is_object()) return std::nullopt;
  return time_in(metadata->get_object(), "creationTimestamp");
}

std::vector<MigrationStatus::Failure> read_failures(const kube::Object& config_map) {
  const auto* data = config_map.find({"data"});
  if (data == nullptr || !data->is_object()) return {};
  std::vector<MigrationStatus::Failure> failures;
  for (const auto& [cluster, failure] : ledger_from_data(data->get_object()).failures)
    failures.push_back({cluster, failure.stage, failure.reason, failure.message});
  return failures;
}

bool MigrationStatus::has_ended() const {
  return is_terminal(phase);
}

bool MigrationStatus::has_succeeded() const {
  return is_of(phase, PhaseKind::success);
}

bool MigrationStatus::is_failing() const {
  return is_of(phase, PhaseKind::failure) || is_of(phase, PhaseKind::rollback);
}

const MigrationStatus::Condition* MigrationStatus::cause() const {
  if (!is_failing()) return nullptr;
  // Conditions are in the order in which they were set: what failed later failed because of the first.
  const auto is_failure = [](const Condition& condition) {
    return condition.status == "False" && condition.reason != reasons::waiting;
  };
  const auto found = std::ranges::find_if(conditions, is_failure);
  return found == conditions.end() ? nullptr : &*found;
}

bool MigrationStatus::is_cleanup_pending() const {
  const auto is_pending = [this](const Condition& condition) {
    return condition.type == condition_of(phase) &&
           (condition.reason == reasons::cleanup_pending || condition.reason == reasons::rollback_pending);
  };
  return !has_ended() && std::ranges::any_of(conditions, is_pending);
}

const MigrationStatus::Condition* MigrationStatus::latest_condition() const {
  const Condition* latest = nullptr;
  for (const auto& condition : conditions)
    if (latest == nullptr || condition.changed >= latest->changed) latest = &condition;
  return latest;
}

}  // namespace hubferry::migration
