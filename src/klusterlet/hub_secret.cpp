#include "hubferry/klusterlet/hub_secret.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cctype>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/server_url.hpp"

namespace hubferry::klusterlet {

namespace json = boost::json;

namespace {

constexpr const char* certificate_file = "tls.crt";
constexpr const char* key_file = "tls.key";
constexpr const char* secret_name = "the hub kubeconfig secret";

}  // namespace

std::string hub_kubeconfig(const kube::ClientConfig& bootstrap) {
  json::object cluster{{"server", bootstrap.server}};
  if (!bootstrap.tls_server_name.empty()) cluster["tls-server-name"] = bootstrap.tls_server_name;
  if (!bootstrap.ca_pem.empty()) cluster["certificate-authority-data"] = kube::encode_base64(bootstrap.ca_pem);
  if (bootstrap.insecure_skip_tls_verify) cluster["insecure-skip-tls-verify"] = true;
  if (!bootstrap.proxy_url.empty()) cluster["proxy-url"] = bootstrap.proxy_url;
  const json::object user{{"client-certificate", certificate_file}, {"client-key", key_file}};
  const json::object context{
      {"cluster", bootstrap.cluster_name}, {"user", "default-auth"}, {"namespace", "configuration"}};
  // JSON is valid YAML, and needs no YAML writer.
  const json::object config{
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"clusters", json::array{json::object{{"name", bootstrap.cluster_name}, {"cluster", std::move(cluster)}}}},
      {"users", json::array{json::object{{"name", "default-auth"}, {"user", user}}}},
      {"contexts", json::array{json::object{{"name", "default-context"}, {"context", context}}}},
      {"current-context", "default-context"}};
  return json::serialize(config);
}

kube::ClientConfig client_config(const HubSecret& secret) {
  const std::map<std::string, std::string> files{{certificate_file, secret.certificate},
                                                 {key_file, secret.key.reveal()}};
  auto config = kube::parse_kubeconfig_of_secret(secret.kubeconfig, secret_name, files);
  config.server = hub_url(config.server);
  return config;
}

kube::ClientConfig client_config(const HubSecret& secret, const kube::ClientConfig& bootstrap) {
  kube::ClientConfig config;
  config.name = "default-context";
  config.source = secret_name;
  config.server = bootstrap.server;
  config.tls_server_name = bootstrap.tls_server_name;
  config.ca_pem = bootstrap.ca_pem;
  config.insecure_skip_tls_verify = bootstrap.insecure_skip_tls_verify;
  config.proxy_url = bootstrap.proxy_url;
  config.cluster_name = bootstrap.cluster_name;
  config.client_certificate_pem = secret.certificate;
  config.client_key_pem = secret.key.reveal();
  return config;
}

std::string hub_url(const std::string& server) {
  auto url = kube::parse_server_url(server);
  // Not the zone of an IPv6 address, which names an interface.
  const auto zone = std::ranges::find(url.host, '%');
  std::transform(url.host.begin(), zone, url.host.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return url.text();
}

bool is_same_hub(const kube::ClientConfig& one, const kube::ClientConfig& other) {
  return one.server == other.server && one.cluster_name == other.cluster_name;
}

bool is_reached_alike(const kube::ClientConfig& one, const kube::ClientConfig& other) {
  return one.ca_pem == other.ca_pem && one.tls_server_name == other.tls_server_name &&
         one.insecure_skip_tls_verify == other.insecure_skip_tls_verify && one.proxy_url == other.proxy_url;
}

std::optional<std::string> why_unusable(const HubSecret& secret, const kube::ClientConfig& config,
                                        const kube::ClientConfig& bootstrap, const Identity& identity,
                                        KeySource& keys) {
  if (secret.key.empty()) return "it has no private key";
  const auto chain = keys.read(secret.certificate).certificates;
  if (!validity_of(chain)) return "it has no valid certificate";
  if (!is_same_hub(config, bootstrap)) return "it is for another hub: " + config.server;
  if (secret.cluster_name != identity.cluster || secret.agent_name != identity.agent)
    return "it belongs to another agent";
  const auto expected = identity.common_name();
  if (std::ranges::none_of(chain, [&](const CertificateInfo& info) { return info.common_name == expected; }))
    return "its certificate is not for " + expected;
  // Parts of two versions: no connection could be made with it.
  if (!keys.fits(secret.certificate, secret.key)) return "its key does not match its certificate";
  return std::nullopt;
}

}  // namespace hubferry::klusterlet
