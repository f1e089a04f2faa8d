#include "hubferry/kube/conditions.hpp"

#include <boost/json/array.hpp>

#include "hubferry/async/clock.hpp"

namespace hubferry::kube {

namespace {

json::object* find_in(json::array& conditions, std::string_view type) {
  for (auto& entry : conditions)
    if (auto* condition = entry.if_object(); condition != nullptr && string_at(*condition, {"type"}) == type)
      return condition;
  return nullptr;
}

/// True if the field changed.
bool assign(json::object& object, std::string_view field, json::value value) {
  auto& slot = object[field];
  if (slot == value) return false;
  slot = std::move(value);
  return true;
}

}  // namespace

std::string_view to_string(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::yes:
      return "True";
    case ConditionStatus::no:
      return "False";
    case ConditionStatus::unknown:
      break;
  }
  return "Unknown";
}

bool set_condition(json::object& status, const Condition& condition, async::WallTime now) {
  auto& conditions = array_in(status, "conditions");
  auto* present = find_in(conditions, condition.type);
  if (present == nullptr) {
    conditions.emplace_back(json::object{{"type", condition.type}});
    present = &conditions.back().get_object();
  }
  bool changed = false;
  if (assign(*present, "status", json::value(to_string(condition.status)))) {
    present->insert_or_assign("lastTransitionTime", async::format_time(now));
    changed = true;
  }
  changed |= assign(*present, "reason", json::value(condition.reason));
  changed |= assign(*present, "message", json::value(condition.message));
  if (condition.observed_generation != 0)
    changed |= assign(*present, "observedGeneration", condition.observed_generation);
  return changed;
}

bool remove_condition(json::object& status, std::string_view type) {
  auto* slot = status.if_contains("conditions");
  if (slot == nullptr || !slot->is_array()) return false;
  auto& conditions = slot->get_array();
  for (auto entry = conditions.begin(); entry != conditions.end(); ++entry) {
    if (!entry->is_object() || string_at(entry->get_object(), {"type"}) != type) continue;
    conditions.erase(entry);
    return true;
  }
  return false;
}

const json::object* find_condition_in_status(const json::object& status, std::string_view type) {
  const auto* conditions = status.if_contains("conditions");
  if (conditions == nullptr || !conditions->is_array()) return nullptr;
  for (const auto& entry : conditions->get_array())
    if (entry.is_object() && string_at(entry.get_object(), {"type"}) == type) return &entry.get_object();
  return nullptr;
}

const json::object* find_condition(const Object& object, std::string_view type) {
  const auto* status = object.find({"status"});
  return status != nullptr && status->is_object() ? find_condition_in_status(status->get_object(), type) : nullptr;
}

bool is_condition_true(const Object& object, std::string_view type) {
  const auto* condition = find_condition(object, type);
  return condition != nullptr && string_at(*condition, {"status"}) == "True";
}

}  // namespace hubferry::kube
