#include "app/plan/plan_run.hpp"

#include <unistd.h>

#include <ostream>

#include "app/cli/files.hpp"
#include "app/cli/output.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/yaml.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::app {

hubs::Connect HubConnections::opener() {
  return [this](const std::string& hub, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
    kube::HttpApiOptions options;
    options.name = hub;
    std::shared_ptr<kube::Api> api = kube::make_http_api(config, options, loop_, env_);
    apis_[hub] = api;
    return api;
  };
}

async::Awaitable<kube::Result<bool>> HubConnections::serves(std::string hub, kube::Resource resource) {
  const auto known = apis_.find(hub);
  // The global hub has no connection of its own; it serves the kinds that it has objects of.
  if (known == apis_.end()) co_return true;
  const auto api = known->second;
  co_return co_await api->serves(resource);
}

std::string shown_name(const std::string& file) {
  return file == "-" ? "standard input" : file;
}

kube::json::object read_only_object(const std::string& file) {
  const auto text = file == "-" ? read_standard_input() : read_file(file);
  const auto documents = kube::parse_yaml_documents(text, shown_name(file));
  if (documents.size() != 1 || !documents[0].is_object())
    throw std::runtime_error(shown_name(file) + ": it must contain exactly one " +
                             (documents.empty() ? "object, and is empty" : "object"));
  return documents[0].get_object();
}

async::Awaitable<> check_access(kube::Api& global) {
  kube::ListOptions one;
  one.limit = 1;
  const auto clusters = co_await global.list(ocm::managed_clusters, one, kube::object_decoder());
  if (!clusters && clusters.error().kind == kube::ErrorKind::not_found)
    throw std::runtime_error(
        "API server " + std::string{global.name()} +
        " does not serve ManagedClusters, so it is not a global hub: select another with --kubeconfig");
  if (!clusters) throw_for(clusters.error(), global);
  one.label_selector = std::string{hubs::hub_kubeconfig_label} + "=true";
  const auto secrets = co_await global.list(kube::resources::secrets, one, kube::object_decoder());
  if (!secrets) throw_for(secrets.error(), global);
}

namespace {

async::Awaitable<Plan> plan_on(ServerClient& client, migration::MigrationSpec spec,
                               std::shared_ptr<const hubagent::CarriedResources> carried) {
  co_await check_access(client.api());
  HubConnections connections{client.loop(), client.env()};
  hubs::HubDirectoryOptions options;
  options.hub.unreachable_timeout = std::chrono::seconds{5};
  options.hub.busy_timeout = std::chrono::seconds{15};
  options.hub.carried = carried;
  options.is_manager = false;
  const auto& kinds = carried != nullptr ? *carried : hubagent::default_carried_resources();
  hubs::HubDirectory directory{client.api(), connections.opener(), options, client.env()};
  Plan plan;
  auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
    scope.spawn(directory.run());
    Serves serves = [&](kube::Resource resource) { return connections.serves(spec.to, std::move(resource)); };
    plan = co_await make_plan(directory, spec, serves, client.env().clock, kinds);
    scope.stop();
  };
  co_await async::with_scope(body);
  co_return plan;
}

}  // namespace

async::Awaitable<int> show_plan(ServerClient& client, migration::MigrationSpec spec,
                                std::shared_ptr<const hubagent::CarriedResources> carried, PlanOutput output,
                                std::ostream& out) {
  const auto plan = co_await plan_on(client, std::move(spec), std::move(carried));
  if (output.format == "json") {
    out << to_indented_json(plan_json(plan));
  } else {
    for (const auto& line : plan_text(plan, output.list_objects, Terminal::of(STDOUT_FILENO))) out << line << "\n";
  }
  co_return plan.can_succeed() ? 0 : 1;
}

}  // namespace hubferry::app
