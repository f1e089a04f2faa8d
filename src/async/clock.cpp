#include "hubferry/async/clock.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <stdexcept>

namespace hubferry::async {

Awaitable<bool> Clock::try_sleep_until(TimePoint when) {
  co_await sleep_until(when);
  co_return true;
}

TimePoint RealClock::now() const {
  return TimePoint{std::chrono::steady_clock::now().time_since_epoch()};
}

WallTime RealClock::wall_now() const {
  return std::chrono::system_clock::now();
}

Awaitable<> RealClock::sleep_until(TimePoint when) {
  if (!co_await try_sleep_until(when)) throw_cancelled();
}

Awaitable<bool> RealClock::try_sleep_until(TimePoint when) {
  if (when <= now()) {
    co_await asio::post(asio::deferred);
    co_return true;
  }
  const std::chrono::steady_clock::time_point expiry{when.time_since_epoch()};
  asio::steady_timer timer{co_await asio::this_coro::executor, expiry};
  const auto [cancelled] = co_await timer.async_wait(asio::as_tuple(asio::deferred));
  co_return !cancelled;
}

namespace {

using std::chrono::floor;
using std::chrono::sys_days;

/// By hand: each write to an API server has such a text, and snprintf() takes ten times as long.
void put_number(std::string& text, std::size_t at, std::size_t digits, int number) {
  for (auto digit = digits; digit-- > 0; number /= 10) text[at + digit] = static_cast<char>('0' + number % 10);
}

std::string seconds_text(WallTime time) {
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{floor<std::chrono::seconds>(time - day)};
  std::string text = "0000-00-00T00:00:00";
  put_number(text, 0, 4, static_cast<int>(date.year()));
  put_number(text, 5, 2, static_cast<int>(static_cast<unsigned>(date.month())));
  put_number(text, 8, 2, static_cast<int>(static_cast<unsigned>(date.day())));
  put_number(text, 11, 2, static_cast<int>(clock.hours().count()));
  put_number(text, 14, 2, static_cast<int>(clock.minutes().count()));
  put_number(text, 17, 2, static_cast<int>(clock.seconds().count()));
  return text;
}

/// Reads fixed-width fields off the front of a text.
class Fields {
 public:
  explicit Fields(std::string_view text) : whole_(text), rest_(text) {}

  int number(std::size_t width, int low, int high) {
    int value = 0;
    const auto field = rest_.substr(0, width);
    const auto [end, ec] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (field.size() != width || ec != std::errc{} || end != field.data() + width || value < low || value > high)
      fail();
    rest_.remove_prefix(width);
    return value;
  }

  bool accept(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail();
  }

  Duration fraction() {
    Duration::rep value = 0;
    Duration::rep unit = 1'000'000'000;
    if (rest_.empty() || !is_digit(rest_.front())) fail();
    while (!rest_.empty() && is_digit(rest_.front())) {
      unit /= 10;
      value += (rest_.front() - '0') * unit;
      rest_.remove_prefix(1);
    }
    return Duration{value};
  }

  [[nodiscard]] bool empty() const { return rest_.empty(); }

  [[noreturn]] void fail() const {
    throw std::invalid_argument("'" + std::string(whole_) + "' is not an RFC 3339 time such as 2030-01-31T12:00:00Z");
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string_view whole_;
  std::string_view rest_;
};

struct Unit {
  std::string_view name;
  Duration length;
};

// Longer names first where one begins another.
constexpr Unit units[] = {{"ns", 1ns}, {"us", 1us}, {"µs", 1us}, {"ms", 1ms}, {"s", 1s}, {"m", 1min}, {"h", 1h}};

}  // namespace

std::string format_time(WallTime time) {
  return seconds_text(time) + "Z";
}

std::string format_micro_time(WallTime time) {
  const auto micros = floor<std::chrono::microseconds>(time - floor<std::chrono::seconds>(time)).count();
  std::string text = seconds_text(time) + ".000000Z";
  put_number(text, text.size() - 7, 6, static_cast<int>(micros));
  return text;
}

WallTime parse_time(std::string_view text) {
  Fields fields{text};
  const int year = fields.number(4, 1, 9999);
  fields.expect('-');
  const int month = fields.number(2, 1, 12);
  fields.expect('-');
  const int day = fields.number(2, 1, 31);
  if (!fields.accept('T') && !fields.accept('t')) fields.expect(' ');
  const int hour = fields.number(2, 0, 23);
  fields.expect(':');
  const int minute = fields.number(2, 0, 59);
  fields.expect(':');
  const int second = fields.number(2, 0, 60);
  const Duration fraction = fields.accept('.') ? fields.fraction() : Duration{0};
  Duration offset{0};
  if (!fields.accept('Z') && !fields.accept('z')) {
    const bool west = fields.accept('-');
    if (!west) fields.expect('+');
    offset = std::chrono::hours(fields.number(2, 0, 23));
    fields.expect(':');
    offset += std::chrono::minutes(fields.number(2, 0, 59));
    if (west) offset = -offset;
  }
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!fields.empty() || !date.ok()) fields.fail();
  // The range of 64-bit nanoseconds. Go's zero time, 0001-01-01, does occur in objects.
  if (year < 1678) return WallTime::min();
  if (year > 2261) return WallTime::max();
  return WallTime{sys_days{date}} + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + fraction - offset;
}

Duration parse_duration(std::string_view text) {
  const auto fail = [&] {
    return std::invalid_argument("'" + std::string(text) + "' is not a duration such as 10s, 5m or 1h30m");
  };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return Duration{0};
  if (rest.empty()) throw fail();

  double total = 0;
  while (!rest.empty()) {
    double amount = 0;
    const auto [end, ec] = std::from_chars(rest.data(), rest.data() + rest.size(), amount, std::chars_format::fixed);
    // Numbers, to the library, are also "nan" and "inf".
    if (ec != std::errc{} || rest.front() == '-' || !std::isfinite(amount)) throw fail();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const auto* unit = std::find_if(std::begin(units), std::end(units),
                                    [&](const Unit& candidate) { return rest.starts_with(candidate.name); });
    if (unit == std::end(units)) throw fail();
    rest.remove_prefix(unit->name.size());
    total += amount * static_cast<double>(unit->length.count());
  }
  if (total > 9.2e18) throw fail();
  const auto nanos = static_cast<Duration::rep>(total);
  return Duration{negative ? -nanos : nanos};
}

std::string format_duration(Duration duration) {
  // The shortest has no positive counterpart.
  if (duration < Duration{0}) return "-" + format_duration(-std::max(duration, -Duration::max()));
  if (duration == Duration{0}) return "0s";
  if (duration < 1s) {
    for (const auto& [name, length] : {Unit{"ms", 1ms}, Unit{"us", 1us}})
      if (duration % length == Duration{0} || duration >= 10 * length)
        return std::to_string(duration / length) + std::string(name);
    return std::to_string(duration.count()) + "ns";
  }
  std::string text;
  // Not std::chrono::round, which computes with the millisecond beyond: the longest has none.
  auto rounded = std::chrono::floor<std::chrono::milliseconds>(duration);
  if (duration - rounded >= 500us) rounded += 1ms;
  const auto hours = rounded / 1h;
  const auto minutes = rounded / 1min % 60;
  const auto milliseconds = (rounded % 1min).count();
  if (hours > 0) text += std::to_string(hours) + "h";
  if (minutes > 0) text += std::to_string(minutes) + "m";
  if (milliseconds > 0) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.3f", static_cast<double>(milliseconds) / 1e3);
    std::string digits = buffer;
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
    text += digits + "s";
  }
  return text;
}

}  // namespace hubferry::async
