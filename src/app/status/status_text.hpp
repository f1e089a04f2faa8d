#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "app/status/migration_view.hpp"

namespace hubferry::app {

/// Is there a column for namespaces?
enum class NamespaceColumn { never, where_they_differ, always };

struct TableOptions {
  bool wide = false;
  NamespaceColumn namespaces = NamespaceColumn::where_they_differ;
};

/// All migrations, a line each under a heading; by namespace and name, as people count.
std::vector<std::string> migration_table(std::vector<MigrationView> migrations, const TableOptions& options,
                                         async::WallTime now, const Terminal& terminal);

/// How many failed clusters are named where there is no need to name all.
inline constexpr std::size_t clusters_named = 10;

/// One migration in full: where it stands, when it was where, what was done, and which clusters failed why.
/// `checklist`: see migration_checklist(). `most_clusters`: so many of the failed ones are named, the others counted.
std::vector<std::string> migration_details(const MigrationView& migration, const std::string& checklist,
                                           async::WallTime now, const Terminal& terminal,
                                           std::size_t most_clusters = clusters_named);

/// Why a migration failed, and the first failed clusters with their reasons. None where it did not.
std::vector<std::string> failure_lines(const MigrationView& migration, std::size_t most_clusters,
                                       const Terminal& terminal);

/// One line for a log: "default/move-three Registering 12/50 (message)".
std::string migration_line(const MigrationView& migration);

/// The colour in which a phase is shown.
Colour colour_of_phase(std::string_view phase);

}  // namespace hubferry::app
