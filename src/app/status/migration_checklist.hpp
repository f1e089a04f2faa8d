#pragma once

#include <string>

#include "app/status/migration_view.hpp"

namespace hubferry::app {

/// What a migration has done and what is still to be done: the controller's own steps, ticked off as its status says.
/// A line each, indented as the steps are nested; what runs now is marked [>]. Phases that were not entered are one
/// line while they are still to come; those of a failure are left out until there is one. `brief`: the same for phases
/// that are done, so that what happens now is in sight.
std::string migration_checklist(const MigrationView& migration, bool brief = false);

}  // namespace hubferry::app
