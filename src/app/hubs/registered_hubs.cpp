#include "app/hubs/registered_hubs.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "app/cli/flag_values.hpp"
#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "app/plan/plan_run.hpp"
#include "hubferry/hubs/hub_registration.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::app {

namespace {

void add_cluster(const kube::Object& object, std::map<std::string, RegisteredHub>& hubs) {
  const auto decoded = ocm::managed_cluster_decoder().from_object(object);
  if (!decoded) return;
  const auto& cluster = *static_cast<const ocm::ManagedCluster*>(decoded->object.get());
  const auto known = hubs.find(std::string{cluster.name()});
  if (known == hubs.end() && !hubs::is_hub(cluster)) return;
  auto& hub = hubs[std::string{cluster.name()}];
  hub.has_cluster = true;
  hub.is_hub = hubs::is_hub(cluster);
  hub.is_global_hub = hubs::is_global_hub(cluster);
  hub.available = hub.is_global_hub || cluster.is_true(ocm::names::available);
}

/// `secret` is the one that the manager uses.
void add_config(const kube::Object& secret, RegisteredHub& hub) {
  try {
    hub.config = hubs::read_hub_kubeconfig(secret);
  } catch (const std::exception& error) {
    hub.problem = message_of(error);
  }
}

}  // namespace

async::Awaitable<std::vector<RegisteredHub>> read_hubs(kube::Api& global) {
  co_await check_access(global);
  kube::ListOptions labelled;
  labelled.label_selector = std::string{hubs::hub_kubeconfig_label} + "=true";
  auto secrets = co_await global.list_all(kube::resources::secrets, labelled);
  if (!secrets) throw_for(secrets.error(), global);
  const kube::ListOptions everything;
  const auto clusters = co_await global.list_all(ocm::managed_clusters, everything);
  if (!clusters) throw_for(clusters.error(), global);

  std::ranges::sort(*secrets, {}, [](const kube::Object& secret) { return std::string{secret.name()}; });
  std::map<std::string, RegisteredHub> hubs;
  for (const auto& secret : *secrets) {
    auto& hub = hubs[std::string{secret.ns()}];
    hub.secrets.emplace_back(secret.name());
    if (hub.secrets.size() == 1) add_config(secret, hub);
  }
  for (const auto& cluster : *clusters) add_cluster(cluster, hubs);
  std::vector<RegisteredHub> all;
  for (auto& [name, hub] : hubs) {
    hub.name = name;
    if (hub.secrets.empty() && !hub.is_global_hub) hub.problem = hubs::missing_kubeconfig(name);
    all.push_back(std::move(hub));
  }
  std::ranges::sort(all, natural_less, &RegisteredHub::name);
  co_return all;
}

const RegisteredHub& select_hub(const std::vector<RegisteredHub>& hubs, const std::string& name) {
  const auto found = std::ranges::find(hubs, name, &RegisteredHub::name);
  if (found != hubs.end()) return *found;
  std::vector<std::string> names;
  for (const auto& hub : hubs) names.push_back(hub.name);
  const auto meant = nearest(name, names);
  throw std::runtime_error("the global hub has no hub '" + name + "'" +
                           (meant ? " (did you mean " + *meant + "?)" : ""));
}

std::shared_ptr<kube::Api> connect_to(ServerClient& client, const RegisteredHub& hub) {
  if (hub.is_global_hub) return {std::shared_ptr<void>{}, &client.api()};
  if (!hub.config) return nullptr;
  return client.connect(hub.name, *hub.config);
}

async::Awaitable<hubagent::ClusterNames> select_clusters(ServerClient& client, std::string hub, std::string selector) {
  const auto hubs = co_await read_hubs(client.api());
  const auto& source = select_hub(hubs, hub);
  const auto api = connect_to(client, source);
  if (api == nullptr) throw std::runtime_error(source.problem);
  kube::ListOptions options;
  options.label_selector = selector;
  const auto clusters = co_await api->list_all(ocm::managed_clusters, options);
  if (!clusters)
    throw std::runtime_error("cannot list the clusters of hub " + hub + ": " + clusters.error().describe());
  hubagent::ClusterNames names;
  for (const auto& cluster : *clusters)
    if (cluster.label(ocm::names::local_cluster_label) != "true") names.emplace_back(cluster.name());
  if (names.empty()) throw std::runtime_error("hub " + hub + " has no cluster with the labels '" + selector + "'");
  std::ranges::sort(names);
  co_return names;
}

}  // namespace hubferry::app
