#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/types.hpp"

namespace hubferry::mysql {

/// A schedule as Kubernetes' CronJobs have it: minute, hour, day of month, month, day of week; `*`, lists, ranges and
/// steps; names of months and days of the week (JAN, MON); 0 and 7 are Sunday; @hourly, @daily, @midnight, @weekly,
/// @monthly, @yearly and @annually. Times are UTC. If both days are restricted, either may match.
class CronSchedule {
 public:
  /// Nothing for what is no schedule.
  static std::optional<CronSchedule> parse(std::string_view text);

  /// The first minute after `time` that matches; nothing if there is none within five years (February 30).
  [[nodiscard]] std::optional<async::WallTime> next(async::WallTime time) const;
  /// The last minute that matches, after `from` and not after `to`; nothing if there is none.
  [[nodiscard]] std::optional<async::WallTime> last_between(async::WallTime from, async::WallTime to) const;

 private:
  [[nodiscard]] bool matches_day(std::chrono::sys_days day) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<8> weekdays_;
  bool any_day_ = false;
  bool any_weekday_ = false;
};

}  // namespace hubferry::mysql
