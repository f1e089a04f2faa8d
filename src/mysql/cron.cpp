#include "mysql/cron.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <span>
#include <utility>
#include <vector>

namespace hubferry::mysql {

using namespace std::chrono_literals;

namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 12> month_names{"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                       "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> weekday_names{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

/// A number, or one of `names`, the first of which is `first`.
std::optional<std::size_t> value_in(std::string_view text, std::size_t first, Names names) {
  const auto same = [&](std::string_view name) {
    return std::ranges::equal(text, name, {}, [](unsigned char c) { return std::toupper(c); });
  };
  const auto found = std::ranges::find_if(names, same);
  if (found != names.end()) return first + static_cast<std::size_t>(found - names.begin());
  return number_in(text);
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> schedule_macros{{{"@hourly", "0 * * * *"},
                                                                                        {"@daily", "0 0 * * *"},
                                                                                        {"@midnight", "0 0 * * *"},
                                                                                        {"@weekly", "0 0 * * 0"},
                                                                                        {"@monthly", "0 0 1 * *"},
                                                                                        {"@yearly", "0 0 1 1 *"},
                                                                                        {"@annually", "0 0 1 1 *"}}};

/// One field: "*", "5", "1-5", "*/15", "1-20/5", or several with commas. False: it is none.
template <std::size_t Size>
bool read_field(std::string_view text, std::size_t first, std::size_t last, std::bitset<Size>& set, Names names = {}) {
  for (auto part : split(text, ',')) {
    std::size_t step = 1;
    const auto slash = part.find('/');
    if (slash != std::string_view::npos) {
      const auto given = number_in(part.substr(slash + 1));
      if (!given || *given == 0) return false;
      step = *given;
      part = part.substr(0, slash);
    }
    std::size_t low = first;
    std::size_t high = last;
    if (part != "*" && part != "?") {
      const auto dash = part.find('-');
      const auto from = value_in(part.substr(0, dash), first, names);
      if (!from) return false;
      low = *from;
      high = slash == std::string_view::npos ? low : last;
      if (dash != std::string_view::npos) {
        const auto to = value_in(part.substr(dash + 1), first, names);
        if (!to) return false;
        high = *to;
      }
    }
    if (low < first || high > last || low > high) return false;
    for (auto value = low; value <= high; value += step) set.set(value);
  }
  return true;
}

}  // namespace

std::optional<CronSchedule> CronSchedule::parse(std::string_view text) {
  if (const auto macro =
          std::ranges::find(schedule_macros, text, &std::pair<std::string_view, std::string_view>::first);
      macro != schedule_macros.end())
    text = macro->second;
  std::vector<std::string_view> fields;
  for (const auto part : split(text, ' '))
    if (!part.empty()) fields.push_back(part);
  CronSchedule schedule;
  if (fields.size() != 5 || !read_field(fields[0], 0, 59, schedule.minutes_) ||
      !read_field(fields[1], 0, 23, schedule.hours_) || !read_field(fields[2], 1, 31, schedule.days_) ||
      !read_field(fields[3], 1, 12, schedule.months_, month_names) ||
      !read_field(fields[4], 0, 7, schedule.weekdays_, weekday_names))
    return std::nullopt;
  if (schedule.weekdays_[7]) schedule.weekdays_.set(0);
  const auto is_any = [](std::string_view field) { return field == "*" || field == "?"; };
  schedule.any_day_ = is_any(fields[2]);
  schedule.any_weekday_ = is_any(fields[4]);
  return schedule;
}

bool CronSchedule::matches_day(std::chrono::sys_days day) const {
  const std::chrono::year_month_day date{day};
  if (!months_[static_cast<unsigned>(date.month())]) return false;
  const bool is_day = days_[static_cast<unsigned>(date.day())];
  const bool is_weekday = weekdays_[std::chrono::weekday{day}.c_encoding()];
  return any_day_ || any_weekday_ ? is_day && is_weekday : is_day || is_weekday;
}

std::optional<async::WallTime> CronSchedule::next(async::WallTime time) const {
  using namespace std::chrono;
  const auto after = floor<minutes>(time);
  const auto today = floor<days>(time);
  for (auto day = today; day < today + days{5 * 366}; day += days{1}) {
    if (!matches_day(sys_days{day.time_since_epoch()})) continue;
    for (unsigned hour = 0; hour < 24; ++hour) {
      if (!hours_[hour]) continue;
      for (unsigned minute = 0; minute < 60; ++minute) {
        const auto candidate = day + hours{hour} + minutes{minute};
        if (minutes_[minute] && candidate > after) return async::WallTime{candidate.time_since_epoch()};
      }
    }
  }
  return std::nullopt;
}

std::optional<async::WallTime> CronSchedule::last_between(async::WallTime from, async::WallTime to) const {
  // From the end, in windows that grow: a schedule of every minute that was not followed for a year has half a million.
  constexpr std::array<std::chrono::hours, 3> windows{1h, 24h, 24h * 32};
  auto start = from;
  for (const auto window : windows) {
    const auto first = next(std::max(from, to - window));
    if (!first || *first > to) continue;
    start = std::max(from, to - window);
    break;
  }
  std::optional<async::WallTime> found;
  for (auto match = next(start); match && *match <= to; match = next(*match)) found = match;
  return found;
}

}  // namespace hubferry::mysql
