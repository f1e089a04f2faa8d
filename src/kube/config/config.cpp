#include "hubferry/kube/config.hpp"

#include <cstdlib>
#include <system_error>

#include "hubferry/kube/read_file.hpp"
#include "hubferry/kube/server_url.hpp"
#include "kube/config/kubeconfig.hpp"

namespace hubferry::kube {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_unreadable(const fs::path& file, const std::system_error& error) {
  throw ConfigError(file.string() + ": cannot be read: " + error.code().message());
}

/// nullopt when the file does not exist.
std::optional<Kubeconfig> read_if_there(const fs::path& file) {
  try {
    const auto text = read_file(file);
    return read_kubeconfig(text, file.string(), fs::absolute(file).parent_path());
  } catch (const std::system_error& e) {
    if (e.code() == std::errc::no_such_file_or_directory) return std::nullopt;
    fail_unreadable(file, e);
  }
}

std::string read_or_fail(const fs::path& file) {
  try {
    return read_file(file);
  } catch (const std::system_error& e) {
    fail_unreadable(file, e);
  }
}

std::vector<fs::path> split_paths(const std::string& list) {
  std::vector<fs::path> files;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const auto end = std::min(list.find(':', begin), list.size());
    if (end > begin) files.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return files;
}

std::string variable(const ConfigLocations& locations, const std::string& name) {
  return locations.environment(name).value_or(std::string{});
}

bool looks_in_cluster(const ConfigLocations& locations) {
  std::error_code ignored;
  return !variable(locations, "KUBERNETES_SERVICE_HOST").empty() &&
         fs::exists(locations.service_account / "token", ignored);
}

}  // namespace

ConfigLocations::ConfigLocations()
    : environment([](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        if (value == nullptr) return std::nullopt;
        return value;
      }) {}

ClientConfig load_kubeconfig(const fs::path& file, const std::string& context) {
  return load_kubeconfigs({file}, context);
}

ClientConfig load_kubeconfigs(const std::vector<fs::path>& files, const std::string& context) {
  std::optional<Kubeconfig> merged;
  std::string names;
  for (const auto& file : files) {
    names += (names.empty() ? "" : ":") + file.string();
    auto next = read_if_there(file);
    if (next && merged) {
      merged->merge(std::move(*next));
    } else if (next) {
      merged = std::move(next);
    }
  }
  if (names.empty()) throw ConfigError("no kubeconfig file was named");
  if (!merged) throw ConfigError(names + ": " + (files.size() > 1 ? "none of these files exists" : "no such file"));
  return resolve_context(*merged, context);
}

ClientConfig parse_kubeconfig(std::string_view text, const std::string& source, const std::optional<fs::path>& base,
                              const std::string& context) {
  const auto directory = base ? std::optional{fs::absolute(*base)} : std::nullopt;
  return resolve_context(read_kubeconfig(text, source, directory), context);
}

ClientConfig parse_kubeconfig_of_secret(std::string_view text, const std::string& source,
                                        const std::map<std::string, std::string>& files) {
  return resolve_context(read_kubeconfig(text, source, std::nullopt), {}, &files);
}

ClientConfig in_cluster_config(const ConfigLocations& locations) {
  const auto host = variable(locations, "KUBERNETES_SERVICE_HOST");
  const auto port = variable(locations, "KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty())
    throw ConfigError(
        "in-cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this process does not run in a "
        "pod");
  const auto& directory = locations.service_account;
  ClientConfig config;
  config.name = "in-cluster";
  config.cluster_name = "in-cluster";
  config.source = directory.string();
  const bool is_ipv6 = host.find(':') != std::string::npos;
  config.server = "https://" + (is_ipv6 ? "[" + host + "]" : host) + ":" + port;
  try {
    parse_server_url(config.server);
  } catch (const ConfigError& e) {
    throw ConfigError(std::string{"in-cluster: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT: "} + e.what());
  }
  config.token_file = directory / "token";
  if (trimmed(read_or_fail(config.token_file)).empty()) throw ConfigError(config.token_file.string() + ": is empty");
  const auto authority_file = directory / "ca.crt";
  config.ca_pem = read_or_fail(authority_file);
  config.ca_file = authority_file;
  if (config.ca_pem.find("-----BEGIN CERTIFICATE-----") == std::string::npos)
    throw ConfigError(authority_file.string() + ": holds no PEM block of a CERTIFICATE");
  const auto namespace_file = directory / "namespace";
  std::error_code ignored;
  if (fs::exists(namespace_file, ignored))
    if (auto ns = trimmed(read_or_fail(namespace_file)); !ns.empty()) config.ns = std::move(ns);
  return config;
}

bool reread_files(ClientConfig& config) {
  bool changed = false;
  const auto reread = [&](const fs::path& file, std::string& pem) {
    // Without content the file is not in use, even if its name is set.
    if (file.empty() || pem.empty()) return;
    std::string now;
    try {
      now = read_file(file);
    } catch (const std::system_error&) {
      return;
    }
    if (now == pem || now.find("-----BEGIN ") == std::string::npos) return;
    pem = std::move(now);
    changed = true;
  };
  reread(config.ca_file, config.ca_pem);
  reread(config.client_certificate_file, config.client_certificate_pem);
  reread(config.client_key_file, config.client_key_pem);
  return changed;
}

ClientConfig find_config(const std::string& kubeconfig_flag, const std::string& context,
                         const ConfigLocations& locations) {
  if (!kubeconfig_flag.empty()) return load_kubeconfig(kubeconfig_flag, context);
  if (const auto files = split_paths(variable(locations, "KUBECONFIG")); !files.empty())
    return load_kubeconfigs(files, context);
  if (looks_in_cluster(locations)) return in_cluster_config(locations);
  const auto home = variable(locations, "HOME");
  const auto file = fs::path{home} / ".kube" / "config";
  std::error_code ignored;
  if (home.empty() || !fs::exists(file, ignored))
    throw ConfigError(
        "no kubeconfig: neither --kubeconfig nor KUBECONFIG is set, this process does not run in a pod with a service "
        "account, and " +
        (home.empty() ? "HOME is not set" : file.string() + " does not exist"));
  return load_kubeconfig(file, context);
}

}  // namespace hubferry::kube
