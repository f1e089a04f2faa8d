#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/terminal.hpp"
#include "app/status/migration_view.hpp"

namespace hubferry::app {

/// What a spectator of migrations has seen so far, and how it is told: a function of what was observed, without I/O.
class DemoProgress {
 public:
  explicit DemoProgress(async::TimePoint start) : start_(start) {}

  /// A migration as it is now. Returns what is new, as lines for a log: none when nothing is.
  std::vector<std::string> observe(const MigrationView& migration, async::TimePoint now);

  /// One line for each migration, and at last one for all: for a screen that changes in place. Of what does not fit
  /// into its width the oldest times are left out.
  [[nodiscard]] std::vector<std::string> lines(async::TimePoint now, const Terminal& terminal) const;
  /// The table at the end: results, and how long each phase took.
  [[nodiscard]] std::vector<std::string> summary(const Terminal& terminal) const;
  /// Why migrations failed, the first few of them. None where all is well.
  [[nodiscard]] std::vector<std::string> failures(const Terminal& terminal) const;

  [[nodiscard]] std::size_t migrations() const { return seen_.size(); }
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] bool all_succeeded() const;
  [[nodiscard]] std::int64_t moved() const;
  [[nodiscard]] std::int64_t total() const;
  [[nodiscard]] std::int64_t errors() const;
  /// From the start to the last end.
  [[nodiscard]] async::Duration took() const;

 private:
  struct Seen {
    MigrationView view;
    async::TimePoint phase_since;
    async::TimePoint first;
    std::optional<async::TimePoint> ended;
    std::vector<std::pair<std::string, async::Duration>> phases;  // left, in order

    [[nodiscard]] std::optional<async::Duration> time_in(const std::string& phase, async::TimePoint now) const;
  };
  [[nodiscard]] std::string line(const Seen& seen, std::size_t name_width, async::TimePoint now,
                                 const Terminal& terminal) const;

  async::TimePoint start_;
  std::vector<Seen> seen_;  // by name, as people count
};

/// "4.2s", "1m5s"
std::string demo_time(async::Duration duration);

}  // namespace hubferry::app
