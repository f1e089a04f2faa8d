#pragma once

#include <string>

#include "hubferry/async/types.hpp"

namespace hubferry::async {

/// Where all time comes from: deadlines, delays and timestamps.
/// Controllers get one injected, so that tests run hours in milliseconds.
class Clock {
 public:
  virtual ~Clock() = default;

  [[nodiscard]] virtual TimePoint now() const = 0;
  [[nodiscard]] virtual WallTime wall_now() const = 0;

  /// Suspends until `when`; at once if that has passed. Cancellation: terminal.
  virtual Awaitable<> sleep_until(TimePoint when) = 0;

  /// The same for a sleep that is cancelled more often than not, such as that of a deadline: false if it was, where
  /// sleep_until() throws, which costs a hundred times as much. The caller's next co_await throws.
  virtual Awaitable<bool> try_sleep_until(TimePoint when);

  Awaitable<> sleep_for(Duration delay) { return sleep_until(later(now(), delay)); }
};

/// The machine's own clocks. Stateless; usable from every loop.
class RealClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override;
  [[nodiscard]] WallTime wall_now() const override;
  Awaitable<> sleep_until(TimePoint when) override;
  Awaitable<bool> try_sleep_until(TimePoint when) override;
};

/// RFC 3339 in UTC, as Kubernetes writes it: whole seconds (metav1.Time) or microseconds (metav1.MicroTime).
std::string format_time(WallTime time);
std::string format_micro_time(WallTime time);

/// Reads either form; throws std::invalid_argument naming the text. Times outside 1678 to 2261 are clamped to the
/// earliest or latest time that can be represented.
WallTime parse_time(std::string_view text);

/// "1h2m3s", "250ms", "-5s": Go's notation, which Kubernetes users type. Throws std::invalid_argument naming the text.
Duration parse_duration(std::string_view text);
std::string format_duration(Duration duration);

}  // namespace hubferry::async
