#include <algorithm>
#include <boost/json/serialize.hpp>

#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "inhabitants.hpp"

// What happens in a world: faults, and what administrators do.
namespace hubferry::klusterlet::worlds {

using async::Awaitable;
using kube::json::object;

void SimulatedHub::apply_faults() {
  auto& script = server.faults();
  script.clear();
  for (const auto& [detail, count] : faults) {
    if (count == 0) continue;
    switch (detail) {
      case 0:
        script.on({"write"}).rate(0.2).fail(500);
        break;
      case 1:
        script.on({}).rate(0.8).fail(500);
        break;
      case 2:
        script.on({"update"}).rate(0.3).fail(409);
        break;
      case 3:
        script.on({}).rate(0.3).fail(429, 5);
        break;
      case 4:
        script.on({}).rate(0.2).reset_before();
        break;
      case 5:
        script.on({"write"}).rate(0.2).reset_after();
        break;
      case 6:
        script.on({}).always().delay(sim::Latency::uniform(0s, 2s));
        break;
      case 7:
        script.on({}).always().delay(sim::Latency::fixed(12s));
        break;
      case 8:
        script.on({}).rate(0.5).delay(sim::Latency::fixed(24h));
        break;
      case 9:
        script.on({"watch"}).rate(0.1).cut_watch();
        script.on({"watch"}).rate(0.5).delay_event(sim::Latency::uniform(0s, 20s));
        break;
      case 10:
        script.on({"list"}).rate(0.5).stale(20);
        script.on({"watch"}).rate(0.2).compact();
        break;
      default:
        script.on({"watch"}).rate(0.2).drop_event();
        break;
    }
  }
  script.outage(outages > 0);
}

void AgentWorld::edit_list(std::size_t agent) {
  auto& machine = *machines_[agent];
  // A stopped process notices nothing: it does when it continues.
  if (env_.clock.now() < machine.clock.stopped_until()) return;
  std::vector<BootstrapConfig> list;
  for (auto entry : machine.configured) {
    const auto hub = static_cast<std::size_t>(
        std::ranges::find(hubs_, entry.name, [](const auto& candidate) { return candidate->server.name(); }) -
        hubs_.begin());
    if (machine.removed[hub] > 0) continue;
    if (machine.broken[hub] > 0) entry.kubeconfig = obs::Secret{"{ no yaml"};
    list.push_back(std::move(entry));
  }
  machine.store.set_bootstraps(std::move(list));
}

Awaitable<> AgentWorld::administrate(std::size_t index, Step step) {
  auto& api = hubs_[index]->server.api();
  const kube::Key key{{}, cluster_name(step.agent)};
  // Faults and outages concern this client too, so repeat: what an administrator wants he gets in the end.
  while (true) {
    kube::Result<kube::Object> done = kube::Object{};
    if (step.act == Act::deny) {
      const bool accepts = hubs_[index]->denials[step.agent] == 0;
      done = co_await api.merge_patch(ocm::managed_clusters, key, {{"spec", object{{"hubAcceptsClient", accepts}}}});
    } else if (step.act == Act::lease_duration) {
      done = co_await api.merge_patch(ocm::managed_clusters, key,
                                      {{"spec", object{{"leaseDurationSeconds", step.number}}}});
    } else if (step.act == Act::delete_cluster) {
      done = co_await api.remove(ocm::managed_clusters, key);
    } else if (step.act == Act::delete_lease) {
      done = co_await api.remove(kube::resources::leases, ocm::lease_key(key.name));
    } else if (step.act == Act::revoke) {
      // All bindings of the account, and all of them back: as is wanted now, not when this began.
      const bool revoked = hubs_[index]->revocations > 0;
      auto& saved = hubs_[index]->bindings;
      if (revoked && saved.empty())
        for (const auto& binding : hubs_[index]->server.objects(kube::resources::cluster_role_bindings))
          if (boost::json::serialize(binding.json()).find(sim::hub_names::bootstrap_account) != std::string::npos)
            saved.push_back(binding);
      for (const auto& binding : saved) {
        if (revoked) {
          done = co_await api.remove(kube::resources::cluster_role_bindings, binding.key());
        } else {
          auto body = binding.json();
          body["metadata"] = object{{"name", binding.key().name}};
          done = co_await api.create(kube::resources::cluster_role_bindings, std::move(body));
          if (!done && done.error().kind == kube::ErrorKind::already_exists) done = kube::Object{};
        }
        if (!done && done.error().kind != kube::ErrorKind::not_found) break;
      }
    }
    // A denial may last for a moment only: the hub accepts once by itself.
    if (step.act == Act::delete_cluster || step.act == Act::deny)
      watched_[step.agent].flawed[index].insert(env_.clock.now());
    if (done || done.error().kind == kube::ErrorKind::not_found) co_return;
    co_await env_.clock.sleep_for(2s);
  }
}

void AgentWorld::begin(const Step& step) {
  auto& hub = *hubs_[step.hub];
  auto& machine = *machines_[step.agent];
  switch (step.act) {
    case Act::outage:
      ++hub.outages;
      hub.server.outage(true);
      break;
    case Act::fault:
      ++hub.faults[step.detail];
      hub.apply_faults();
      break;
    case Act::revoke:
      if (++hub.revocations == 1) scope_.spawn(administrate(step.hub, step));
      break;
    case Act::forget:
      for (std::size_t agent = 0; agent < plan_.agents; ++agent) {
        auto one = step;
        one.act = Act::delete_cluster;
        one.agent = agent;
        scope_.spawn(administrate(step.hub, one));
      }
      break;
    case Act::cut_watches:
      hub.server.cut_watches();
      break;
    case Act::compact:
      hub.server.compact();
      break;
    case Act::deny:
      ++hub.denials[step.agent];
      scope_.spawn(administrate(step.hub, step));
      break;
    case Act::delete_cluster:
    case Act::delete_lease:
    case Act::lease_duration:
      scope_.spawn(administrate(step.hub, step));
      break;
    case Act::kill:
      if (++machine.killed == 1) {
        machine.revive.reset();
        machine.kill.set();
      }
      break;
    case Act::clock:
      machine.clock.set(std::chrono::seconds{step.number});
      break;
    case Act::reorder:
      std::ranges::reverse(machine.configured);
      edit_list(step.agent);
      break;
    case Act::remove_hub:
      // At least one stays: an empty list is no list.
      ++machine.removed[step.hub];
      edit_list(step.agent);
      break;
    case Act::break_list:
      ++machine.broken[step.hub];
      edit_list(step.agent);
      break;
    case Act::fresh_token:
      for (auto& entry : machine.configured) {
        // The same account, another text.
        auto config = entry.parse();
        config.name = "fresh" + std::to_string(step.at.count());
        entry.kubeconfig = obs::Secret{kube::to_kubeconfig(config)};
      }
      edit_list(step.agent);
      break;
    case Act::full_disk:
      machine.disk_failed = true;
      ++machine.full;
      machine.store.full = true;
      break;
    case Act::dead_disk:
      machine.disk_failed = true;
      if (++machine.dead == 1) machine.unreadable_since = env_.clock.now();
      machine.store.full = machine.store.unreadable = true;
      break;
    case Act::stop:
      machine.clock.stop_until(env_.clock.now() + step.lasts);
      break;
    case Act::freeze:
      machine.kill.set();
      break;
  }
}

void AgentWorld::end(const Step& step) {
  auto& hub = *hubs_[step.hub];
  auto& machine = *machines_[step.agent];
  switch (step.act) {
    case Act::outage:
      if (--hub.outages == 0) hub.server.outage(false);
      break;
    case Act::fault:
      --hub.faults[step.detail];
      hub.apply_faults();
      // As a server that was mended is: it has been restarted, and everybody lists anew.
      if (step.detail == lost_events) {
        hub.server.compact();
        hub.server.cut_watches();
      }
      break;
    case Act::revoke:
      if (--hub.revocations == 0) scope_.spawn(administrate(step.hub, step));
      break;
    case Act::deny:
      --hub.denials[step.agent];
      scope_.spawn(administrate(step.hub, step));
      break;
    case Act::kill:
      if (--machine.killed == 0) {
        machine.kill.reset();
        machine.revive.set();
      }
      break;
    case Act::remove_hub:
      --machine.removed[step.hub];
      edit_list(step.agent);
      break;
    case Act::break_list:
      --machine.broken[step.hub];
      edit_list(step.agent);
      break;
    case Act::stop:
      edit_list(step.agent);
      break;
    case Act::full_disk:
    case Act::dead_disk:
      (step.act == Act::full_disk ? machine.full : machine.dead) -= 1;
      machine.store.full = machine.full + machine.dead > 0;
      machine.store.unreadable = machine.dead > 0;
      break;
    default:
      break;
  }
}

}  // namespace hubferry::klusterlet::worlds
