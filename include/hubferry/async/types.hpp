#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <exception>
#include <string>

namespace hubferry::async {

namespace asio = boost::asio;
using boost::system::error_code;

using Executor = asio::any_io_executor;

template <typename T = void>
using Awaitable = asio::awaitable<T, Executor>;

using namespace std::chrono_literals;
using Duration = std::chrono::nanoseconds;

/// Monotonic time: what deadlines and delays are measured in. Its zero means nothing.
struct MonotonicTime {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicTime>;
};
using TimePoint = MonotonicTime::time_point;

/// Calendar time: what goes into objects and logs. Never used to measure.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

/// A deadline that never passes.
inline constexpr TimePoint never = TimePoint::max();

/// `from + by`, saturating at `never` instead of overflowing.
constexpr TimePoint later(TimePoint from, Duration by) {
  // From a time before zero no duration leads beyond `never`, and `never - from` would overflow.
  return from > TimePoint{} && by >= never - from ? never : from + by;
}

/// True for the exception by which Asio unwinds a cancelled coroutine.
bool is_cancellation(const std::exception_ptr& error) noexcept;

/// True for what with_deadline() throws when time is up.
bool is_timeout(const std::exception_ptr& error) noexcept;

/// A message for people: what() of the exception, or a fallback for types that have none.
std::string describe(const std::exception_ptr& error);

/// Throws the exception that means "this coroutine was cancelled".
[[noreturn]] void throw_cancelled();

}  // namespace hubferry::async
