#pragma once

#include <string>

#include "app/status/migration_view.hpp"

namespace hubferry::app {

/// The controller's phases and steps with their state in the migration's status, one line each, indented as they are
/// nested; running steps are marked [>]. A phase that is still to come is one line; the phases of a failure are omitted
/// until there is one. `brief`: completed phases are one line too, so that the running one stays visible.
std::string migration_checklist(const MigrationView& migration, bool brief = false);

}  // namespace hubferry::app
