#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <map>
#include <optional>
#include <stdexcept>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/wait_list.hpp"

namespace hubferry::async {

/// A clock that stands still until its VirtualLoop has nothing else to do, then jumps to the next sleeper.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(WallTime start) : start_(start) {}

  [[nodiscard]] TimePoint now() const override { return now_; }
  [[nodiscard]] WallTime wall_now() const override { return start_ + now_.time_since_epoch() + wall_skew_; }
  Awaitable<> sleep_until(TimePoint when) override;
  Awaitable<bool> try_sleep_until(TimePoint when) override;

  /// Shifts wall time by `skew`, as when a machine's clock is corrected. Monotonic time is not affected.
  void skew_wall(Duration skew) { wall_skew_ = skew; }

  /// When the next sleeper wakes.
  [[nodiscard]] std::optional<TimePoint> next_wake_up() const;

 private:
  friend class VirtualLoop;

  /// Equal times wake in the order of their calls.
  struct Alarm {
    TimePoint when;
    std::uint64_t sequence;
    auto operator<=>(const Alarm&) const = default;
  };

  void advance_to(TimePoint when);

  WallTime start_;
  TimePoint now_{};
  Duration wall_skew_{0};
  std::uint64_t next_sequence_ = 0;
  std::map<Alarm, WaitList*> sleepers_;
};

/// One event loop on virtual time, in the calling thread: hours pass in milliseconds, and the same program
/// takes the same steps every time. Real sockets do not belong here.
class VirtualLoop {
 public:
  /// Starts at 2030-01-01T00:00:00Z.
  VirtualLoop();
  explicit VirtualLoop(WallTime start);
  ~VirtualLoop();

  [[nodiscard]] Executor executor() { return context_->get_executor(); }
  [[nodiscard]] VirtualClock& clock() { return clock_; }

  /// Runs `task` to its end, letting time pass as needed, and returns its result or throws its error.
  /// Throws std::runtime_error on a deadlock: nothing is ready and no timer is pending.
  template <typename T>
  T run(Awaitable<T> task);

  /// Lets `span` of virtual time pass.
  void run_for(Duration span) { run_until(later(clock_.now(), span)); }
  void run_until(TimePoint when);
  /// Runs what can run at this very instant.
  void run_ready();
  /// Steps taken so far: two runs of one seed must agree.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  /// False when nothing is ready and no timer is pending.
  bool step_until(TimePoint limit);

  VirtualClock clock_;
  std::uint64_t steps_ = 0;
  std::unique_ptr<asio::io_context> context_;
};

template <typename T>
T VirtualLoop::run(Awaitable<T> task) {
  std::exception_ptr error;
  bool finished = false;
  if constexpr (std::is_void_v<T>) {
    asio::co_spawn(executor(), std::move(task), [&](std::exception_ptr e) {
      finished = true;
      error = e;
    });
    while (!finished && step_until(never)) {
    }
  } else {
    std::optional<T> result;
    asio::co_spawn(executor(), std::move(task), [&](std::exception_ptr e, T value) {
      finished = true;
      error = e;
      if (!e) result.emplace(std::move(value));
    });
    while (!finished && step_until(never)) {
    }
    if (finished && !error) return std::move(*result);
  }
  if (!finished) throw std::runtime_error("deadlock: the task waits, nothing is ready and no timer is pending");
  if (error) std::rethrow_exception(error);
  if constexpr (!std::is_void_v<T>) std::terminate();
}

}  // namespace hubferry::async
