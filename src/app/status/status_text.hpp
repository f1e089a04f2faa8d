#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "app/status/migration_view.hpp"

namespace hubferry::app {

/// When the table has a column for namespaces.
enum class NamespaceColumn { never, where_they_differ, always };

struct TableOptions {
  bool wide = false;
  NamespaceColumn namespaces = NamespaceColumn::where_they_differ;
};

/// All migrations, one line each below a heading; sorted by namespace and name, in natural order.
std::vector<std::string> migration_table(std::vector<MigrationView> migrations, const TableOptions& options,
                                         async::WallTime now, const Terminal& terminal);

/// How many failed clusters are listed by default.
inline constexpr std::size_t default_listed_clusters = 10;

/// One migration in detail: phase, timeline, steps, conditions, and the failed clusters with their reasons.
/// `checklist`: see migration_checklist(). `most_clusters`: the number of failed clusters to list; the others are
/// counted.
std::vector<std::string> migration_details(const MigrationView& migration, const std::string& checklist,
                                           async::WallTime now, const Terminal& terminal,
                                           std::size_t most_clusters = default_listed_clusters);

/// The cause of a failed migration, and its first failed clusters with their reasons. Empty if it did not fail.
std::vector<std::string> failure_lines(const MigrationView& migration, std::size_t most_clusters,
                                       const Terminal& terminal);

/// One log line: "default/move-three Registering 12/50 (message)".
std::string migration_line(const MigrationView& migration);

/// The colour of a phase.
Colour colour_of_phase(std::string_view phase);

}  // namespace hubferry::app
