#include "app/manager/manager_controllers.hpp"

#include <algorithm>

#include "app/service/service.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/mysql/controller.hpp"
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
  options.on_arrival = around.on_arrival;
  migration::Controller controller{around.global, hubs, std::move(options), around.env};
  co_await controller.run();
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

async::Awaitable<> run_mysql(const ControllerSurroundings& around, hubs::Hubs&, obs::CheckState& readiness) {
  const auto connector = sql::make_connector(around.env.clock);
  const auto exporter = mysql::make_http_exporter(around.env.clock);
  mysql::ControllerOptions options;
  options.watch_namespace = around.options.watch_namespace;
  options.instance = host_name();
  options.readiness = &readiness;
  options.fence = around.fence;
  mysql::Controller controller{around.global, *connector, *exporter, std::move(options), around.env};
  co_await controller.run();
}

}  // namespace

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
