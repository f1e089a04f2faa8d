#pragma once

#include "hubferry/phase/default_definition.hpp"
#include "migration/transitions.hpp"

/// What each phase does: one tree of handlers in each file phase_*.cpp.
namespace hubferry::migration {

Handler pending_phase();
Handler validating_phase();
Handler initializing_phase();
Handler deploying_phase();
Handler registering_phase();
Handler rollbacking_phase();
Handler cleaning_phase();

using Definition = phase::DefaultDefinition<Services, Migration>;

/// Phases, transitions and handlers.
void declare(Definition& definition);

}  // namespace hubferry::migration
