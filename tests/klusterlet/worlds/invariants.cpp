#include <algorithm>

#include "hubferry/ocm/resources.hpp"
#include "inhabitants.hpp"

// What must hold in every world.
namespace hubferry::klusterlet::worlds {

void AgentWorld::check() {
  for (std::size_t hub = 0; hub < hubs_.size(); ++hub) see_requests(hub);
  for (std::size_t agent = 0; agent < machines_.size(); ++agent) {
    check_hunger(agent);
    check_overlap(agent);
  }
}

/// Heartbeats as they arrive at a hub.
void AgentWorld::see_requests(std::size_t hub) {
  constexpr std::string_view prefix = "cluster";
  for (const auto& request : hubs_[hub]->server.requests()) {
    if (request.verb != "update" || !request.resource.starts_with("leases") || !request.key.ns.starts_with(prefix))
      continue;
    if (!request.user.starts_with("system:open-cluster-management:") || !request.outcome.starts_with("ok")) continue;
    const auto agent = std::stoul(request.key.ns.substr(prefix.size()));
    watched_.at(agent).renewed[hub] = request.at;
    ++heartbeats_;
  }
  hubs_[hub]->server.forget_requests();
}

bool AgentWorld::would_take(std::size_t index, std::size_t agent) const {
  const auto& hub = *hubs_[index];
  const auto& machine = *machines_[agent];
  if (hub.outages > 0 || hub.revocations > 0) return false;
  for (const auto& [detail, count] : hub.faults)
    if (count > 0 && is_severe(detail)) return false;
  const auto list = machine.store.bootstraps();
  const auto listed = std::ranges::find(list, hub.server.name(), &BootstrapConfig::name);
  if (listed == list.end() || why_unparsable(*listed)) return false;
  const auto cluster = hub.server.object(ocm::managed_clusters, {{}, cluster_name(agent)});
  if (!cluster) return true;
  const auto* accepts = cluster->find({"spec", "hubAcceptsClient"});
  return !cluster->is_being_deleted() && accepts != nullptr && accepts->is_bool() && accepts->get_bool();
}

void AgentWorld::check_hunger(std::size_t agent) {
  auto& watched = watched_[agent];
  const auto& machine = *machines_[agent];
  const auto now = loop_.clock().now();
  const bool alive = machine.killed == 0;
  const bool fed = std::ranges::any_of(watched.renewed,
                                       [&](const auto& entry) { return now - entry.second <= longest_period + tick; });
  for (std::size_t hub = 0; hub < hubs_.size(); ++hub) {
    if (!alive || fed || !would_take(hub, agent)) {
      watched.starving.erase(hub);
      continue;
    }
    const auto since = watched.starving.try_emplace(hub, now).first->second;
    if (now - std::max(since, machine.started) > stated_time(plan_.hubs))
      violation(agent, "is without a hub although " + hubs_[hub]->server.name() + " would take it since " +
                           async::format_duration(now - since));
  }
}

void AgentWorld::check_overlap(std::size_t agent) {
  auto& watched = watched_[agent];
  const auto now = loop_.clock().now();
  const auto fresh =
      std::ranges::count_if(watched.renewed, [&](const auto& entry) { return now - entry.second <= longest_period; });
  if (fresh < 2) {
    watched.doubled.reset();
    return;
  }
  if (!watched.doubled) watched.doubled = now;
  if (now - *watched.doubled > longest_overlap)
    violation(agent, "has fresh Leases on two hubs for " + async::format_duration(now - *watched.doubled));
}

void AgentWorld::violation(std::size_t agent, const std::string& text) {
  if (std::exchange(watched_[agent].reported, true)) return;
  violations_ +=
      async::format_duration(std::chrono::duration_cast<std::chrono::seconds>(loop_.clock().now().time_since_epoch())) +
      ": " + cluster_name(agent) + " " + text + "\n";
}

std::string AgentWorld::fingerprint() const {
  std::string text = std::to_string(loop_.steps()) + " steps, " + std::to_string(heartbeats_) + " heartbeats";
  for (const auto& hub : hubs_) text += ", " + std::to_string(hub->server.resource_version());
  return text;
}

}  // namespace hubferry::klusterlet::worlds
