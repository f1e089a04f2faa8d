#include "hubferry/obs/loop_pulse.hpp"

namespace hubferry::obs {

LoopPulse::LoopPulse(async::Clock& clock, Timing timing) : clock_(clock), timing_(timing), last_beat_(clock.now()) {}

async::Awaitable<> LoopPulse::run() {
  for (;;) {
    beat();
    co_await clock_.sleep_for(timing_.beat);
  }
}

Health::Check LoopPulse::check() const {
  return [this]() -> std::optional<std::string> {
    const auto silence = clock_.now() - last_beat_.load();
    if (silence < timing_.stuck_after) return std::nullopt;
    return "the event loop has been blocked for " + async::format_duration(silence);
  };
}

}  // namespace hubferry::obs
