#include <algorithm>
#include <tuple>

#include "hubferry/ocm/resources.hpp"
#include "inhabitants.hpp"

// What must hold in every world.
namespace hubferry::klusterlet::worlds {

namespace {

std::string at(async::TimePoint when) {
  return async::format_duration(std::chrono::duration_cast<std::chrono::seconds>(when.time_since_epoch()));
}

}  // namespace

void AgentWorld::check() {
  note_flaws();
  see_heartbeats();
  for (std::size_t agent = 0; agent < machines_.size(); ++agent) {
    check_hunger(agent);
    check_overlap(agent);
    check_denial(agent);
  }
}

/// Heartbeats as they arrived at the hubs, in their order.
void AgentWorld::see_heartbeats() {
  constexpr std::string_view prefix = "cluster";
  struct Heartbeat {
    async::TimePoint at;
    std::size_t hub;
    std::size_t agent;
  };
  std::vector<Heartbeat> all;
  for (std::size_t hub = 0; hub < hubs_.size(); ++hub) {
    for (const auto& request : hubs_[hub]->server.requests()) {
      if (request.verb != "update" || !request.resource.starts_with("leases") || !request.key.ns.starts_with(prefix))
        continue;
      if (!request.user.starts_with("system:open-cluster-management:") || !request.outcome.starts_with("ok")) continue;
      all.push_back({request.at, hub, std::stoul(request.key.ns.substr(prefix.size()))});
    }
    hubs_[hub]->server.forget_requests();
  }
  std::ranges::sort(all, {}, [](const Heartbeat& one) { return std::tuple{one.at, one.hub, one.agent}; });
  for (const auto& [at, hub, agent] : all) {
    auto& watched = watched_.at(agent);
    if (watched.hub && *watched.hub != hub) check_departure(agent, *watched.hub, at);
    watched.hub = hub;
    watched.renewed[hub] = at;
    ++heartbeats_;
  }
}

void AgentWorld::note_flaws() {
  const auto now = loop_.clock().now();
  for (std::size_t hub = 0; hub < hubs_.size(); ++hub)
    for (std::size_t agent = 0; agent < machines_.size(); ++agent)
      if (!is_flawless(hub, agent)) watched_[agent].flawed[hub].insert(now);
}

bool AgentWorld::accepts(std::size_t hub, std::size_t agent) const {
  const auto cluster = hubs_[hub]->server.object(ocm::managed_clusters, {{}, cluster_name(agent)});
  if (!cluster) return true;
  const auto* accepts = cluster->find({"spec", "hubAcceptsClient"});
  return !cluster->is_being_deleted() && accepts != nullptr && accepts->is_bool() && accepts->get_bool();
}

/// True if an agent that is registered there has no reason at all to leave. Neither its disk nor its clock nor the
/// rights of its bootstrap credential are one. Nor is a broken entry of the list, but that is for the stores to see to,
/// which this world replaces.
bool AgentWorld::is_flawless(std::size_t index, std::size_t agent) const {
  const auto& hub = *hubs_[index];
  const auto& machine = *machines_[agent];
  const auto wanted = [&](const std::map<std::size_t, int>& edits) {
    const auto found = edits.find(index);
    return found == edits.end() || found->second == 0;
  };
  return hub.outages == 0 && std::ranges::all_of(hub.faults, [](const auto& fault) { return fault.second == 0; }) &&
         wanted(machine.removed) && wanted(machine.broken) && accepts(index, agent);
}

/// A heartbeat has reached another hub: was there a reason to leave the one before?
void AgentWorld::check_departure(std::size_t agent, std::size_t left, async::TimePoint arrived) {
  const auto& watched = watched_[agent];
  const auto& machine = *machines_[agent];
  const auto last = watched.renewed.at(left);
  const bool restarted = machine.started > last;
  const bool stopped = machine.clock.stopped_until() > last;
  // It has no memory of the hub that it was on.
  if (restarted && machine.disk_failed) return;
  // A process that ran on has left at the latest when the hub counts as lost.
  const auto latest = restarted || stopped ? arrived : std::min(arrived, last + connection_timeout + 1min);
  const auto found = watched.flawed.find(left);
  if (found != watched.flawed.end()) {
    const auto flaw = found->second.lower_bound(last - 1min);
    if (flaw != found->second.end() && *flaw <= latest + 2 * tick) return;
  }
  violation(agent, Invariant::stays,
            "has left " + hubs_[left]->server.name() + " between " + at(last) + " and " + at(latest) +
                " although nothing was wrong there");
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
  return accepts(index, agent);
}

bool AgentWorld::is_fed(std::size_t agent) const {
  const auto now = env_.clock.now();
  return std::ranges::any_of(watched_[agent].renewed,
                             [&](const auto& entry) { return now - entry.second <= longest_period + tick; });
}

void AgentWorld::check_hunger(std::size_t agent) {
  auto& watched = watched_[agent];
  const auto& machine = *machines_[agent];
  const auto now = loop_.clock().now();
  // A process that cannot read which hub it was on waits: another one would be a second hub for its cluster.
  const bool ignorant = machine.dead > 0 && machine.started > machine.unreadable_since;
  const bool alive = machine.killed == 0 && !ignorant && machine.clock.stopped_until() < now;
  const bool fed = is_fed(agent);
  for (std::size_t hub = 0; hub < hubs_.size(); ++hub) {
    if (!alive || fed || !would_take(hub, agent)) {
      watched.starving.erase(hub);
      continue;
    }
    const auto since = watched.starving.try_emplace(hub, now).first->second;
    if (now - std::max(since, machine.started) > stated_time(plan_.hubs))
      violation(agent, Invariant::fed,
                "is without a hub although " + hubs_[hub]->server.name() + " would take it since " +
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
  if (now - *watched.doubled > longest_overlap + tick)
    violation(agent, Invariant::alone,
              "has fresh Leases on two hubs for " + async::format_duration(now - *watched.doubled));
}

/// True if nothing at all is wrong, but for what hubs say about the cluster.
bool AgentWorld::is_calm(std::size_t agent) const {
  const auto none = [](const auto& counts) {
    return std::ranges::all_of(counts, [](const auto& entry) { return entry.second == 0; });
  };
  const auto& machine = *machines_[agent];
  const bool runs = machine.killed == 0 && machine.clock.stopped_until() < env_.clock.now();
  const bool alone = runs && machine.full + machine.dead == 0;
  return alone && none(machine.removed) && none(machine.broken) && std::ranges::all_of(hubs_, [&](const auto& hub) {
           return hub->outages == 0 && hub->revocations == 0 && none(hub->faults);
         });
}

void AgentWorld::check_denial(std::size_t agent) {
  auto& watched = watched_[agent];
  const auto now = loop_.clock().now();
  const bool calm = is_calm(agent);
  // One that registers elsewhere has left, though no other hub has seen a heartbeat yet.
  const auto* process = machines_[agent]->process;
  const bool stays = watched.hub && process != nullptr && process->view().hub == hubs_[*watched.hub]->url;
  const bool denied = stays && !accepts(*watched.hub, agent);
  bool another = false;
  for (std::size_t hub = 0; hub < hubs_.size(); ++hub) another = another || would_take(hub, agent);
  const bool was_settled = std::exchange(watched.settled, calm && !denied && is_fed(agent));
  if (!calm || !denied || !another) {
    watched.denied.reset();
    return;
  }
  if (was_settled) watched.denied = now;
  if (watched.denied && now - *watched.denied > longest_denial)
    violation(agent, Invariant::obeys,
              "stays on " + hubs_[*watched.hub]->server.name() + ", which denies it since " +
                  async::format_duration(now - *watched.denied));
}

void AgentWorld::violation(std::size_t agent, Invariant which, const std::string& text) {
  if (!watched_[agent].violated.insert(which).second) return;
  violations_ += at(loop_.clock().now()) + ": " + cluster_name(agent) + " " + text + "\n";
}

std::string AgentWorld::fingerprint() const {
  std::string text = std::to_string(loop_.steps()) + " steps, " + std::to_string(heartbeats_) + " heartbeats";
  for (const auto& hub : hubs_) text += ", " + std::to_string(hub->server.resource_version());
  return text;
}

}  // namespace hubferry::klusterlet::worlds
