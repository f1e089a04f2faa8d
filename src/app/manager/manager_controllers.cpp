#include "app/manager/manager_controllers.hpp"

#include <algorithm>

#include "app/service/service.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/obs/build_info.hpp"

namespace hubferry::app {

namespace {

bool is_wanted(const ManagerOptions& options, std::string_view name) {
  return std::ranges::find(options.controllers, name) != options.controllers.end();
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

/// The way to a hub: its connections live on one of the loops.
hubs::Connect connecting(const ControllerSurroundings& around) {
  return [around](const std::string& hub, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
    kube::HttpApiOptions client = client_options(around.options, hub);
    return kube::make_http_api(config, client, around.loops.next(), around.env);
  };
}

hubs::HubDirectoryOptions directory_options(const ControllerSurroundings& around) {
  hubs::HubDirectoryOptions options;
  options.hub.clusters_in_flight = static_cast<std::size_t>(around.options.clusters_in_flight_per_hub);
  options.hub.carried = around.carried;
  options.global_server = around.global_config.server;
  options.global_ca_pem = around.global_config.ca_pem;
  return options;
}

migration::ControllerOptions migration_options(const ManagerOptions& options) {
  migration::ControllerOptions controller;
  controller.watch_namespace = options.watch_namespace;
  controller.max_concurrent = static_cast<std::size_t>(options.max_concurrent_migrations);
  controller.instance = host_name();
  return controller;
}

async::Awaitable<> run_migrations(ControllerSurroundings around) {
  hubs::HubDirectory hubs{around.global, connecting(around), directory_options(around), around.env};
  migration::Controller controller{around.global, hubs, migration_options(around.options), around.env};
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    // The controller ends before the hubs go: its last orders need them.
    scope.spawn(hubs.run());
    auto working = [&](async::TaskScope& workers) -> async::Awaitable<> {
      workers.spawn(controller.run());
      co_await controller.wait_synced();
      around.caches.pass();
      around.env.log.info("the migrations there are have been seen");
    };
    co_await async::with_scope(working);
    scope.stop();
  };
  co_await async::with_scope(body);
}

}  // namespace

async::Awaitable<> run_controllers(ControllerSurroundings around) {
  around.env.log.info("the manager leads: its controllers run", {{"controllers", listed(around.options.controllers)}});
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    if (is_wanted(around.options, "migration")) {
      around.caches.fail("the migrations there are have not been seen yet");
      scope.spawn(run_migrations(around));
    }
    co_await around.env.clock.sleep_until(async::never);
  };
  co_await async::with_scope(body);
}

}  // namespace hubferry::app
