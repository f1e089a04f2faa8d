#include "hubagent/direct_hubs.hpp"
#include "hubagent/source_return.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/resources.hpp"

/// How the source reaches the agent of a cluster that cannot be reached by its works: an agent that registers on a hub
/// does so until it succeeds. A new process asks the hubs anew.
namespace hubferry::hubagent {

namespace {

const Resource pods{"", "v1", "pods", "Pod", true};

/// Of all modes: with Singleton the agents are one process.
constexpr const char* agent_pods = "app in (klusterlet-agent, klusterlet-registration-agent)";

/// A cluster that does not answer must not keep the others waiting.
constexpr auto answer_timeout = std::chrono::seconds{10};

Error cannot_restart(const std::string& cluster, const std::string& why) {
  return {FailureReason::cluster_not_available, "cannot restart the agent of cluster " + cluster + ": " + why};
}

/// The Secret with the admin kubeconfig that Hive, or the user, has put into the cluster's namespace.
Awaitable<Result<std::string>> admin_secret_name(const Hub& hub, std::string cluster) {
  std::string name = cluster + "-admin-kubeconfig";
  auto served = co_await serves(hub, ocm::cluster_deployments);
  if (!served) co_return served.error();
  if (!*served) co_return name;
  auto deployments = co_await list(hub, ocm::cluster_deployments, cluster);
  if (!deployments) co_return deployments.error();
  for (const auto& deployment : *deployments) {
    const auto named = deployment.string_at({"spec", "clusterMetadata", "adminKubeconfigSecretRef", "name"});
    if (!named.empty()) name = named;
  }
  co_return name;
}

Awaitable<Result<kube::ClientConfig>> admin_config(const Hub& hub, std::string cluster) {
  auto name = co_await admin_secret_name(hub, cluster);
  if (!name) co_return name.error();
  const Key key{cluster, *name};
  auto secret = co_await get_if_exists(hub, kube::resources::secrets, key);
  if (!secret) co_return secret.error();
  const auto where = described(kube::resources::secrets, key) + " of hub " + hub.name();
  if (!*secret) co_return cannot_restart(cluster, "there is no " + where + " with its admin kubeconfig");
  const auto text = kube::decode_base64((*secret)->string_at({"data", "kubeconfig"}));
  if (!text || text->empty()) co_return cannot_restart(cluster, where + " has no key kubeconfig");
  try {
    auto config = kube::parse_kubeconfig(*text, where, std::nullopt);
    if (config.server.starts_with("https://")) co_return config;
    co_return cannot_restart(cluster, where + ": the server is not https");
  } catch (const kube::ConfigError& error) {
    co_return cannot_restart(cluster, error.what());
  }
}

/// Deletes the pods of the agents, which their Deployment replaces. Not by a change of the Deployment: the klusterlet's
/// operator reverts that, before a pod is replaced perhaps.
Awaitable<kube::Result<std::size_t>> delete_agents(kube::Api& api) {
  kube::ListOptions agents;
  agents.ns = ocm::names::agent_namespace;
  agents.label_selector = agent_pods;
  auto found = co_await api.list_all(pods, agents);
  if (!found) co_return found.error();
  for (const auto& pod : *found) {
    auto deleted = co_await api.remove(pods, pod.key());
    if (!deleted && deleted.error().kind != ErrorKind::not_found) co_return deleted.error();
  }
  co_return found->size();
}

}  // namespace

Awaitable<Result<Outcome>> DirectSourceHub::restart_agents(MigrationRef migration, ClusterNames clusters) {
  const auto& hub = *hub_;
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    if (!hub.options().connect_cluster) co_return cannot_restart(cluster, "this process cannot connect to clusters");
    auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
    if (!found) co_return found.error();
    if (!*found) co_return no_such_cluster(hub, cluster);
    if (!is_claimed_by(migration, **found)) co_return not_claimed(hub, cluster, **found);
    // Refused by both hubs, its successor would find no hub for minutes.
    if (!is_accepted(**found)) co_return cannot_restart(cluster, "hub " + hub.name() + " does not accept it");
    auto config = co_await admin_config(hub, cluster);
    slot.release();
    if (!config) co_return config.error();
    decltype(hub.options().connect_cluster(*config)) api{};
    std::string unusable = "its admin kubeconfig is of no use";
    try {
      api = hub.options().connect_cluster(*config);
    } catch (const std::exception& error) {
      unusable = error.what();
    }
    if (!api) co_return cannot_restart(cluster, unusable);
    auto& clock = hub.env().clock;
    auto deleted = co_await async::before_deadline(clock, clock.now() + answer_timeout, delete_agents(*api));
    if (!deleted) co_return cannot_restart(cluster, "its API server does not answer");
    if (!*deleted) co_return cannot_restart(cluster, Error{deleted->error()}.describe());
    if (**deleted == 0)
      co_return cannot_restart(cluster, "it has no pods of the klusterlet's agents in namespace " +
                                            std::string{ocm::names::agent_namespace});
    hub.env().log.info("agent restarted", {{"cluster", cluster}, {"pods", **deleted}});
    co_return Result<>{};
  };
  co_return co_await for_each_cluster(*hub_, std::move(clusters), process);
}

}  // namespace hubferry::hubagent
