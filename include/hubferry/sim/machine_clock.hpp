#pragma once

#include "hubferry/async/clock.hpp"

namespace hubferry::sim {

/// The wall clock of one machine, which may be off; its monotonic time is that of all.
class MachineClock final : public async::Clock {
 public:
  explicit MachineClock(async::Clock& inner) : inner_(inner) {}

  [[nodiscard]] async::TimePoint now() const override { return inner_.now(); }
  [[nodiscard]] async::WallTime wall_now() const override { return inner_.wall_now() + ahead_; }
  async::Awaitable<> sleep_until(async::TimePoint when) override { return inner_.sleep_until(when); }
  async::Awaitable<bool> try_sleep_until(async::TimePoint when) override { return inner_.try_sleep_until(when); }

  void set_ahead(async::Duration ahead) { ahead_ = ahead; }

 private:
  async::Clock& inner_;
  async::Duration ahead_{0};
};

}  // namespace hubferry::sim
