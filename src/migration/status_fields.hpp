#pragma once

#include "hubferry/migration/phases.hpp"

/// The fields of a migration's status, as Migration and read_status() read them.
namespace hubferry::migration {

using async::Duration;
using async::WallTime;
using hubagent::ClusterNames;
namespace json = boost::json;

namespace status_fields {

inline constexpr const char* started = "startTime";
inline constexpr const char* completed = "completionTime";
inline constexpr const char* cut_over = "cutOverTime";
inline constexpr const char* late_detachment = "lateDetachmentTime";

}  // namespace status_fields

/// What a StepProblem belongs to; also the fields of the status that hold them.
namespace activities {

inline constexpr const char* rollback = "rollback";
inline constexpr const char* cleanup = "cleanup";

}  // namespace activities

/// Absent also where the text is not a time.
std::optional<WallTime> time_in(const json::object& object, std::string_view field);
/// Absent where the status has the start of another phase.
std::optional<WallTime> phase_start_in(const json::object& status, std::string_view phase);
std::optional<Credential> credential_in(const json::object& status);
std::optional<hubagent::Stage> rollback_stage_in(const json::object& status);
std::vector<StepProblem> problems_in(const json::object& status, std::string_view activity);

}  // namespace hubferry::migration
