#include "app/manager/manager_controllers.hpp"

#include <algorithm>

#include "app/manager/global_hub_manager.hpp"
#include "app/service/service.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/mysql/controller.hpp"
#include "hubferry/mysql/operator_lease.hpp"
#include "hubferry/obs/build_info.hpp"
#include "hubferry/phase/render.hpp"
#include "hubferry/relocator/controller.hpp"

namespace hubferry::app {

namespace {

bool is_wanted(const ManagerOptions& options, std::string_view name) {
  return std::ranges::find(options.controllers, name) != options.controllers.end();
}

/// Connects to a hub: its connections live on one of the loops.
hubs::Connect connecting(const ControllerSurroundings& around) {
  return [around](const std::string& hub, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
    if (around.on_connect) around.on_connect(hub, config.server);
    kube::HttpApiOptions client = client_options(around.options, hub);
    std::shared_ptr<kube::Api> api = kube::make_http_api(config, client, around.loops.next(), around.env);
    if (around.fence == nullptr) return api;
    return kube::make_fenced_api(std::move(api), *around.fence, around.env, hubs::is_destructive);
  };
}

/// The global hub, for the writes of a leader.
std::shared_ptr<kube::Api> with_fence(const ControllerSurroundings& around) {
  std::shared_ptr<kube::Api> global{std::shared_ptr<void>{}, &around.global};
  if (around.fence == nullptr) return global;
  return kube::make_fenced_api(std::move(global), *around.fence, around.env, hubs::is_destructive);
}

hubs::HubDirectoryOptions directory_options(const ControllerSurroundings& around) {
  hubs::HubDirectoryOptions options;
  options.hub.clusters_in_flight = static_cast<std::size_t>(around.options.clusters_in_flight_per_hub);
  options.hub.carried = around.carried;
  options.hub.connect_cluster = [around](const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
    // All by one name: it is a label of metrics.
    kube::HttpApiOptions client = client_options(around.options, "managed-cluster");
    std::shared_ptr<kube::Api> api = kube::make_http_api(config, client, around.loops.next(), around.env);
    if (around.fence == nullptr) return api;
    return kube::make_fenced_api(std::move(api), *around.fence, around.env, hubs::is_destructive);
  };
  options.global_server = around.global_config.server;
  options.global_ca_pem = around.global_config.ca_pem;
  return options;
}

async::Awaitable<> run_migrations(const ControllerSurroundings& around, hubs::Hubs& hubs, obs::CheckState& readiness) {
  migration::ControllerOptions options;
  options.watch_namespace = around.options.watch_namespace;
  options.max_concurrent = static_cast<std::size_t>(around.options.max_concurrent_migrations);
  options.instance = host_name();
  options.readiness = &readiness;
  options.fence = around.fence;
  options.on_rival = [&metrics = around.env.metrics](const std::string&) { other_manager(metrics).set(1); };
  options.on_arrival = around.on_arrival;
  auto work = [&]() -> async::Awaitable<> {
    migration::Controller controller{around.global, hubs, options, around.env};
    co_await controller.run();
  };
  if (around.options.beside_global_hub)
    co_await work();
  else
    co_await while_no_global_hub_manager(around.global, around.env, readiness, work);
}

async::Awaitable<> run_relocations(const ControllerSurroundings& around, hubs::Hubs&, obs::CheckState& readiness) {
  relocator::ControllerOptions options;
  options.watch_namespace = around.options.watch_namespace;
  options.at_once = static_cast<std::size_t>(around.options.max_concurrent_relocations);
  options.instance = host_name();
  options.readiness = &readiness;
  // No phase is stored, so no status shows the leader's term: the writes themselves must not outlive it.
  const auto source = with_fence(around);
  relocator::Controller controller{*source, connecting(around), std::move(options), around.env};
  co_await controller.run();
}

/// The operator, with the fence of the Lease that keeps others from the same databases.
async::Awaitable<> operate_mysql(const ControllerSurroundings& around, std::string ns, obs::CheckState& readiness,
                                 kube::Fence* fence) {
  const auto connector = sql::make_connector(around.env.clock);
  const auto exporter = mysql::make_http_exporter(around.env.clock);
  mysql::ControllerOptions options;
  options.watch_namespace = std::move(ns);
  options.instance = host_name();
  options.readiness = &readiness;
  options.fence = fence;
  mysql::Controller controller{around.global, *connector, *exporter, std::move(options), around.env};
  co_await controller.run();
}

async::Awaitable<> run_mysql(const ControllerSurroundings& around, hubs::Hubs&, obs::CheckState& readiness) {
  const auto& given = around.options;
  const auto ns = given.mysql_namespace.empty() ? given.watch_namespace : given.mysql_namespace;
  kube::LeaderElectionOptions election;
  election.ns = ns;
  election.identity =
      around.fence != nullptr ? around.fence->epoch().identity : host_name() + "_" + around.env.random.uuid();
  election.lease_duration = given.lease_duration;
  election.renew_deadline = given.renew_deadline;
  election.retry_period = given.retry_period;
  const auto own = given.lease_namespace.empty() ? given.effective_namespace() : given.lease_namespace;
  const bool leads_by_it = around.fence != nullptr && own == ns && given.lease_name == mysql::operator_lease;
  // In all namespaces there is no place for a Lease that others would look for.
  if (ns.empty() || leads_by_it) {
    co_await operate_mysql(around, ns, readiness, around.fence);
    co_return;
  }
  auto client = client_options(given, "global");
  client.qps = 0;  // renewals wait behind nothing
  client.max_connections = 2;
  const auto lease_api = kube::make_http_api(around.global_config, client, around.loops.next(), around.env);
  auto work = [&](kube::Fence* fence) {
    return operate_mysql(around, ns, readiness, fence != nullptr ? fence : around.fence);
  };
  co_await mysql::run_as_only_operator(*lease_api, std::move(election), &readiness, around.env, work);
}

}  // namespace

obs::Gauge& other_manager(obs::Metrics& metrics) {
  return metrics.gauge(
      "hubferry_other_manager",
      "1 while another manager acts: without --leader-elect this one waits for it; with a Lease of its "
      "own it works on the same resources.");
}

const std::vector<ControllerEntry>& controller_registry() {
  static const std::vector<ControllerEntry> registry{
      {"migration", {migration::phase_definition}, run_migrations},
      {"relocator", {relocator::phase_definition}, run_relocations, false, false},
      {"mysql", {mysql::cluster_definition, mysql::backup_definition}, run_mysql, false, false},
  };
  return registry;
}

const std::vector<std::string>& controller_names() {
  static const auto all = [] {
    std::vector<std::string> names;
    for (const auto& entry : controller_registry()) names.push_back(entry.name);
    return names;
  }();
  return all;
}

std::vector<std::string> default_controllers() {
  std::vector<std::string> names;
  for (const auto& entry : controller_registry())
    if (entry.by_default) names.push_back(entry.name);
  return names;
}

Controllers::Controllers(const ManagerOptions& options, obs::Health& health) {
  for (const auto& entry : controller_registry()) {
    if (!is_wanted(options, entry.name)) continue;
    auto readiness = std::make_unique<obs::CheckState>("not started yet");
    readiness->pass();
    health.add_readiness(entry.name + "-controller", readiness->check());
    selected_.push_back({entry, std::move(readiness)});
  }
}

async::Awaitable<> Controllers::run(ControllerSurroundings around) {
  std::string names;
  for (const auto& selected : selected_) names += (names.empty() ? "" : ",") + selected.entry.name;
  around.env.log.info("the manager leads, controllers started", {{"controllers", names}});
  const auto fenced = with_fence(around);
  const ControllerSurroundings inside{around.options, *fenced,      around.global_config, around.loops,     around.env,
                                      around.carried, around.fence, around.on_arrival,    around.on_connect};
  hubs::HubDirectory hubs{inside.global, connecting(inside), directory_options(inside), inside.env};
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    // The controllers end before the hubs: their last operations need them.
    if (std::ranges::any_of(selected_, [](const Selected& selected) { return selected.entry.uses_hubs; }))
      scope.spawn(hubs.run());
    auto working = [&](async::TaskScope& workers) -> async::Awaitable<> {
      for (const auto& [entry, readiness] : selected_) workers.spawn(entry.run(inside, hubs, *readiness));
      co_return;
    };
    co_await async::with_scope(working);
    scope.stop();
  };
  co_await async::with_scope(body);
}

std::string render_phases(const ManagerOptions& options, const std::string& format) {
  std::string text;
  for (const auto& entry : controller_registry())
    if (is_wanted(options, entry.name))
      for (const auto& definition : entry.definitions)
        text += format == "dot" ? phase::render_dot(definition()) : phase::render_mermaid(definition());
  return text;
}

}  // namespace hubferry::app
