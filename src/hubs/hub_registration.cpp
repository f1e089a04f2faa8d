#include "hubferry/hubs/hub_registration.hpp"

#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubs {

bool is_global_hub(const ocm::ManagedCluster& cluster) {
  return cluster.label(ocm::names::local_cluster_label) == "true";
}

bool is_hub(const ocm::ManagedCluster& cluster) {
  return is_global_hub(cluster) || cluster.label(ocm::names::deploy_mode_label).has_value() ||
         cluster.annotation(ocm::names::on_hub_annotation) == "true";
}

std::string missing_kubeconfig(const std::string& hub) {
  return "there is no kubeconfig for hub " + hub + ": create a Secret in namespace " + hub +
         " of the global hub, with the label " + hub_kubeconfig_label +
         "=true and the hub's kubeconfig under the key " + hub_kubeconfig_key;
}

kube::ClientConfig read_hub_kubeconfig(const kube::Object& secret) {
  const std::string where = "Secret " + kube::to_string(secret.key()) + " of the global hub";
  const auto encoded = secret.string_at({"data", hub_kubeconfig_key});
  if (encoded.empty()) throw kube::ConfigError(where + " has no key " + hub_kubeconfig_key);
  const auto text = kube::decode_base64(encoded);
  if (!text) throw kube::ConfigError(where + ": the key " + hub_kubeconfig_key + " is not base64");
  auto config = kube::parse_kubeconfig(*text, where, std::nullopt);
  if (!config.server.starts_with("https://"))
    throw kube::ConfigError(where + ": the server is not https: credentials would be sent in clear text");
  return config;
}

}  // namespace hubferry::hubs
