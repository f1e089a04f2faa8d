#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hubferry/async/types.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::kube {

enum class ConditionStatus { unknown, no, yes };

std::string_view to_string(ConditionStatus status);

/// metav1.Condition without its lastTransitionTime, which set_condition() keeps.
struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::unknown;
  std::string reason;  // a CamelCase word
  std::string message;
  std::int64_t observed_generation = 0;  // zero: not written
};

/// Puts `condition` into `status.conditions`, where `status` is an object's status. True if anything changed.
/// lastTransitionTime moves only when the condition's status changes. Conditions keep their order; a new one comes
/// last.
bool set_condition(json::object& status, const Condition& condition, async::WallTime now);

/// Removes a condition; true if it was there.
bool remove_condition(json::object& status, std::string_view type);

/// The condition in `object`'s status; nullptr when there is none.
const json::object* find_condition(const Object& object, std::string_view type);
const json::object* find_condition_in_status(const json::object& status, std::string_view type);

/// False also when the condition is missing or Unknown.
bool is_condition_true(const Object& object, std::string_view type);

}  // namespace hubferry::kube
