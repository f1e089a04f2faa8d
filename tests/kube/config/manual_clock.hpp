#pragma once

#include "hubferry/async/clock.hpp"
#include "hubferry/async/wait_list.hpp"

namespace hubferry::test {

/// A clock that a test moves by hand: for real processes on a real loop whose deadlines must not take real time.
class ManualClock final : public async::Clock {
 public:
  [[nodiscard]] async::TimePoint now() const override { return now_; }
  [[nodiscard]] async::WallTime wall_now() const override { return start() + now_.time_since_epoch(); }
  async::Awaitable<> sleep_until(async::TimePoint when) override {
    while (now_ < when) co_await sleepers_.wait();
  }

  void advance(async::Duration span) {
    now_ += span;
    sleepers_.wake_all();
  }

  static async::WallTime start() { return async::parse_time("2030-01-01T00:00:00Z"); }

 private:
  async::TimePoint now_{};
  async::WaitList sleepers_;
};

}  // namespace hubferry::test
