#include "app/hubs/hub_check.hpp"

#include <algorithm>

#include "app/cli/output.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubagent/hub_permissions.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::app {

namespace {

using Result = HubCheck::Result;

const kube::Resource multicluster_hubs{"operator.open-cluster-management.io", "v1", "multiclusterhubs",
                                       "MultiClusterHub", true};
const kube::Resource multicluster_engines{"multicluster.openshift.io", "v1", "multiclusterengines",
                                          "MultiClusterEngine", false};

/// Connects; nullptr and the reason without a usable kubeconfig.
std::shared_ptr<kube::Api> try_to_connect(ServerClient& client, const RegisteredHub& hub, std::string& problem) {
  try {
    problem = hub.problem;
    return connect_to(client, hub);
  } catch (const std::exception& error) {
    problem = message_of(error);
    return nullptr;
  }
}

async::Awaitable<kube::Result<std::string>> read_version(kube::Api& api) {
  const auto answer = co_await api.get_path("/version");
  if (!answer) co_return answer.error();
  co_return answer->is_object() ? std::string{kube::string_at(answer->get_object(), {"gitVersion"})} : std::string{};
}

class Checker {
 public:
  Checker(ServerClient& client, const RegisteredHub& hub, HubUse use) : client_(client), hub_(hub), use_(use) {}

  async::Awaitable<std::vector<HubCheck>> run() {
    check_registration();
    std::string problem;
    api_ = try_to_connect(client_, hub_, problem);
    check_kubeconfig(problem);
    if (api_ == nullptr) co_return checks_;
    if (co_await check_connection() && co_await check_credential()) {
      co_await check_kinds();
      co_await check_permissions();
    }
    co_return checks_;
  }

 private:
  void add(std::string name, Result result, std::string message) {
    checks_.push_back({std::move(name), result, std::move(message)});
  }

  void check_registration() {
    if (!hub_.has_cluster)
      add("registered", Result::failed, "the global hub has no ManagedCluster " + hub_.name);
    else if (!hub_.is_hub)
      add("registered", Result::failed,
          "ManagedCluster " + hub_.name + " is not a hub: it lacks the label " + ocm::names::deploy_mode_label);
    else if (!hub_.available)
      add("registered", Result::failed, "ManagedCluster " + hub_.name + " is not Available");
    else
      add("registered", Result::ok, "ManagedCluster " + hub_.name + " is a hub and Available");
  }

  void check_kubeconfig(const std::string& problem) {
    if (hub_.is_global_hub) return add("kubeconfig", Result::ok, "the global hub itself: none is needed");
    if (api_ == nullptr) return add("kubeconfig", Result::failed, problem);
    const auto used = "Secret " + hub_.name + "/" + hub_.secrets.front();
    if (hub_.secrets.size() > 1)
      return add("kubeconfig", Result::warning,
                 used + " is used; " + plural(hub_.secrets.size() - 1, "further Secret") + " of the hub is ignored");
    if (hub_.config->insecure_skip_tls_verify)
      return add("kubeconfig", Result::warning, used + ": the server's certificate is not verified");
    add("kubeconfig", Result::ok, used + ": " + hub_.config->server);
  }

  async::Awaitable<bool> check_connection() {
    const auto version = co_await read_version(*api_);
    if (!version && version.error().kind == kube::ErrorKind::unreachable) {
      add("reachable", Result::failed, version.error().message);
      co_return false;
    }
    // A server that refuses to name its version answers nevertheless.
    add("reachable", Result::ok, version && !version->empty() ? "Kubernetes " + *version : "it answers");
    co_return true;
  }

  async::Awaitable<bool> check_credential() {
    const auto allowed = co_await api_->may("list", ocm::managed_clusters, kube::Key{});
    if (allowed) {
      add("credential", Result::ok, "accepted");
      co_return true;
    }
    const bool rejected = allowed.error().kind == kube::ErrorKind::unauthorized;
    add("credential", Result::failed,
        rejected ? "the hub rejects it (401): it has expired or was revoked" : allowed.error().describe());
    co_return false;
  }

  /// Which of them the hub serves. A discovery that failed says nothing about any of them.
  async::Awaitable<kube::Result<std::vector<bool>>> serves(std::vector<kube::Resource> kinds) {
    std::vector<bool> all;
    for (const auto& kind : kinds) {
      const auto served = co_await api_->serves(kind);
      if (!served) co_return served.error();
      all.push_back(*served);
    }
    co_return all;
  }

  async::Awaitable<> check_kinds() {
    const auto served =
        co_await serves({ocm::managed_clusters, multicluster_hubs, multicluster_engines, ocm::klusterlet_configs});
    if (!served) {
      add("kinds", Result::failed, "unknown, since they cannot be read: " + served.error().describe());
      co_return;
    }
    const auto& [clusters, hubs, engines, has_configs] =
        std::tuple{(*served)[0], (*served)[1], (*served)[2], (*served)[3]};
    if (!clusters) {
      add("kinds", Result::failed, "it does not serve ManagedClusters: Open Cluster Management is not installed");
      co_return;
    }
    std::string flavour = hubs      ? "Advanced Cluster Management"
                          : engines ? "multicluster engine"
                                    : "Open Cluster Management";
    flavour += has_configs ? ", with KlusterletConfigs" : ", without KlusterletConfigs";
    if (!has_configs && use_.source)
      add("kinds", Result::failed,
          flavour + ": it cannot be a source, since agents cannot get the target's kubeconfig");
    else
      add("kinds", Result::ok, flavour);
  }

  async::Awaitable<> check_permissions() {
    if (hub_.is_global_hub) {
      add("permissions", Result::warning,
          "not checked: on the global hub the manager uses its own account, and this command yours");
      co_return;
    }
    for (const auto& permissions : hubagent::hub_permissions()) {
      if (!(permissions.for_source && use_.source) && !(permissions.for_target && use_.target)) continue;
      co_await review(permissions);
    }
  }

  /// Reviews the permissions one by one, some at the same time.
  async::Awaitable<> review(const hubagent::HubPermissions& permissions) {
    constexpr std::size_t reviewers = 8;
    std::vector<std::string> missing(permissions.needed.size());
    std::string failure;
    std::size_t next = 0;
    auto reviewer = [&]() -> async::Awaitable<> {
      while (next < permissions.needed.size() && failure.empty()) {
        const auto index = next++;
        const auto& needed = permissions.needed[index];
        const auto allowed = co_await api_->may(needed.verb, needed.resource, needed.key, needed.subresource);
        if (!allowed)
          failure = allowed.error().describe();
        else if (!*allowed)
          missing[index] = needed.text();
      }
    };
    auto all = [&](async::TaskScope& scope) -> async::Awaitable<> {
      for (std::size_t i = 0; i < reviewers; ++i) scope.spawn(reviewer());
      co_return;
    };
    co_await async::with_scope(all);
    std::erase(missing, "");
    const auto name = "permissions: " + permissions.name;
    if (!failure.empty())
      add(name, Result::failed, failure);
    else if (missing.empty())
      add(name, Result::ok, "all " + std::to_string(permissions.needed.size()));
    else
      add(name, permissions.optional ? Result::warning : Result::failed,
          "may not " + hubagent::joined_permissions(missing) + ": " + permissions.advice);
  }

  ServerClient& client_;
  const RegisteredHub& hub_;
  HubUse use_;
  std::shared_ptr<kube::Api> api_;
  std::vector<HubCheck> checks_;
};

}  // namespace

async::Awaitable<std::vector<HubSummary>> summarize(ServerClient& client, std::vector<RegisteredHub> hubs) {
  std::vector<HubSummary> all;
  for (auto& hub : hubs) all.push_back({std::move(hub)});
  auto one = [&client](HubSummary& summary) -> async::Awaitable<> {
    const auto& hub = summary.hub;
    const auto api = try_to_connect(client, hub, summary.problem);
    if (!hub.has_cluster) summary.problem = "the global hub has no ManagedCluster " + hub.name;
    if (hub.has_cluster && !hub.is_hub) summary.problem = "its ManagedCluster is not a hub";
    if (hub.is_hub && !hub.available) summary.problem = "its ManagedCluster is not Available";
    if (api == nullptr) co_return;
    const auto version = co_await read_version(*api);
    summary.reachable = version || version.error().kind != kube::ErrorKind::unreachable;
    if (version)
      summary.version = *version;
    else
      summary.problem = version.error().message;
  };
  auto each = [&](async::TaskScope& scope) -> async::Awaitable<> {
    for (auto& summary : all) scope.spawn(one(summary));
    co_return;
  };
  co_await async::with_scope(each);
  co_return all;
}

async::Awaitable<std::vector<HubCheck>> check_hub(ServerClient& client, RegisteredHub hub, HubUse use) {
  Checker checker{client, hub, use};
  co_return co_await checker.run();
}

bool is_usable(const std::vector<HubCheck>& checks) {
  return std::ranges::none_of(checks, [](const HubCheck& check) { return check.result == Result::failed; });
}

}  // namespace hubferry::app
