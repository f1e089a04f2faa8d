#pragma once

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
};

MigrationView view_of(const kube::Object& migration);

/// Adds all failed clusters from the migration's ledger (its ConfigMap): the status lists only the first ones.
void add_failures(MigrationView& view, const kube::Object& config_map);

}  // namespace hubferry::app
