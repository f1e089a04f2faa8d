#include "hubferry/migration/phases.hpp"

#include <algorithm>

namespace hubferry::migration {

namespace {

constexpr const PhaseInfo& first_phase = phase_table.front();

}  // namespace

const PhaseInfo* find_phase(std::string_view name) {
  const auto* row = std::ranges::find_if(phase_table, [&](const PhaseInfo& phase) { return phase.name == name; });
  return row == phase_table.end() ? nullptr : row;
}

bool is_active(std::string_view phase) {
  const auto* row = find_phase(phase);
  if (row == nullptr) return !phase.empty();
  return row->kind == PhaseKind::forward || row->kind == PhaseKind::rollback;
}

bool is_terminal(std::string_view phase) {
  const auto* row = find_phase(phase);
  return row != nullptr && (row->kind == PhaseKind::success || row->kind == PhaseKind::failure);
}

bool survives_deletion(std::string_view phase) {
  const auto* row = find_phase(phase);
  return row != nullptr && row->survives_deletion;
}

std::string_view condition_of(std::string_view phase) {
  const auto* row = find_phase(phase);
  return row == nullptr ? first_phase.condition : row->condition;
}

async::Duration default_timeout(std::string_view phase) {
  const auto* row = find_phase(phase);
  return row == nullptr ? first_phase.default_timeout : row->default_timeout;
}

async::Duration phase_timeout(const MigrationSpec& spec, std::string_view phase) {
  return spec.stage_timeout.value_or(default_timeout(phase));
}

std::optional<hubagent::Stage> stage_from(std::string_view phase) {
  const auto* row = find_phase(phase);
  return row == nullptr ? std::nullopt : row->rollback_depth;
}

std::string_view to_string(hubagent::Stage stage) {
  const auto* row =
      std::ranges::find_if(phase_table, [&](const PhaseInfo& phase) { return phase.rollback_depth == stage; });
  return row == phase_table.end() ? std::string_view{} : row->name;
}

}  // namespace hubferry::migration
