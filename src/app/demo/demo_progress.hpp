#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/terminal.hpp"
#include "app/status/migration_view.hpp"

namespace hubferry::app {

/// The migrations observed so far, and their output: a pure function of the observations, without I/O.
class DemoProgress {
 public:
  explicit DemoProgress(async::TimePoint start) : start_(start) {}

  /// Records a migration's current state. Returns the changes as log lines.
  std::vector<std::string> observe(const MigrationView& migration, async::TimePoint now);

  /// One line per migration and a last one for all, for a screen that is redrawn in place. If a line is too long, its
  /// oldest times are omitted.
  [[nodiscard]] std::vector<std::string> lines(async::TimePoint now, const Terminal& terminal) const;
  /// The final table: results, and the duration of each phase.
  [[nodiscard]] std::vector<std::string> summary(const Terminal& terminal) const;
  /// The causes of the first few failed migrations. Empty if none failed.
  [[nodiscard]] std::vector<std::string> failures(const Terminal& terminal) const;

  [[nodiscard]] std::size_t migrations() const { return seen_.size(); }
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] bool all_succeeded() const;
  [[nodiscard]] std::int64_t moved() const;
  [[nodiscard]] std::int64_t total() const;
  /// From the start to the end of the last migration.
  [[nodiscard]] async::Duration took() const;

 private:
  struct Seen {
    MigrationView view;
    async::TimePoint phase_since;
    async::TimePoint first;
    std::optional<async::TimePoint> ended;
    std::vector<std::pair<std::string, async::Duration>> phases;  // completed, in order

    [[nodiscard]] std::optional<async::Duration> time_in(const std::string& phase, async::TimePoint now) const;
  };
  [[nodiscard]] std::string line(const Seen& seen, std::size_t name_width, async::TimePoint now,
                                 const Terminal& terminal) const;

  async::TimePoint start_;
  std::vector<Seen> seen_;  // by name, in natural order
};

/// "4.2s", "1m5s"
std::string demo_time(async::Duration duration);

}  // namespace hubferry::app
