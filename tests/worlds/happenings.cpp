#include "hubferry/migration/phases.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "seeded_world.hpp"

/// What the steps of a plan do.
namespace hubferry::worlds {

namespace json = boost::json;
using namespace std::chrono_literals;
using migration::managed_cluster_migrations;

namespace {

/// By Step::detail.
sim::FaultRule& how_often(sim::FaultRule& rule, std::size_t detail) {
  switch (detail % 4) {
    case 0:
      return rule.times(1);
    case 1:
      return rule.rate(0.15);
    case 2:
      return rule.rate(0.5);
    default:
      return rule.rate(0.9);
  }
}

/// "managedclusters/status", or "delete namespaces".
void add_refusals(sim::Faults& faults, const std::string& write) {
  const auto space = write.find(' ');
  const auto kind = space == std::string::npos ? write : write.substr(space + 1);
  const auto slash = std::min(kind.find('/'), kind.size());
  sim::FaultTarget target{.resource = kind.substr(0, slash)};
  if (slash < kind.size()) target.subresource = kind.substr(slash + 1);
  for (const auto* verb : {"create", "update", "patch", "delete"}) {
    if (space == std::string::npos ? verb == std::string_view{"delete"} : write.substr(0, space) != verb) continue;
    target.verb = verb;
    faults.on(target).always().fail(403);
  }
}

}  // namespace

void SeededWorld::add_rules(sim::Faults& faults, const Step& step) {
  const auto rule = [&](const char* verb) -> sim::FaultRule& { return how_often(faults.on({verb}), step.detail); };
  switch (step.act) {
    case Act::errors:
      rule(step.detail % 9 < 4 ? "write" : "").fail(500);
      break;
    case Act::conflicts:
      rule("update").fail(409);
      rule("patch").fail(409);
      break;
    case Act::throttling:
      rule("").fail(429, 3);
      break;
    case Act::resets_before:
      rule("").reset_before();
      break;
    case Act::resets_after:
      rule("write").reset_after();
      break;
    case Act::slow:
      rule("").delay(sim::Latency::uniform(0s, step.detail % 9 < 4 ? 2s : 12s));
      break;
    case Act::hanging:
      // Longer than most deadlines, shorter than the minute for which an unanswered write counts as possible.
      rule("").delay(sim::Latency::uniform(5s, 55s));
      break;
    case Act::late_events:
      rule("").delay_event(sim::Latency::uniform(0s, 10s));
      break;
    case Act::lost_events:
      rule("").drop_event();
      break;
    case Act::stale_lists:
      rule("list").stale(1 + static_cast<std::int64_t>(step.detail % 9) * 5);
      break;
    default:
      break;
  }
}

void SeededWorld::apply_faults(std::size_t hub) {
  auto& server = world_.server(hub_name(hub));
  server.faults().clear();
  bool down = false;
  for (const auto side : {Side::manager, Side::agents}) {
    auto& wire = wire_of(side, hub);
    wire.faults.clear();
    wire.down = wire.repeats = wire.reorders = wire.stalled = false;
  }
  for (const auto& step : active_) {
    if (step.hub != hub) continue;
    if (step.act == Act::refusals) add_refusals(server.faults(), refused_write(step.detail));
    if (step.act == Act::stale_lists) add_rules(server.faults(), step);
    if (step.act > Act::repeated_events) continue;
    // The controllers of a hub are next to its API server: only an outage of everybody is one of theirs.
    if (step.act == Act::outage && step.side == Side::everybody) down = true;
    for (const auto side : {Side::manager, Side::agents}) {
      if (step.side != side && step.side != Side::everybody) continue;
      auto& wire = wire_of(side, hub);
      wire.down = wire.down || step.act == Act::outage;
      wire.repeats = wire.repeats || step.act == Act::repeated_events;
      wire.reorders = wire.reorders || step.act == Act::reordered_events;
      wire.stalled = wire.stalled || step.act == Act::stalled_watches;
      add_rules(wire.faults, step);
    }
  }
  server.outage(down);
}

void SeededWorld::set_fault(const Step& step, bool begins) {
  if (begins) {
    active_.push_back(step);
  } else {
    const auto same = [&](const Step& other) {
      return other.act == step.act && other.at == step.at && other.lasts == step.lasts && other.hub == step.hub;
    };
    if (const auto found = std::ranges::find_if(active_, same); found != active_.end()) active_.erase(found);
    // The server has noticed, and begins anew: what was lost is in the lists that follow.
    if (step.act == Act::lost_events) {
      world_.server(hub_name(step.hub)).compact();
      world_.server(hub_name(step.hub)).cut_watches();
    }
    if (step.act == Act::stalled_watches)
      for (const auto side : {Side::manager, Side::agents})
        if (step.side == side || step.side == Side::everybody) ++wire_of(side, step.hub).generation;
  }
  apply_faults(step.hub);
}

/// A process that has started meanwhile has the right time.
void SeededWorld::jump(const Step& step, bool begins) {
  auto& manager = *managers_[step.manager];
  if (begins && manager.process) manager.jumped[step.at] = manager.lives;
  const auto jumped = manager.jumped.find(step.at);
  if (!manager.process || jumped == manager.jumped.end() || jumped->second != manager.lives) return;
  manager.process->jump(begins ? jump_of(step.detail) : -jump_of(step.detail));
}

void SeededWorld::set_hub_clock(const Step& step, bool begins) {
  auto& ahead = hub_clocks_[step.hub];
  ahead += begins ? hub_skew_of(step.detail) : -hub_skew_of(step.detail);
  world_.world().set_clock(hub_name(step.hub), ahead);
}

/// The outage that Act::severance is.
Step SeededWorld::severed(Step step) const {
  step.act = Act::outage;
  step.side = Side::agents;
  step.hub = plan_.migrations[step.migration].to;
  return step;
}

void SeededWorld::switch_agent(std::size_t cluster, bool on) {
  auto& agents = world_.world().agents();
  if (!on) {
    if (switched_off_[cluster]++ > 0) return;
    const auto* store = agents.store_of(clusters_[cluster]);
    off_[cluster] = {clusters_[cluster], store->bootstraps(), store->secret()};
    agents.remove(clusters_[cluster]);
    return;
  }
  if (--switched_off_[cluster] > 0) return;
  agents.add(std::move(off_.at(cluster)));
  off_.erase(cluster);
}

Awaitable<> SeededWorld::restart_agent(std::size_t cluster) {
  switch_agent(cluster, false);
  co_await world_.clock().sleep_for(1s);
  switch_agent(cluster, true);
}

void SeededWorld::restart_stuck_agents() {
  auto& agents = world_.world().agents();
  for (const auto& name : clusters_)
    if (const auto* agent = agents.find(name); agent != nullptr && agent->view().phase != "Joined")
      agents.restart(name);
}

void SeededWorld::kill(std::size_t index, bool begins) {
  auto& manager = *managers_[index];
  if (begins) {
    if (manager.killed++ > 0) return;
    manager.process->kill();
    manager.dead.push_back(std::move(manager.process));
  } else if (--manager.killed == 0) {
    manager.paused = 0;
    start_manager(index);
  }
}

void SeededWorld::pause(std::size_t index, bool begins) {
  auto& manager = *managers_[index];
  if (manager.killed > 0) return;
  if (begins) {
    ++manager.paused;
    manager.process->pause();
  } else if (manager.paused > 0 && --manager.paused == 0) {
    manager.process->resume();
  }
}

/// A process that has been started again since has a clock of its own.
void SeededWorld::deceive(std::size_t index, bool begins) {
  auto& manager = *managers_[index];
  if (manager.process) manager.process->deceive(begins);
}

/// What a manager with a bug would do.
Awaitable<> SeededWorld::sabotage(Step step) {
  const auto hub = hub_name(plan_.homes[step.cluster]);
  const auto other = hub_name(plan_.homes[step.cluster] == 1 ? 2 : 1);
  const auto& name = clusters_[step.cluster];
  const auto as_manager = [&](const std::string& server) {
    return world_.server(server).api_as({std::string{manager_user} + "sabotage", {"system:masters"}, {}});
  };
  const auto api = as_manager(hub);
  const kube::Key key{"", name};
  json::object denied{{"spec", json::object{{"hubAcceptsClient", false}}}};
  switch (step.detail) {
    case 0:
      (void)co_await api->merge_patch(ocm::managed_clusters, key, denied);
      break;
    case 1: {
      json::object copy{{"metadata", json::object{{"name", name}}}, {"spec", json::object{{"hubAcceptsClient", true}}}};
      (void)co_await as_manager(other)->create(ocm::managed_clusters, std::move(copy));
      break;
    }
    case 2:
      (void)co_await api->remove(kube::resources::config_maps, {name, name + "-settings"});
      break;
    case 3: {
      const auto secret = world_.global().object(kube::resources::secrets, {hub, "hub-kubeconfig"});
      json::object map{{"metadata", json::object{{"name", "notes"}, {"namespace", "default"}}},
                       {"data", json::object{{"text", secret->string_at({"data", "kubeconfig"})}}}};
      (void)co_await as_manager(sim::global_hub)->create(kube::resources::config_maps, std::move(map));
      break;
    }
    default: {
      json::object labels{{"hubferry.io/migration", "whose"}};
      json::object patch{{"metadata", json::object{{"labels", std::move(labels)}}}};
      (void)co_await person(hub).merge_patch(ocm::managed_clusters, key, std::move(patch));
    }
  }
}

Awaitable<> SeededWorld::happen(Step step) {
  auto& clock = world_.clock();
  co_await clock.sleep_for(step.at);
  for (const bool begins : {true, false}) {
    switch (step.act) {
      case Act::kill:
        kill(step.manager, begins);
        break;
      case Act::pause:
        pause(step.manager, begins);
        break;
      case Act::slow_clock:
        deceive(step.manager, begins);
        break;
      case Act::severance:
        if (begins) co_await reaches(step, migration::phases::registering);
        set_fault(severed(step), begins);
        break;
      case Act::agent_off:
        switch_agent(step.cluster, !begins);
        break;
      case Act::denial:
        co_await deny(step, begins);
        break;
      case Act::hub_clock:
        set_hub_clock(step, begins);
        break;
      case Act::cut_watches:
        if (begins) world_.server(hub_name(step.hub)).cut_watches();
        break;
      case Act::compaction:
        if (begins) world_.server(hub_name(step.hub)).compact();
        break;
      case Act::lease_deletion:
      case Act::lease_theft:
        if (begins) co_await change_lease(step.act == Act::lease_theft);
        break;
      case Act::agent_restart:
        if (begins) co_await restart_agent(step.cluster);
        break;
      case Act::migration_deletion:
        if (begins)
          (void)co_await person(sim::global_hub)
              .remove(managed_cluster_migrations, {"default", "m" + std::to_string(step.migration)});
        break;
      case Act::rollback_request:
        if (begins) co_await annotate_migration(step.migration);
        break;
      case Act::cluster_edit:
        if (begins) co_await label_cluster(step);
        break;
      case Act::copy_deletion:
        if (begins) co_await delete_copy(step);
        break;
      case Act::late_copy_deletion:
        if (begins) co_await delete_late_copy(step);
        break;
      case Act::object_deletion:
        if (begins) co_await delete_copied_object(step);
        break;
      case Act::namespace_deletion:
        if (begins) co_await delete_namespace(step);
        break;
      case Act::ledger_edit:
        if (begins) co_await edit_ledger(step);
        break;
      case Act::ledger_omission:
        if (begins) co_await omit_from_ledger(step);
        break;
      case Act::spec_edit:
        if (begins) co_await edit_spec(step);
        break;
      case Act::acceptance:
        co_await accept_again(step, begins);
        break;
      case Act::kubeconfig_edit:
        co_await edit_kubeconfig(step, begins);
        break;
      case Act::clock_jump:
        jump(step, begins);
        break;
      case Act::sabotage:
        if (begins) co_await sabotage(step);
        break;
      default:
        set_fault(step, begins);
    }
    if (begins) co_await clock.sleep_for(step.lasts);
  }
}

}  // namespace hubferry::worlds
