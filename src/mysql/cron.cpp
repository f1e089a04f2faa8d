#include "mysql/cron.hpp"

#include <charconv>
#include <vector>

namespace hubferry::mysql {

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

/// One field: "*", "5", "1-5", "*/15", "1-20/5", or several with commas. False: it is none.
template <std::size_t Size>
bool read_field(std::string_view text, std::size_t first, std::size_t last, std::bitset<Size>& set) {
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
    if (part != "*") {
      const auto dash = part.find('-');
      const auto from = number_in(part.substr(0, dash));
      if (!from) return false;
      low = *from;
      high = slash == std::string_view::npos ? low : last;
      if (dash != std::string_view::npos) {
        const auto to = number_in(part.substr(dash + 1));
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
  std::vector<std::string_view> fields;
  for (const auto part : split(text, ' '))
    if (!part.empty()) fields.push_back(part);
  CronSchedule schedule;
  if (fields.size() != 5 || !read_field(fields[0], 0, 59, schedule.minutes_) ||
      !read_field(fields[1], 0, 23, schedule.hours_) || !read_field(fields[2], 1, 31, schedule.days_) ||
      !read_field(fields[3], 1, 12, schedule.months_) || !read_field(fields[4], 0, 7, schedule.weekdays_))
    return std::nullopt;
  if (schedule.weekdays_[7]) schedule.weekdays_.set(0);
  schedule.any_day_ = fields[2].starts_with('*');
  schedule.any_weekday_ = fields[4].starts_with('*');
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

}  // namespace hubferry::mysql
