#include "sim/apiserver/client_config.hpp"

#include "sim/apiserver/core.hpp"

namespace hubferry::sim {

kube::ClientConfig describe_server(Core& core, const std::string& url) {
  kube::ClientConfig config;
  config.name = core.options().name;
  config.cluster_name = core.options().name;
  config.source = "the simulated server " + core.options().name;
  config.server = url;
  if (url.starts_with("https://")) config.ca_pem = core.authority().certificate_pem();
  return config;
}

void add_credential(kube::ClientConfig& config, Core& core, const User& user, bool by_certificate) {
  if (!by_certificate) {
    config.token = core.add_token(user, std::nullopt, {});
    return;
  }
  auto pair = core.authority().issue_client(user.name, user.groups, core.clock().wall_now());
  config.client_certificate_pem = std::move(pair.certificate);
  config.client_key_pem = std::move(pair.key);
}

}  // namespace hubferry::sim
