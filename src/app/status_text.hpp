#pragma once

#include <string>
#include <vector>

#include "app/migration_view.hpp"
#include "app/terminal.hpp"

namespace hubferry::app {

struct TableOptions {
  bool wide = false;
  bool namespaces = true;  // a column for them
};

/// All migrations, a line each under a heading; by namespace and name.
std::vector<std::string> migration_table(std::vector<MigrationView> migrations, const TableOptions& options,
                                         async::WallTime now, const Terminal& terminal);

/// One migration in full: where it stands, when it was where, what was done, and which clusters failed why.
/// `checklist`: see migration_checklist().
std::vector<std::string> migration_details(const MigrationView& migration, const std::string& checklist,
                                           async::WallTime now, const Terminal& terminal);

/// One line for a log: "default/move-three Registering 12/50 (message)".
std::string migration_line(const MigrationView& migration);

/// The colour in which a phase is shown.
Colour colour_of_phase(std::string_view phase);

}  // namespace hubferry::app
