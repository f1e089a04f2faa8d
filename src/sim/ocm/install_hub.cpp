#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "sim/ocm/agent_permissions.hpp"
#include "sim/ocm/ensure.hpp"

namespace hubferry::sim {

namespace json = kube::json;
namespace resources = kube::resources;

namespace {

json::object named(std::string_view name, std::string_view ns = {}) {
  json::object metadata{{"name", name}};
  if (!ns.empty()) metadata["namespace"] = ns;
  return {{"metadata", std::move(metadata)}};
}

json::object bootstrap_binding(const std::string& role) {
  auto binding = named(role);
  binding["roleRef"] = json::object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", role}};
  binding["subjects"] = json::array{json::object{{"kind", "ServiceAccount"},
                                                 {"name", hub_names::bootstrap_account},
                                                 {"namespace", hub_names::bootstrap_namespace}}};
  return binding;
}

json::object cluster_manager(bool auto_approval) {
  auto manager = named(hub_names::cluster_manager);
  json::object registration{{"autoApproveUsers", json::array{hub_names::bootstrap_user}}};
  registration["featureGates"] = json::array{
      json::object{{"feature", "ManagedClusterAutoApproval"}, {"mode", auto_approval ? "Enable" : "Disable"}}};
  manager["spec"] = json::object{{"registrationConfiguration", std::move(registration)}};
  return manager;
}

const kube::Resource registered_clusters{"register.open-cluster-management.io", "v1", "managedclusters",
                                         "ManagedCluster", false};

bool accepts(const kube::json::object& cluster) {
  const auto* accepted = kube::find(cluster, {"spec", "hubAcceptsClient"});
  return accepted != nullptr && accepted->is_bool() && accepted->get_bool();
}

std::optional<std::string> check_acceptance(const AdmissionReview& review) {
  const bool before = review.before != nullptr && accepts(review.before->json());
  if (before || !accepts(review.after)) return std::nullopt;
  const kube::Key key{{}, std::string{kube::string_at(review.after, {"metadata", "name"})}};
  if (!review.may("update", registered_clusters, key, "accept"))
    return "user \"" + review.user.name + "\" cannot update the HubAcceptsClient field";
  const auto space = review.find(kube::resources::namespaces, key);
  if (space && space->is_being_deleted())
    return "cannot set HubAcceptsClient to true while the namespace " + key.name + " is being deleted";
  return std::nullopt;
}

}  // namespace

kube::Awaitable<kube::Result<>> install_hub(kube::Api& hub, HubOptions options) {
  std::vector<std::pair<kube::Resource, json::object>> wanted;
  for (const char* ns : {hub_names::bootstrap_namespace, "open-cluster-management-hub", ocm::names::engine_namespace,
                         ocm::names::addon_namespace})
    wanted.emplace_back(resources::namespaces, named(ns));
  wanted.emplace_back(resources::service_accounts, named(hub_names::bootstrap_account, hub_names::bootstrap_namespace));
  std::vector<std::string> roles{ocm::names::ocm_bootstrap_role};
  if (options.import_controller != ImportController::none) roles.emplace_back(ocm::names::acm_bootstrap_role);
  for (const auto& role : roles) wanted.emplace_back(resources::cluster_roles, agent_permissions::bootstrap_role(role));
  wanted.emplace_back(resources::cluster_role_bindings, bootstrap_binding(roles.front()));
  wanted.emplace_back(resources::cluster_roles, agent_permissions::shared_registration_role());
  wanted.emplace_back(resources::cluster_roles, agent_permissions::shared_work_role());
  wanted.emplace_back(ocm::cluster_managers, cluster_manager(options.auto_approval));
  for (auto& [resource, object] : wanted) {
    auto made = co_await ensure_exists(hub, resource, std::move(object));
    if (!made) co_return made.error();
  }
  co_return kube::Result<>{};
}

kube::Awaitable<kube::Result<obs::Secret>> make_bootstrap_kubeconfig(kube::Api& hub, kube::ClientConfig where,
                                                                     std::chrono::seconds lifetime) {
  kube::Request request;
  request.verb = kube::Verb::create;
  request.resource = resources::service_accounts;
  request.key = {hub_names::bootstrap_namespace, hub_names::bootstrap_account};
  request.subresource = "token";
  request.body = json::object{{"apiVersion", "authentication.k8s.io/v1"},
                              {"kind", "TokenRequest"},
                              {"spec", json::object{{"expirationSeconds", lifetime.count()}}}};
  auto made = co_await hub.call(std::move(request));
  if (!made) co_return made.error();
  where.token = made->string_at({"status", "token"});
  where.client_certificate_pem.clear();
  where.client_key_pem.clear();
  co_return obs::Secret{kube::to_kubeconfig(where)};
}

void guard_acceptance(Server& hub) {
  hub.add_admission(ocm::managed_clusters, check_acceptance);
}

}  // namespace hubferry::sim
