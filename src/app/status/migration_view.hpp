#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "hubferry/migration/resource.hpp"

namespace hubferry::app {

/// A ManagedClusterMigration prepared for display: its status, and what people want to see besides. Failures are in
/// natural order.
struct MigrationView : migration::MigrationStatus {
  /// A phase that was entered, with its start and end.
  struct Span {
    std::string phase;
    std::optional<async::WallTime> start;
    std::optional<async::WallTime> end;
    bool failed = false;
  };

  kube::Key key;
  std::string from;
  std::string to;
  std::string placement;
  bool being_deleted = false;
  std::optional<async::WallTime> created;

  /// The phases that were entered, in order.
  [[nodiscard]] std::vector<Span> timeline() const;
  /// Estimated time until the remaining clusters have arrived, at the rate of this phase so far. Absent if unknown.
  [[nodiscard]] std::optional<async::Duration> time_left(async::WallTime now) const;
  /// What it does or waits for now, or how it ended.
  [[nodiscard]] std::string message() const;
};

MigrationView view_of(const kube::Object& migration);

/// Adds all failed clusters from the migration's ledger (its ConfigMap): the status lists only the first ones.
void add_failures(MigrationView& view, const kube::Object& config_map);

/// The controller's phases and steps with their state in the migration's status, one line each, indented as they are
/// nested; running steps are marked [>]. A phase that is still to come is one line; the phases of a failure are omitted
/// until there is one. `brief`: completed phases are one line too, so that the running one stays visible.
std::string migration_checklist(const MigrationView& migration, bool brief = false);

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
