#include "hubferry/klusterlet/certificates.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/agent_request.hpp"
#include "ocm/behaviour.hpp"

namespace hubferry::behaviour {

Awaitable<Object> ImportBehaviour::klusterlet_work(Api& hub, std::string cluster) {
  auto work = co_await hub.get(ocm::manifest_works, Key{cluster, cluster + "-klusterlet"});
  co_return work.value();
}

Awaitable<bool> ImportBehaviour::is_read_only(Api& hub, std::string cluster) {
  auto work = co_await klusterlet_work(hub, std::move(cluster));
  const auto* configs = work.find({"spec", "manifestConfigs"});
  const auto* manifests = work.find({"spec", "workload", "manifests"});
  if (configs == nullptr || manifests == nullptr || configs->as_array().empty()) co_return false;
  std::size_t read_only = 0;
  for (const auto& config : configs->as_array())
    if (string_at(config.as_object(), {"updateStrategy", "type"}) == "ReadOnly") ++read_only;
  co_return read_only == manifests->as_array().size();
}

Awaitable<std::vector<std::string>> ImportBehaviour::bootstrap_secrets(Api& hub, std::string cluster) {
  auto work = co_await klusterlet_work(hub, std::move(cluster));
  std::vector<std::string> found;
  for (const auto& manifest : work.find({"spec", "workload", "manifests"})->as_array()) {
    if (string_at(manifest.as_object(), {"kind"}) != "Secret") continue;
    std::string name{string_at(manifest.as_object(), {"metadata", "name"})};
    if (name.starts_with("bootstrap-")) found.push_back(std::move(name));
  }
  co_return found;
}

Awaitable<> ImportBehaviour::make_bootstrap_secret(Api& hub, std::string name, std::string kubeconfig) {
  json::object secret{{"metadata", json::object{{"name", name}, {"namespace", names::engine_namespace}}},
                      {"data", json::object{{"kubeconfig", encode_base64(kubeconfig)}}}};
  co_await make(hub, resources::secrets, std::move(secret));
}

Awaitable<> ImportBehaviour::make_config(Api& hub, std::string name, std::string secret) {
  json::object local{{"kubeConfigSecrets", json::array{json::object{{"name", secret}}}}};
  json::object hubs{
      {"genBootstrapKubeConfigStrategy", "IncludeCurrentHub"},
      {"bootstrapKubeConfigs", json::object{{"type", "LocalSecrets"}, {"localSecretsConfig", std::move(local)}}}};
  json::object config{{"metadata", json::object{{"name", name}}},
                      {"spec", json::object{{"multipleHubsConfig", std::move(hubs)}}}};
  co_await make(hub, ocm::klusterlet_configs, std::move(config));
}

Awaitable<ClientConfig> ImportBehaviour::config_of_account(Api& hub, Key account) {
  Request request;
  request.verb = Verb::create;
  request.resource = resources::service_accounts;
  request.key = std::move(account);
  request.subresource = "token";
  request.body = json::object{{"apiVersion", "authentication.k8s.io/v1"},
                              {"kind", "TokenRequest"},
                              {"spec", json::object{{"expirationSeconds", 3600}}}};
  auto made = co_await hub.call(std::move(request));
  auto config = world().address_of(hub);
  config.token = made.value().string_at({"status", "token"});
  co_return config;
}

Awaitable<std::string> ImportBehaviour::request_certificate(Api& hub, ClientConfig as, std::string cluster) {
  const klusterlet::Identity identity{cluster, "suite"};
  const auto signing = klusterlet::make_signing_request(identity);
  json::object request{
      {"metadata",
       json::object{{"generateName", cluster + "-"}, {"labels", json::object{{names::cluster_name_label, cluster}}}}},
      {"spec", json::object{{"request", encode_base64(signing.request)},
                            {"signerName", ocm::agent_signer},
                            {"usages", json::array{"digital signature", "key encipherment", "client auth"}}}}};
  const auto agent = world().connect(std::move(as));
  auto made = co_await agent->create(resources::certificate_signing_requests, std::move(request));
  const std::string name{made.value().name()};
  at_end(hub, resources::certificate_signing_requests, Key{{}, name});
  co_return name;
}

Awaitable<bool> ImportBehaviour::is_approved(Api& hub, std::string request) {
  auto found = co_await hub.get(resources::certificate_signing_requests, Key{{}, std::move(request)});
  co_return is_condition_true(found.value(), "Approved");
}

Awaitable<Key> ImportBehaviour::make_mover(Api& hub) {
  // The cluster's name is unique enough for what belongs to it.
  const std::string name = "suite-mover-" + world().cluster();
  json::object account{{"metadata", json::object{{"name", name}, {"namespace", "default"}}}};
  co_await make(hub, resources::service_accounts, std::move(account));
  json::object binding{
      {"metadata", json::object{{"name", name}}},
      {"roleRef",
       json::object{
           {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", names::acm_bootstrap_role}}},
      {"subjects", json::array{json::object{{"kind", "ServiceAccount"}, {"name", name}, {"namespace", "default"}}}}};
  co_await make(hub, resources::cluster_role_bindings, std::move(binding));
  co_return Key{"default", name};
}

}  // namespace hubferry::behaviour
