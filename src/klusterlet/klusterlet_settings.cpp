#include "hubferry/klusterlet/klusterlet_store.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/klusterlet_objects.hpp"

// What a Klusterlet says.
namespace hubferry::klusterlet {

using namespace objects;

namespace {

std::vector<ExternalServer> read_external_servers(const kube::Object& klusterlet) {
  std::vector<ExternalServer> servers;
  const auto* list = klusterlet.find({"spec", "externalServerURLs"});
  if (list == nullptr || !list->is_array()) return servers;
  for (const auto& entry : list->get_array()) {
    if (!entry.is_object()) continue;
    const auto& fields = entry.get_object();
    std::string url{kube::string_at(fields, {"url"})};
    if (!url.starts_with("https://")) continue;
    servers.push_back({std::move(url), kube::decode_base64(kube::string_at(fields, {"caBundle"})).value_or("")});
  }
  return servers;
}

void read_certificate_settings(const value* registration, KlusterletSettings& settings) {
  if (registration == nullptr) return;
  // A lifetime below the API's minimum is ignored: the hub decides.
  const auto* lifetime = kube::find(*registration, {"clientCertExpirationSeconds"});
  if (lifetime != nullptr && lifetime->is_int64() && lifetime->get_int64() >= 3600)
    settings.certificate_lifetime = std::chrono::seconds{lifetime->get_int64()};
  const auto* annotations = kube::find(*registration, {"clusterAnnotations"});
  if (annotations != nullptr && annotations->is_object())
    for (const auto& [name, text] : annotations->get_object())
      if (text.is_string()) settings.cluster_annotations.emplace(name, text.get_string());
}

}  // namespace

KlusterletSettings read_klusterlet(const kube::Object& klusterlet) {
  KlusterletSettings settings;
  const auto refuse = [&](const char* reason, std::string problem) {
    settings.problem_reason = reason;
    settings.problem = std::move(problem);
    return settings;
  };
  const auto* registration = klusterlet.find({"spec", "registrationConfiguration"});
  read_certificate_settings(registration, settings);
  settings.external_servers = read_external_servers(klusterlet);
  settings.multiple_hubs = registration != nullptr && is_gate_on(kube::find(*registration, {"featureGates"}));
  if (!settings.multiple_hubs) {
    settings.secrets = {ocm::names::bootstrap_secret};
    return settings;
  }
  const auto* configs = kube::find(*registration, {"bootstrapKubeConfigs"});
  const auto type = configs != nullptr && configs->is_object() ? kube::string_at(configs->get_object(), {"type"})
                                                               : std::string_view{};
  if (type != "LocalSecrets")
    return refuse("BootstrapKubeConfigsMissing",
                  "the feature gate MultipleHubs is on, but bootstrapKubeConfigs is of type " +
                      std::string{type.empty() ? "None" : type} + ": it must be LocalSecrets and name the Secrets");
  const auto* local = kube::find(*configs, {"localSecretsConfig"});
  const auto* names = local == nullptr ? nullptr : kube::find(*local, {"kubeConfigSecrets"});
  if (names != nullptr && names->is_array())
    for (const auto& entry : names->get_array())
      if (entry.is_object()) settings.secrets.emplace_back(kube::string_at(entry.get_object(), {"name"}));
  if (settings.secrets.size() < 2)
    return refuse("TooFewBootstrapKubeConfigs",
                  "the feature gate MultipleHubs is on: localSecretsConfig.kubeConfigSecrets must name at least two "
                  "Secrets, not " +
                      std::to_string(settings.secrets.size()));
  const auto* seconds = kube::find(*local, {"hubConnectionTimeoutSeconds"});
  if (seconds != nullptr && seconds->is_int64() && seconds->get_int64() > 0)
    settings.timeout = std::chrono::seconds{seconds->get_int64()};
  return settings;
}

}  // namespace hubferry::klusterlet
