#include <yaml-cpp/yaml.h>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::kube {

namespace {

/// In quotes, always: a token may look like a number, and a name like a Boolean.
void put(YAML::Emitter& out, const char* field, const std::string& value) {
  if (!value.empty()) out << YAML::Key << field << YAML::Value << YAML::DoubleQuoted << value;
}

void put_bytes(YAML::Emitter& out, const char* field, const std::string& bytes) {
  put(out, field, encode_base64(bytes));
}

void put_flag(YAML::Emitter& out, const char* field, bool value) {
  if (value) out << YAML::Key << field << YAML::Value << true;
}

void put_cluster(YAML::Emitter& out, const ClientConfig& config) {
  out << YAML::BeginMap;
  put(out, "server", config.server);
  put(out, "tls-server-name", config.tls_server_name);
  put_bytes(out, "certificate-authority-data", config.ca_pem);
  put_flag(out, "insecure-skip-tls-verify", config.insecure_skip_tls_verify);
  put(out, "proxy-url", config.proxy_url);
  out << YAML::EndMap;
}

void put_exec(YAML::Emitter& out, const ExecPlugin& plugin) {
  out << YAML::Key << "exec" << YAML::Value << YAML::BeginMap;
  put(out, "apiVersion", plugin.api_version);
  put(out, "command", plugin.command);
  if (!plugin.arguments.empty()) {
    out << YAML::Key << "args" << YAML::Value << YAML::BeginSeq;
    for (const auto& argument : plugin.arguments) out << YAML::DoubleQuoted << argument;
    out << YAML::EndSeq;
  }
  if (!plugin.environment.empty()) {
    out << YAML::Key << "env" << YAML::Value << YAML::BeginSeq;
    for (const auto& [name, value] : plugin.environment) {
      out << YAML::BeginMap;
      put(out, "name", name);
      put(out, "value", value);
      out << YAML::EndMap;
    }
    out << YAML::EndSeq;
  }
  put(out, "installHint", plugin.install_hint);
  put_flag(out, "provideClusterInfo", plugin.provide_cluster_info);
  switch (plugin.interaction) {
    case ExecPlugin::Interaction::never:
      put(out, "interactiveMode", "Never");
      break;
    case ExecPlugin::Interaction::if_available:
      put(out, "interactiveMode", "IfAvailable");
      break;
    case ExecPlugin::Interaction::always:
      put(out, "interactiveMode", "Always");
      break;
  }
  out << YAML::EndMap;
}

void put_user(YAML::Emitter& out, const ClientConfig& config) {
  out << YAML::BeginMap;
  put_bytes(out, "client-certificate-data", config.client_certificate_pem);
  put_bytes(out, "client-key-data", config.client_key_pem);
  put(out, "token", config.token);
  put(out, "tokenFile", config.token_file.string());
  put(out, "username", config.username);
  put(out, "password", config.password);
  if (config.exec) put_exec(out, *config.exec);
  out << YAML::EndMap;
}

template <typename PutContent>
void put_entry(YAML::Emitter& out, const char* list, const char* kind, const std::string& name,
               PutContent put_content) {
  out << YAML::Key << list << YAML::Value << YAML::BeginSeq << YAML::BeginMap;
  put(out, "name", name);
  out << YAML::Key << kind << YAML::Value;
  put_content();
  out << YAML::EndMap << YAML::EndSeq;
}

}  // namespace

std::string to_kubeconfig(const ClientConfig& config) {
  const std::string name = config.name.empty() ? "default" : config.name;
  const std::string cluster = config.cluster_name.empty() ? name : config.cluster_name;
  YAML::Emitter out;
  out << YAML::BeginMap;
  out << YAML::Key << "apiVersion" << YAML::Value << "v1" << YAML::Key << "kind" << YAML::Value << "Config";
  put_entry(out, "clusters", "cluster", cluster, [&] { put_cluster(out, config); });
  put_entry(out, "users", "user", name, [&] { put_user(out, config); });
  put_entry(out, "contexts", "context", name, [&] {
    out << YAML::BeginMap;
    put(out, "cluster", cluster);
    put(out, "user", name);
    put(out, "namespace", config.ns);
    out << YAML::EndMap;
  });
  put(out, "current-context", name);
  out << YAML::EndMap;
  return std::string{out.c_str()} + "\n";
}

}  // namespace hubferry::kube
