#include "ocm/behaviour.hpp"

namespace hubferry::behaviour {

namespace {

constexpr const char* offered = "bootstrap-suite";
constexpr const char* offer_config = "suite-switch";

}  // namespace

Awaitable<> AgentBehaviour::offer(Api& from, ClientConfig kubeconfig) {
  co_await make_bootstrap_secret(from, offered, to_kubeconfig(kubeconfig));
  co_await make_config(from, offer_config, offered);
  co_await annotate(from, cluster(), names::klusterlet_config_annotation, offer_config);
  auto delivered = [&]() -> Awaitable<bool> {
    auto secret = co_await exists(cluster_api(), resources::secrets, Key{names::agent_namespace, offered});
    auto work = co_await klusterlet_work(from, cluster());
    auto klusterlet = co_await find(cluster_api(), ocm::klusterlets, Key{{}, "klusterlet"});
    const auto* list = klusterlet ? klusterlet->find({"spec", "registrationConfiguration", "bootstrapKubeConfigs",
                                                      "localSecretsConfig", "kubeConfigSecrets"})
                                  : nullptr;
    co_return secret&& is_condition_true(work, "Applied") && list != nullptr && list->as_array().size() == 2;
  };
  const bool done = co_await becomes("the cluster has the other hub's kubeconfig", facts::config_applied, delivered);
  if (!done) throw std::runtime_error("the kubeconfig was not delivered");
  // The klusterlet's operator rolls the agent out with the new list.
  co_await pause(5s);
}

Awaitable<bool> AgentBehaviour::switch_hub(Api& from, Api& to) {
  json::object copy{{"metadata", json::object{{"name", cluster()}}},
                    {"spec", json::object{{"hubAcceptsClient", true}, {"leaseDurationSeconds", 60}}}};
  auto made = co_await to.create(ocm::managed_clusters, std::move(copy));
  made.value();
  auto prepared = [&]() -> Awaitable<bool> {
    co_return co_await exists(to, ocm::manifest_works, Key{cluster(), cluster() + "-klusterlet"});
  };
  co_await becomes("the other hub prepares the copy", facts::import_prepared, prepared);
  auto kubeconfig = co_await config_of_account(to, Key{cluster(), cluster() + "-bootstrap-sa"});
  co_await offer(from, std::move(kubeconfig));
  co_await set_accepted(from, cluster(), false);
  auto joined = [&]() -> Awaitable<bool> {
    auto status = co_await condition(to, cluster(), names::available);
    co_return status == "True";
  };
  co_return co_await becomes("the agent is Available on the other hub", facts::switched, joined);
}

Awaitable<> AgentBehaviour::return_to_hub1() {
  // One write: with the list still there, hub1 is the last in it.
  json::object accept{
      {"metadata", json::object{{"annotations", json::object{{names::klusterlet_config_annotation, nullptr}}}}},
      {"spec", json::object{{"hubAcceptsClient", true}}}};
  co_await patch_cluster(hub1(), cluster(), std::move(accept));
  auto copy = co_await find(hub2(), ocm::managed_clusters, Key{{}, cluster()});
  if (copy) {
    auto there = co_await condition(hub2(), cluster(), names::available);
    if (there == "True") {
      auto kubeconfig = co_await config_of_account(hub1(), Key{cluster(), cluster() + "-bootstrap-sa"});
      co_await offer(hub2(), std::move(kubeconfig));
      co_await set_accepted(hub2(), cluster(), false);
    } else {
      co_await world().restart_agent();
    }
  }
  co_await renews_lease("the agent is back on hub1", hub1(), cluster(), {8700ms, 240s});
  if (!copy) co_return;
  co_await set_accepted(hub2(), cluster(), false);
  (void)co_await hub2().remove(ocm::managed_clusters, Key{{}, cluster()});
  auto gone = [&]() -> Awaitable<bool> {
    auto there = co_await exists(hub2(), resources::namespaces, Key{{}, cluster()});
    co_return !there;
  };
  co_await becomes("the copy is gone from hub2", facts::namespace_deleted, gone);
}

json::object AgentBehaviour::work(const std::string& name) {
  json::object space{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", json::object{{"name", name}}}};
  json::object settings{{"apiVersion", "v1"},
                        {"kind", "ConfigMap"},
                        {"metadata", json::object{{"name", name}, {"namespace", name}}},
                        {"data", json::object{{"color", "blue"}}}};
  return {{"metadata", json::object{{"name", name}, {"namespace", cluster()}}},
          {"spec", json::object{{"workload", json::object{{"manifests", json::array{space, settings}}}}}}};
}

Awaitable<std::optional<Object>> AgentBehaviour::config_map(std::string name) {
  return find(cluster_api(), resources::config_maps, Key{name, name});
}

Awaitable<bool> AgentBehaviour::is_applied(Api& hub, std::string name) {
  auto found = co_await hub.get(ocm::manifest_works, Key{cluster(), std::move(name)});
  co_return is_condition_true(found.value(), "Applied");
}

}  // namespace hubferry::behaviour
