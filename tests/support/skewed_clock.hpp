#pragma once

#include "hubferry/async/clock.hpp"

namespace hubferry::test {

/// The wall clock of one machine, which may be off and may be set; its monotonic time is that of the others.
class SkewedClock final : public async::Clock {
 public:
  explicit SkewedClock(async::Clock& inner, async::Duration skew = {}) : inner_(inner), skew_(skew) {}

  [[nodiscard]] async::TimePoint now() const override { return inner_.now(); }
  [[nodiscard]] async::WallTime wall_now() const override { return inner_.wall_now() + skew_; }
  async::Awaitable<> sleep_until(async::TimePoint when) override { return inner_.sleep_until(when); }
  void set(async::Duration skew) { skew_ = skew; }

 private:
  async::Clock& inner_;
  async::Duration skew_;
};

}  // namespace hubferry::test
