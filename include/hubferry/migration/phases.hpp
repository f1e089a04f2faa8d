#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string_view>

#include "hubferry/async/clock.hpp"
#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/migration/resource.hpp"

/// The phases of a migration: one table, from which the controller, its metrics, the CLI and the demo read all that
/// differs from phase to phase. To add a phase, add an enumerator, its name and its row here, its transitions and its
/// handler in definition.cpp, and a test. A missing row or handler does not compile, a missing transition does not
/// start, and tests hold the CRD, the alerts, the dashboard and the README against this table.
namespace hubferry::migration {

/// Pending -> Validating -> Initializing -> Deploying -> Registering -> Cleaning -> Completed
///    \___________\-> Failed    \______________\____________\-> Rollbacking -> Failed, or Cleaning for what arrived
/// Validating leads back to Pending when a placement turns out to name a cluster of another migration.
/// Cleaning ends in Completed, also with a warning; in Failed if some clusters did not arrive. It leads to Rollbacking
/// if the target has lost clusters that had arrived, and a person wants them back.
enum class MigrationPhase {
  pending,       // waits for other migrations with the same clusters or hubs, and for a free slot
  validating,    // checks the spec, the hubs and every cluster; changes nothing
  initializing,  // prepares both hubs
  deploying,     // copies the clusters' resources to the target
  registering,   // detaches the clusters from the source; they become Available on the target
  rollbacking,   // undoes the migration of clusters that did not arrive
  cleaning,      // verifies what arrived, then deletes it from the source
  completed,     // all clusters arrived
  failed,        // some did not
};

enum class PhaseKind {
  waiting,   // nothing was touched, and no slot is taken
  forward,   // clusters are on their way to the target
  rollback,  // clusters are on their way back to the source
  success,   // ended
  failure,   // ended
};

struct PhaseInfo {
  MigrationPhase phase;
  const char* name;  // in status.phase, metric labels and event reasons
  PhaseKind kind;
  const char* condition;                          // by which the phase reports
  std::chrono::minutes default_timeout;           // unless spec.supportedConfigs.stageTimeout is set
  std::optional<hubagent::Stage> rollback_depth;  // what a rollback from here has to undo; absent: nothing
  bool survives_deletion;                         // continues when the resource is deleted; others stop and roll back
  const char* heading;                            // of its column in tables of durations; empty: no column
};

/// In the order in which a migration enters them; how it can end comes last.
inline constexpr std::array<PhaseInfo, 9> phase_table{{
    {.phase = MigrationPhase::pending,
     .name = "Pending",
     .kind = PhaseKind::waiting,
     .condition = conditions::started,
     .default_timeout = std::chrono::minutes{5},
     .rollback_depth = {},
     .survives_deletion = false,
     .heading = ""},
    {.phase = MigrationPhase::validating,
     .name = "Validating",
     .kind = PhaseKind::forward,
     .condition = conditions::validated,
     .default_timeout = std::chrono::minutes{5},
     .rollback_depth = {},
     .survives_deletion = false,
     .heading = "VALID"},
    {.phase = MigrationPhase::initializing,
     .name = "Initializing",
     .kind = PhaseKind::forward,
     .condition = conditions::initialized,
     .default_timeout = std::chrono::minutes{5},
     .rollback_depth = hubagent::Stage::initializing,
     .survives_deletion = false,
     .heading = "INIT"},
    {.phase = MigrationPhase::deploying,
     .name = "Deploying",
     .kind = PhaseKind::forward,
     .condition = conditions::deployed,
     .default_timeout = std::chrono::minutes{5},
     .rollback_depth = hubagent::Stage::deploying,
     .survives_deletion = false,
     .heading = "DEPLOY"},
    {.phase = MigrationPhase::registering,
     .name = "Registering",
     .kind = PhaseKind::forward,
     .condition = conditions::registered,
     .default_timeout = std::chrono::minutes{12},
     .rollback_depth = hubagent::Stage::registering,
     .survives_deletion = false,
     .heading = "REGISTER"},
    {.phase = MigrationPhase::rollbacking,
     .name = "Rollbacking",
     .kind = PhaseKind::rollback,
     .condition = conditions::rolled_back,
     .default_timeout = std::chrono::minutes{12},
     .rollback_depth = {},
     .survives_deletion = true,
     .heading = "ROLLBACK"},
    {.phase = MigrationPhase::cleaning,
     .name = "Cleaning",
     .kind = PhaseKind::forward,
     .condition = conditions::cleaned,
     .default_timeout = std::chrono::minutes{10},
     .rollback_depth = {},
     .survives_deletion = true,
     .heading = "CLEAN"},
    {.phase = MigrationPhase::completed,
     .name = "Completed",
     .kind = PhaseKind::success,
     .condition = conditions::started,
     .default_timeout = {},
     .rollback_depth = {},
     .survives_deletion = false,
     .heading = ""},
    {.phase = MigrationPhase::failed,
     .name = "Failed",
     .kind = PhaseKind::failure,
     .condition = conditions::started,
     .default_timeout = {},
     .rollback_depth = {},
     .survives_deletion = false,
     .heading = ""},
}};

constexpr const PhaseInfo& info(MigrationPhase phase) {
  return phase_table[static_cast<std::size_t>(phase)];
}

namespace detail {

constexpr bool every_phase_has_its_row() {
  if (phase_table.size() != static_cast<std::size_t>(MigrationPhase::failed) + 1) return false;
  for (std::size_t index = 0; index < phase_table.size(); ++index)
    if (phase_table[index].phase != static_cast<MigrationPhase>(index) || phase_table[index].name == nullptr)
      return false;
  return true;
}
static_assert(every_phase_has_its_row(), "phase_table has one row for each MigrationPhase, in the same order");

}  // namespace detail

/// The names, for the phase framework, whose phases are strings.
namespace phases {

inline constexpr const char* pending = info(MigrationPhase::pending).name;
inline constexpr const char* validating = info(MigrationPhase::validating).name;
inline constexpr const char* initializing = info(MigrationPhase::initializing).name;
inline constexpr const char* deploying = info(MigrationPhase::deploying).name;
inline constexpr const char* registering = info(MigrationPhase::registering).name;
inline constexpr const char* rollbacking = info(MigrationPhase::rollbacking).name;
inline constexpr const char* cleaning = info(MigrationPhase::cleaning).name;
inline constexpr const char* completed = info(MigrationPhase::completed).name;
inline constexpr const char* failed = info(MigrationPhase::failed).name;

}  // namespace phases

/// The row of the phase that a status names. Null: the status names none yet, or one that this version does not know.
const PhaseInfo* find_phase(std::string_view name);

// What follows also answers for such names.

/// It may have touched something; so may one in an unknown phase.
bool is_active(std::string_view phase);
/// It has ended.
bool is_terminal(std::string_view phase);
/// It continues when the resource is deleted.
bool survives_deletion(std::string_view phase);
std::string_view condition_of(std::string_view phase);
async::Duration default_timeout(std::string_view phase);
/// The migration's own timeout, else the default.
async::Duration phase_timeout(const MigrationSpec& spec, std::string_view phase);

/// What a rollback from this phase has to undo; absent: nothing.
std::optional<hubagent::Stage> stage_from(std::string_view phase);
/// The phase that a rollback to this depth undoes.
std::string_view to_string(hubagent::Stage stage);

}  // namespace hubferry::migration
