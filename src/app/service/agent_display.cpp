#include "app/service/agent_display.hpp"

namespace hubferry::app {

namespace {

double seconds_since_1970(async::WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace

AgentDisplay::AgentDisplay(obs::Metrics& metrics, obs::Health& health, async::Clock& clock)
    : hubs_(
          metrics.gauge_family("hubferry_klusterlet_hub_info", "1 for the hub that the agent has joined.", {"server"})),
      expiry_(metrics.gauge("hubferry_klusterlet_certificate_expiry_timestamp_seconds",
                            "Expiry time of the client certificate for the current hub.")),
      expires_(std::make_shared<std::atomic<async::WallTime>>(async::WallTime::max())) {
  health.add_liveness("certificate", [expires = expires_, &clock]() -> std::optional<std::string> {
    if (clock.wall_now() < expires->load()) return std::nullopt;
    return "the certificate for the hub has expired";
  });
  health.add_readiness("agent", started_.check());
}

void AgentDisplay::show(const klusterlet::AgentView& view) {
  const bool joined = view.phase == "Joined";
  if (!hub_.empty() && (hub_ != view.hub || !joined)) hubs_.with({hub_}).set(0);
  hub_ = joined ? view.hub : std::string{};
  if (joined) hubs_.with({hub_}).set(1);
  if (!view.certificate_expires) return;
  expiry_.set(seconds_since_1970(*view.certificate_expires));
  *expires_ = *view.certificate_expires;
}

}  // namespace hubferry::app
