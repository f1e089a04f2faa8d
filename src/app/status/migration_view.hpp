#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/phase/state.hpp"

namespace hubferry::app {

/// A ManagedClusterMigration prepared for display. Fields that are absent in the object are empty or zero.
struct MigrationView {
  struct Clusters {
    std::int64_t total = 0;
    std::int64_t pending = 0;
    std::int64_t migrating = 0;
    std::int64_t migrated = 0;
    std::int64_t failed = 0;
    std::int64_t rolled_back = 0;
  };
  struct Condition {
    std::string type;
    std::string status;
    std::string reason;
    std::string message;
    std::optional<async::WallTime> changed;
  };
  struct Failure {
    std::string cluster;
    std::string stage;
    std::string reason;
    std::string message;
  };
  /// A phase that was entered, with its start and end.
  struct Span {
    std::string phase;
    std::optional<async::WallTime> start;
    std::optional<async::WallTime> end;
    bool failed = false;
  };

  kube::Key key;
  std::string phase;
  std::string from;
  std::string to;
  std::string placement;
  bool being_deleted = false;
  Clusters clusters;
  std::optional<async::WallTime> created;
  std::optional<async::WallTime> started;
  std::optional<async::WallTime> completed;
  std::optional<async::WallTime> phase_started;
  std::vector<Condition> conditions;
  std::vector<Failure> failures;      // in natural order
  std::vector<std::string> problems;  // steps of a rollback or cleanup that failed
  phase::States states;

  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] bool has_succeeded() const;
  /// True if it failed or is being rolled back.
  [[nodiscard]] bool is_failing() const;
  /// The condition with the cause of the failure. Null if it is not failing, or no condition says why.
  [[nodiscard]] const Condition* cause() const;
  /// The condition that changed last.
  [[nodiscard]] const Condition* latest_condition() const;
  /// The phases that were entered, in order.
  [[nodiscard]] std::vector<Span> timeline() const;
  /// Estimated time until the remaining clusters have arrived, at the rate of this phase so far. Absent if unknown.
  [[nodiscard]] std::optional<async::Duration> time_left(async::WallTime now) const;
};

MigrationView view_of(const kube::Object& migration);

/// Adds all failed clusters from the migration's ledger (its ConfigMap): the status lists only the first ones.
void add_failures(MigrationView& view, const kube::Object& config_map);

}  // namespace hubferry::app
