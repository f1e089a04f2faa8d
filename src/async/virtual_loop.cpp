#include "hubferry/async/virtual_loop.hpp"

#include <boost/asio/post.hpp>

#include "hubferry/async/loops.hpp"

namespace hubferry::async {

namespace {

constexpr WallTime default_start{std::chrono::sys_days{std::chrono::year{2030} / 1 / 1}};

}  // namespace

Awaitable<> VirtualClock::sleep_until(TimePoint when) {
  if (!co_await try_sleep_until(when)) throw_cancelled();
}

Awaitable<bool> VirtualClock::try_sleep_until(TimePoint when) {
  if (when <= now_) {
    // A turn of the loop passes, as with a real timer: a loop of expired sleeps cannot starve its neighbours.
    co_await asio::post(asio::deferred);
    co_return true;
  }
  WaitList waiter;
  const Alarm alarm{when, next_sequence_++};
  struct Registration {
    VirtualClock& clock;
    Alarm alarm;
    ~Registration() { clock.sleepers_.erase(alarm); }
  } registration{*this, alarm};
  sleepers_.emplace(alarm, &waiter);
  const auto [cancelled] = co_await waiter.try_wait();
  co_return !cancelled;
}

std::optional<TimePoint> VirtualClock::next_wake_up() const {
  if (sleepers_.empty() || sleepers_.begin()->first.when == never) return std::nullopt;
  return sleepers_.begin()->first.when;
}

void VirtualClock::advance_to(TimePoint when) {
  now_ = std::max(now_, when);
  while (!sleepers_.empty() && sleepers_.begin()->first.when <= now_) {
    sleepers_.begin()->second->wake_one();
    sleepers_.erase(sleepers_.begin());
  }
}

VirtualLoop::VirtualLoop() : VirtualLoop(default_start) {}

VirtualLoop::VirtualLoop(WallTime start) : clock_(start), context_(std::make_unique<asio::io_context>(1)) {}

VirtualLoop::~VirtualLoop() {
  LoopDestruction mark;
  context_.reset();
}

void VirtualLoop::run_until(TimePoint when) {
  while (step_until(when)) {
  }
  clock_.advance_to(when);
  run_ready();
}

void VirtualLoop::run_ready() {
  while (const auto ran = context_->poll()) {
    steps_ += ran;
    context_->restart();
  }
  context_->restart();
}

bool VirtualLoop::step_until(TimePoint limit) {
  const auto ran = context_->poll();
  context_->restart();
  steps_ += ran;
  if (ran > 0) return true;
  const auto next = clock_.next_wake_up();
  if (!next || *next > limit) return false;
  clock_.advance_to(*next);
  return true;
}

}  // namespace hubferry::async
