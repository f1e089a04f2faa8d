#include <algorithm>
#include <system_error>

#include "hubferry/kube/names.hpp"
#include "hubferry/kube/read_file.hpp"
#include "hubferry/kube/server_url.hpp"
#include "kube/config/credential_source.hpp"
#include "kube/config/kubeconfig.hpp"
#include "kube/config/proxy.hpp"

namespace hubferry::kube {

namespace {

constexpr std::string_view exec_api_group = "client.authentication.k8s.io/";

/// "there are: a, b": helps with a mistyped name.
template <typename Map>
std::string choices(const Map& map) {
  constexpr std::size_t most = 10;
  std::string text;
  std::size_t count = 0;
  for (const auto& [name, stanza] : map) {
    if (count++ == most) return "; there are: " + text + ", …";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "; there are none" : "; there are: " + text;
}

std::filesystem::path resolved(const Origin& origin, std::string_view field, const std::string& file) {
  if (!origin.directory) origin.fail(field, "must not refer to a file in this configuration: put the content inline");
  if (file.find('\0') != std::string::npos) origin.fail(field, "is not a valid file name");
  return (*origin.directory / file).lexically_normal();
}

std::string read_reference(const Origin& origin, std::string_view field, const std::filesystem::path& file) {
  try {
    return read_file(file);
  } catch (const std::system_error& e) {
    origin.fail(field, file.string() + " cannot be read: " + e.code().message());
  }
}

std::string content_of(const Origin& origin, const InlineOrFile& value, const NamedFiles* files) {
  if (!value.content.empty()) return value.content;
  if (origin.directory || files == nullptr)
    return read_reference(origin, value.field, resolved(origin, value.field, value.file));
  const auto found = files->find(value.file);
  if (found == files->end()) origin.fail(value.field, "refers to a key that the Secret does not hold");
  return found->second;
}

/// The PEM text of a value; `mark` is what its header line must contain.
std::string pem_of(const Origin& origin, const InlineOrFile& value, std::string_view mark, const NamedFiles* files) {
  if (value.empty()) return {};
  const auto data_field = value.field + "-data";
  if (!value.content.empty() && !value.file.empty())
    origin.fail(value.field, "and " + data_field + " are both given: one of them must go");
  const bool from_file = value.content.empty();
  const auto pem = content_of(origin, value, files);
  const auto begin = pem.find("-----BEGIN ");
  if (begin == std::string::npos || pem.find(mark, begin) == std::string::npos)
    origin.fail(from_file ? value.field : data_field, "holds no PEM block of a " + std::string{mark});
  return pem;
}

/// The file that such a value was read from; empty for one that was inline, or came from a Secret.
std::filesystem::path file_of(const Origin& origin, const InlineOrFile& value) {
  if (!value.content.empty() || value.file.empty() || !origin.directory) return {};
  return resolved(origin, value.field, value.file);
}

void check_namespace(const ContextStanza& context) {
  if (!context.ns.empty() && !is_dns_label(context.ns))
    context.origin.fail("namespace", "is not a valid namespace name");
}

void apply_cluster(const ClusterStanza& cluster, ClientConfig& config, const NamedFiles* files) {
  const auto& origin = cluster.origin;
  if (cluster.server.empty()) origin.fail("server", "is missing");
  try {
    parse_server_url(cluster.server);
  } catch (const ConfigError& e) {
    origin.fail("server", e.what());
  }
  try {
    if (!cluster.proxy_url.empty()) parse_proxy_url(cluster.proxy_url);
  } catch (const ConfigError& e) {
    origin.fail("proxy-url", e.what());
  }
  config.proxy_url = cluster.proxy_url;
  config.server = cluster.server;
  config.tls_server_name = cluster.tls_server_name;
  if (!fits_into_a_header(config.tls_server_name)) origin.fail("tls-server-name", "is not a valid host name");
  config.ca_pem = pem_of(origin, cluster.authority, "CERTIFICATE", files);
  config.ca_file = file_of(origin, cluster.authority);
  config.insecure_skip_tls_verify = cluster.insecure_skip_tls_verify;
  if (config.insecure_skip_tls_verify && !config.ca_pem.empty())
    origin.fail("insecure-skip-tls-verify", "contradicts certificate-authority: either verify by it, or not at all");
}

void check_exec(const UserStanza& user) {
  const auto& origin = user.origin;
  const auto& plugin = *user.exec;
  if (!origin.directory) origin.fail("exec", "must not run a program in this configuration");
  if (plugin.command.empty()) origin.fail("exec.command", "is missing");
  if (plugin.api_version.empty()) origin.fail("exec.apiVersion", "is missing");
  const bool is_v1 = plugin.api_version == std::string{exec_api_group} + "v1";
  if (!is_v1 && plugin.api_version != std::string{exec_api_group} + "v1beta1")
    origin.fail("exec.apiVersion", "only v1 and v1beta1 of client.authentication.k8s.io are known");
  const auto& mode = user.interactive_mode;
  if (mode.empty() && is_v1)
    origin.fail("exec.interactiveMode", "is missing; with v1 it must be Never, IfAvailable or Always");
  if (!mode.empty() && mode != "Never" && mode != "IfAvailable" && mode != "Always")
    origin.fail("exec.interactiveMode", "must be Never, IfAvailable or Always");
  const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (has_nul(plugin.command)) origin.fail("exec.command", "is not a valid program name");
  if (std::any_of(plugin.arguments.begin(), plugin.arguments.end(), has_nul))
    origin.fail("exec.args", "an argument holds a zero byte");
  for (const auto& [name, value] : plugin.environment)
    if (has_nul(value)) origin.fail("exec.env", "a value holds a zero byte");
}

void apply_exec(const UserStanza& user, ClientConfig& config) {
  if (!user.exec) return;
  check_exec(user);
  config.exec = *user.exec;
  if (user.interactive_mode == "Always")
    config.exec->interaction = ExecPlugin::Interaction::always;
  else if (user.interactive_mode != "Never")
    config.exec->interaction = ExecPlugin::Interaction::if_available;
  // A bare name is looked for in PATH; anything else means a file beside the kubeconfig.
  auto& command = config.exec->command;
  if (command.find('/') != std::string::npos) command = resolved(user.origin, "exec.command", command).string();
}

void apply_token(const UserStanza& user, ClientConfig& config) {
  const auto& origin = user.origin;
  if (!fits_into_a_header(user.token)) origin.fail("token", "holds characters that no token has");
  config.token = user.token;
  if (user.token_file.empty()) return;
  config.token_file = resolved(origin, "tokenFile", user.token_file);
  // With an inline token beside it, the file may come later.
  if (user.token.empty()) read_reference(origin, "tokenFile", config.token_file);
}

void apply_user(const UserStanza& user, ClientConfig& config, const NamedFiles* files) {
  const auto& origin = user.origin;
  if (!user.impersonation.empty())
    origin.fail(user.impersonation, "impersonation is not supported: use credentials of that user");
  if (user.has_auth_provider) origin.fail("auth-provider", "no longer supported by Kubernetes: use an exec plugin");
  const bool has_basic = !user.username.empty() || !user.password.empty();
  if (has_basic && (!user.token.empty() || !user.token_file.empty()))
    origin.fail("token", "contradicts username and password: only one authentication method is allowed");
  if (!user.certificate.empty() && user.key.empty())
    origin.fail("client-key", "is missing: a client certificate needs its key");
  if (user.certificate.empty() && !user.key.empty())
    origin.fail("client-certificate", "is missing: a client key needs its certificate");
  config.client_certificate_pem = pem_of(origin, user.certificate, "CERTIFICATE", files);
  config.client_key_pem = pem_of(origin, user.key, "PRIVATE KEY", files);
  config.client_certificate_file = file_of(origin, user.certificate);
  config.client_key_file = file_of(origin, user.key);
  config.username = user.username;
  config.password = user.password;
  apply_token(user, config);
  apply_exec(user, config);
}

}  // namespace

ClientConfig resolve_context(const Kubeconfig& kubeconfig, const std::string& asked_for, const NamedFiles* files) {
  const Origin top{kubeconfig.source, {}, std::nullopt};
  const auto& name = asked_for.empty() ? kubeconfig.current_context : asked_for;
  if (name.empty())
    top.fail("current-context", "is not set, and no context was asked for" + choices(kubeconfig.contexts));
  const auto context = kubeconfig.contexts.find(name);
  if (context == kubeconfig.contexts.end())
    top.fail(asked_for.empty() ? "current-context" : "contexts",
             "there is no context '" + name + "'" + choices(kubeconfig.contexts));
  const auto& origin = context->second.origin;
  if (context->second.cluster.empty()) origin.fail("cluster", "is missing");
  if (context->second.user.empty()) origin.fail("user", "is missing");
  const auto cluster = kubeconfig.clusters.find(context->second.cluster);
  if (cluster == kubeconfig.clusters.end())
    origin.fail("cluster", "there is no cluster '" + context->second.cluster + "'" + choices(kubeconfig.clusters));
  const auto user = kubeconfig.users.find(context->second.user);
  if (user == kubeconfig.users.end())
    origin.fail("user", "there is no user '" + context->second.user + "'" + choices(kubeconfig.users));
  check_namespace(context->second);

  ClientConfig config;
  config.name = name;
  config.source = origin.file;
  config.cluster_name = cluster->first;
  if (!context->second.ns.empty()) config.ns = context->second.ns;
  apply_cluster(cluster->second, config, files);
  apply_user(user->second, config, files);
  return config;
}

}  // namespace hubferry::kube
