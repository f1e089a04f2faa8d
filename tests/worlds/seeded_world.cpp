#include "seeded_world.hpp"

#include <algorithm>
#include <cstdio>

#include "hubferry/hubagent/hub_permissions.hpp"
#include "hubferry/klusterlet/local_store.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/fleet.hpp"
#include "spec_edits.hpp"

namespace hubferry::worlds {

namespace json = boost::json;
using namespace std::chrono_literals;
using migration::managed_cluster_migrations;

namespace {

// How long the migrations may take when everything works again, and the rest before the end is checked: the longest
// pause of a retry, and the time in which a hub notices that an agent is gone.
constexpr auto longest = 5h;
constexpr auto rest = 11min;
// How often, once nothing goes wrong any more, somebody restarts the agents that are still without a hub.
constexpr auto between_restarts = 30min;
// How often processes that have ended are started again.
constexpr auto pace = 5s;

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

klusterlet::BootstrapConfig bootstrap_of(sim::VirtualWorld& hubs, const std::string& hub) {
  return {hub, hubs.world().hubs().bootstrap_kubeconfig(hub), std::nullopt};
}

}  // namespace

std::unique_ptr<sim::VirtualWorld> build_hubs(const Plan& plan, bool recorded) {
  sim::WorldOptions options;
  options.hubs.clear();
  for (std::size_t hub = 1; hub <= plan.hubs; ++hub) options.hubs.push_back("hub" + std::to_string(hub));
  options.managed_service_accounts = plan.accounts;
  // hubferry's own leave a target that does not register them; for the others there is restart_stuck_agents().
  options.upstream_agents = plan.upstream_agents;
  options.import_controller = plan.newest_import ? sim::ImportController::mce_5_x : sim::ImportController::mce_2_17;
  // Between any two requests there is a moment at which something can happen.
  options.server.latency = sim::Latency::uniform(1ms, 15ms);
  // Nothing here depends on them, and they are most of what an idle world does.
  options.server.bookmark_interval = 24h;
  options.server.record_requests = recorded;
  auto hubs = std::make_unique<sim::VirtualWorld>(std::move(options));
  // Made and read once, and not in each clone.
  hubs->network().make_keys();
  (void)hubagent::hub_permissions();
  for (std::size_t hub = 1; hub <= plan.hubs; ++hub) (void)bootstrap_of(*hubs, "hub" + std::to_string(hub)).parse();
  return hubs;
}

SeededWorld::SeededWorld(sim::VirtualWorld& hubs, Plan plan)
    : world_(hubs), plan_(std::move(plan)), random_(plan_.seed) {
  world_.env().random = random_.fork();
  for (const auto& server : world_.world().servers()) world_.server(server).reseed(random_.next());
  for (std::size_t hub = 0; hub <= plan_.hubs; ++hub)
    for (const auto side : {Side::manager, Side::agents}) wires_[{side, hub}] = std::make_unique<Wire>(random_.fork());
  world_.network().intercept([this](std::shared_ptr<kube::Api> api) { return on_wire(Side::agents, std::move(api)); });
  for (std::size_t index = 0; index < plan_.managers; ++index) managers_.push_back(std::make_unique<Manager>());
}

std::string SeededWorld::hub_name(std::size_t hub) const {
  return hub == 0 ? sim::global_hub : "hub" + std::to_string(hub);
}

kube::Api& SeededWorld::person(const std::string& server) {
  auto& api = people_[server];
  if (api == nullptr) api = world_.server(server).api_as({person_user, {"system:masters", "system:authenticated"}, {}});
  return *api;
}

Wire& SeededWorld::wire_of(Side side, std::size_t hub) {
  return *wires_.at({side, hub});
}

std::shared_ptr<kube::Api> SeededWorld::on_wire(Side side, std::shared_ptr<kube::Api> api) {
  for (std::size_t hub = 0; hub <= plan_.hubs; ++hub)
    if (api->name() == hub_name(hub))
      return make_faulty_api(std::move(api), wire_of(side, hub), world_.clock(),
                             [this](Awaitable<> task) { world_.spawn(std::move(task)); });
  return api;
}

void SeededWorld::spawn(Awaitable<> task) {
  ++busy_;
  auto counted = [](SeededWorld& world, Awaitable<> inner) -> Awaitable<> {
    co_await std::move(inner);
    --world.busy_;
  };
  world_.spawn(counted(*this, std::move(task)));
}

/// The hub's controllers are running already, and delete a namespace whose cluster is yet to come: the ManagedClusters
/// are there first.
void SeededWorld::create_fleet(kube::Api& hub, const sim::FleetPlan& fleet) {
  for (std::size_t index = 0; index < fleet.clusters; ++index)
    for (auto& object : sim::fleet_objects(fleet, index, world_.clock().wall_now())) {
      if (object.resource != ocm::managed_clusters) continue;
      const auto made = world_.run(hub.create(object.resource, std::move(object.object)));
      if (!made) throw std::runtime_error(made.error().describe());
      json::object patch{{"status", std::move(object.status)}};
      (void)world_.run(hub.merge_patch(object.resource, made->key(), std::move(patch), "status"));
    }
  world_.run(sim::create_fleet(hub, fleet, world_.env()));
  world_.run(world_.world().wait_settled());
}

void SeededWorld::add_clusters() {
  if (!plan_.rules) weaken_checks(world_, Checks::no_rules);
  std::map<std::string, std::string> homes;
  clusters_.resize(plan_.homes.size());
  for (std::size_t hub = 1; hub <= plan_.hubs; ++hub) {
    sim::FleetPlan fleet;
    fleet.prefix = "c" + std::to_string(hub) + "-";
    fleet.seed = random_.next();
    fleet.clusters = static_cast<std::size_t>(std::ranges::count(plan_.homes, hub));
    if (fleet.clusters == 0) continue;
    auto& server = world_.server(hub_name(hub));
    create_fleet(server.api(), fleet);
    const auto names = sim::fleet_names(fleet);
    const auto bootstrap = bootstrap_of(world_, hub_name(hub));
    const auto config = bootstrap.parse();
    std::size_t next = 0;
    for (std::size_t cluster = 0; cluster < plan_.homes.size(); ++cluster) {
      if (plan_.homes[cluster] != hub) continue;
      clusters_[cluster] = names[next++];
      homes[clusters_[cluster]] = hub_name(hub);
      sim::FleetMember member;
      member.cluster = clusters_[cluster];
      member.bootstraps.push_back(bootstrap);
      member.secret = sim::issue_hub_secret(world_.network(), server, member.cluster, config);
      off_.emplace(cluster, std::move(member));
    }
  }
  world_.run(world_.world().wait_settled());
  for (auto& [cluster, member] : off_) world_.world().agents().add(std::move(member));
  off_.clear();
  add_sets();
  world_.run_for(5s);
  world_.run(world_.world().wait_settled());
  invariants_ = std::make_unique<Invariants>(world_, std::move(homes));
}

/// The ManagedClusterSets that migrations move, and the Placements that select them.
void SeededWorld::add_sets() {
  for (std::size_t index = 0; index < plan_.migrations.size(); ++index) {
    const auto& migration = plan_.migrations[index];
    if (!migration.by_set) continue;
    const auto name = "m" + std::to_string(index);
    auto& hub = world_.server(hub_name(migration.from)).api();
    const json::object set{{set_label, name}};
    for (const auto cluster : migration.clusters) {
      json::object patch{{"metadata", json::object{{"labels", set}}}};
      const auto labelled = world_.run(hub.merge_patch(ocm::managed_clusters, {"", clusters_[cluster]}, patch));
      if (!labelled) throw std::runtime_error(labelled.error().describe());
    }
    json::object selector{{"labelSelector", json::object{{"matchLabels", set}}}};
    json::object spec{{"predicates", json::array{json::object{{"requiredClusterSelector", std::move(selector)}}}}};
    json::object placement{{"metadata", json::object{{"name", name}, {"namespace", "default"}}},
                           {"spec", std::move(spec)}};
    const auto created = world_.run(hub.create(ocm::placements, std::move(placement)));
    if (!created) throw std::runtime_error(created.error().describe());
  }
}

void SeededWorld::start_manager(std::size_t index) {
  auto& manager = *managers_[index];
  migration::test::SimulatedManagerOptions options;
  options.identity = "manager-" + std::to_string(index) + "-" + std::to_string(manager.lives++);
  options.user = manager_user + options.identity;
  options.skew = index == 1 ? plan_.skew : Duration{0};
  options.wire = [this](std::shared_ptr<kube::Api> api) { return on_wire(Side::manager, std::move(api)); };
  manager.process = std::make_unique<migration::test::SimulatedManager>(world_, std::move(options));
}

Awaitable<> SeededWorld::migrate(std::size_t index) {
  const auto& plan = plan_.migrations[index];
  co_await world_.clock().sleep_for(plan.at);
  const auto name = "m" + std::to_string(index);
  json::object spec{{"from", hub_name(plan.from)}, {"to", hub_name(plan.to)}};
  std::set<std::string> names;
  for (const auto cluster : plan.clusters) names.insert(clusters_[cluster]);
  if (plan.by_set)
    spec["includedManagedClustersPlacementRef"] = "default/" + name;
  else
    spec["includedManagedClusters"] = json::array(names.begin(), names.end());
  invariants_->announce(name, std::move(names));
  if (plan.stage_timeout)
    spec["supportedConfigs"] = json::object{
        {"stageTimeout",
         std::to_string(std::chrono::duration_cast<std::chrono::seconds>(*plan.stage_timeout).count()) + "s"}};
  json::object object{{"metadata", json::object{{"name", name}, {"namespace", "default"}}}, {"spec", std::move(spec)}};
  for (;;) {
    const auto created = co_await person(sim::global_hub).create(managed_cluster_migrations, object);
    if (created || created.error().kind == kube::ErrorKind::already_exists) co_return;
    co_await world_.clock().sleep_for(5s);
  }
}

std::string SeededWorld::summary() const {
  std::string text =
      "hash " + hex(invariants_->fingerprint()) + ", " + std::to_string(invariants_->writes()) + " writes, " +
      async::format_duration(std::chrono::duration_cast<std::chrono::seconds>(world_.clock().now().time_since_epoch()));
  if (two_leaders_ > 0s) text += ", two leaders for " + async::format_duration(two_leaders_);
  if (invariants_->self_registered() > 0)
    text += ", " + std::to_string(invariants_->self_registered()) + " registered by themselves";
  for (std::size_t index = 0; index < plan_.migrations.size(); ++index)
    text += ", m" + std::to_string(index) + " " + invariants_->phase_of("m" + std::to_string(index));
  return text;
}

Result SeededWorld::run() {
  add_clusters();
  for (std::size_t index = 0; index < managers_.size(); ++index) start_manager(index);
  for (std::size_t index = 0; index < plan_.migrations.size(); ++index) spawn(migrate(index));
  for (const auto& step : plan_.steps) spawn(happen(step));
  const auto end = world_.clock().now() + end_of(plan_) + longest;
  auto next_restarts = world_.clock().now() + end_of(plan_) + between_restarts;
  while ((busy_ > 0 || !invariants_->all_ended()) && world_.clock().now() < end) {
    // A process that has lost its lead ends, and its pod starts it again.
    for (std::size_t index = 0; index < managers_.size(); ++index)
      if (auto& manager = *managers_[index]; manager.process && !manager.process->end().empty()) {
        manager.dead.push_back(std::move(manager.process));
        manager.paused = 0;
        start_manager(index);
      }
    const auto leads = [](const auto& manager) { return manager->process && manager->process->leads(); };
    if (std::ranges::count_if(managers_, leads) > 1) two_leaders_ += pace;
    if (plan_.upstream_agents && world_.clock().now() >= next_restarts) {
      restart_stuck_agents();
      next_restarts += between_restarts;
    }
    world_.run_for(pace);
  }
  world_.run_for(rest);
  invariants_->check_end();
  Result result{invariants_->violations(), summary(), {}, 0};
  if (world_.world().options().server.record_requests) result.timeline = world_.timeline();
  return result;
}

}  // namespace hubferry::worlds
