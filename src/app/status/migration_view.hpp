#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/object.hpp"
#include "hubferry/phase/state.hpp"

namespace hubferry::app {

/// A ManagedClusterMigration as a person wants to see it. Whatever is missing in the object is empty or zero here.
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
  /// A phase that was entered, and when it was left.
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
  std::vector<Failure> failures;      // as people count
  std::vector<std::string> problems;  // what a rollback or cleanup could not do
  phase::States states;

  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] bool has_succeeded() const;
  /// It failed, or is being rolled back.
  [[nodiscard]] bool is_failing() const;
  /// The condition that tells why it is failing. Null: it is not, or nobody said why.
  [[nodiscard]] const Condition* cause() const;
  /// The condition that changed last: what it says is the news.
  [[nodiscard]] const Condition* news() const;
  /// The phases in order, as far as they were entered.
  [[nodiscard]] std::vector<Span> timeline() const;
  /// When the rest will have arrived if it goes on as since the phase began. Absent where nobody can tell.
  [[nodiscard]] std::optional<async::Duration> time_left(async::WallTime now) const;
};

MigrationView view_of(const kube::Object& migration);

/// Brings in all clusters that failed, from the data of the migration's ConfigMap: its status has only the first.
void add_failures(MigrationView& view, const kube::Object& config_map);

/// A duration as kubectl shows ages: "45s", "3m20s", "75m", "5h10m", "3d".
std::string short_duration(async::Duration duration);

}  // namespace hubferry::app
