#pragma once

#include "hubferry/async/clock.hpp"
#include "migration/migration.hpp"

/// How long a stage may take. Functions of their arguments only.
namespace hubferry::migration {

/// `spec.supportedConfigs.stageTimeout` where it is a positive duration, else the default.
Duration stage_timeout(const Migration& migration, const Phase& phase);

/// What is wrong with the migration's own timeout: a sentence. Absent: nothing, or it has none.
std::optional<std::string> timeout_problem(const Migration& migration);

/// When a stage that began at `started` has to be over, on the clock that deadlines are measured by. A start in the
/// future (somebody set a clock back) counts as now.
async::TimePoint stage_deadline(WallTime started, Duration timeout, const async::Clock& clock);

}  // namespace hubferry::migration
