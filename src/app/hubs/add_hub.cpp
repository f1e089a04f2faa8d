#include "app/hubs/add_hub.hpp"

#include <ostream>

#include "app/cli/output.hpp"
#include "hubferry/hubs/hub_registration.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/server_url.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::app {

namespace json = kube::json;

namespace {

[[noreturn]] void fail(const std::string& what, const kube::Error& error) {
  throw std::runtime_error(what + ": " + error.describe());
}

/// `where`: what has the URL. The manager does not use a kubeconfig without https, and a token would have been sent.
void refuse_clear_text(const std::string& url, const std::string& where) {
  bool is_encrypted = false;
  try {
    is_encrypted = kube::parse_server_url(url).tls;
  } catch (const kube::ConfigError& error) {
    throw std::runtime_error(where + ": " + error.what());
  }
  if (!is_encrypted)
    throw std::runtime_error(where + ": the server is not https: the manager's token would be sent in clear text");
}

struct IssuedToken {
  std::string token;
  std::string expires;
};

async::Awaitable<IssuedToken> request_token(ServerClient& client, const AddHubOptions& options) {
  const auto hub = client.connect(options.hub, options.admin);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.token_duration).count();
  kube::Request request;
  request.verb = kube::Verb::create;
  request.resource = kube::resources::service_accounts;
  request.key = {options.account_namespace, options.account};
  request.subresource = "token";
  request.body = json::object{{"apiVersion", "authentication.k8s.io/v1"},
                              {"kind", "TokenRequest"},
                              {"spec", json::object{{"expirationSeconds", seconds}}}};
  const auto account = options.account_namespace + "/" + options.account;
  const auto issued = co_await hub->call(request);
  if (!issued && issued.error().kind == kube::ErrorKind::not_found)
    throw std::runtime_error("hub " + options.hub + " has no ServiceAccount " + account +
                             " for the manager: apply manifests/hub-rbac there first");
  if (!issued) fail("cannot get a token of ServiceAccount " + account + " on hub " + options.hub, issued.error());
  IssuedToken result{std::string{issued->string_at({"status", "token"})},
                     std::string{issued->string_at({"status", "expirationTimestamp"})}};
  if (result.token.empty()) throw std::runtime_error("hub " + options.hub + " issued no token for " + account);
  co_return result;
}

json::object secret_for(const AddHubOptions& options, const std::string& token) {
  kube::ClientConfig config;
  config.name = options.hub;
  config.cluster_name = options.hub;
  config.server = options.server.empty() ? options.admin.server : options.server;
  config.ca_pem = options.admin.ca_pem;
  config.tls_server_name = options.admin.tls_server_name;
  config.token = token;
  json::object labels{{hubs::hub_kubeconfig_label, "true"}};
  json::object metadata{{"name", added_secret}, {"namespace", options.hub}, {"labels", std::move(labels)}};
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", std::move(metadata)},
          {"type", "Opaque"},
          {"data", json::object{{hubs::hub_kubeconfig_key, kube::encode_base64(kube::to_kubeconfig(config))}}}};
}

/// The manager takes the first Secret by name: one of somebody else must not stand in the way, or be in use unnoticed.
async::Awaitable<> refuse_other_secrets(kube::Api& global, const std::string& hub) {
  kube::ListOptions labelled;
  labelled.ns = hub;
  labelled.label_selector = std::string{hubs::hub_kubeconfig_label} + "=true";
  const auto secrets = co_await global.list_all(kube::resources::secrets, labelled);
  if (!secrets) fail("cannot list the Secrets of namespace " + hub, secrets.error());
  for (const auto& secret : *secrets)
    if (secret.name() != added_secret)
      throw std::runtime_error("Secret " + kube::to_string(secret.key()) +
                               " has a kubeconfig of the hub already: change it, or delete it first");
}

}  // namespace

async::Awaitable<> add_hub(ServerClient& client, AddHubOptions options, std::ostream& out) {
  auto& global = client.api();
  if (options.admin.insecure_skip_tls_verify)
    throw std::runtime_error("the kubeconfig of hub " + options.hub +
                             " does not verify the server's certificate: the manager's token would be sent to anybody");
  refuse_clear_text(options.admin.server, "the kubeconfig of hub " + options.hub);
  if (!options.server.empty()) refuse_clear_text(options.server, "--server");
  const kube::Key key{{}, options.hub};
  const auto cluster = co_await global.get(ocm::managed_clusters, key);
  if (!cluster && cluster.error().kind == kube::ErrorKind::not_found)
    throw std::runtime_error("the global hub has no ManagedCluster " + options.hub + ": import the hub there first");
  if (!cluster) throw_for(cluster.error(), global);
  co_await refuse_other_secrets(global, options.hub);
  json::object labels{{ocm::names::deploy_mode_label, "default"}};
  if (options.dry_run) {
    auto secret = secret_for(options, "TOKEN");
    secret.erase("data");
    secret["stringData"] =
        json::object{{hubs::hub_kubeconfig_key, "a kubeconfig with a token of ServiceAccount " +
                                                    options.account_namespace + "/" + options.account}};
    out << to_yaml(in_usual_order(secret)) << "---\n"
        << "# ManagedCluster " << options.hub << " gets the label " << ocm::names::deploy_mode_label << "=default\n";
    co_return;
  }
  const auto issued = co_await request_token(client, options);
  auto secret = secret_for(options, issued.token);
  const auto written = co_await global.apply(kube::resources::secrets, std::move(secret), true);
  if (!written) fail("cannot write Secret " + options.hub + "/" + added_secret, written.error());
  if (!cluster->find({"metadata", "labels", ocm::names::deploy_mode_label})) {
    json::object patch{{"metadata", json::object{{"labels", std::move(labels)}}}};
    const auto labelled = co_await global.merge_patch(ocm::managed_clusters, key, std::move(patch));
    if (!labelled) fail("cannot label ManagedCluster " + options.hub, labelled.error());
  }
  out << "Hub " << options.hub << " added: Secret " << options.hub << "/" << added_secret
      << " has the manager's access to it";
  if (!issued.expires.empty()) out << ", with a token that expires at " << issued.expires;
  out << "\n";
}

}  // namespace hubferry::app
