#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/kube/config.hpp"
#include "hubferry/kube/server_url.hpp"

namespace hubferry::kube {

/// A proxy that connects us to a server by CONNECT.
struct Proxy {
  std::string host;
  std::string port;
  std::string authorization;  // of the header Proxy-Authorization; a secret, empty without one

  bool operator==(const Proxy&) const = default;

  /// host:port, without the credential.
  [[nodiscard]] std::string display() const;
};

/// Reads http://[user:password@]host[:port]. Throws ConfigError with a reason that does not repeat the URL.
Proxy parse_proxy_url(std::string_view text);

/// True if NO_PROXY excludes the server. A list of names (with their subdomains; with a leading dot only those),
/// addresses and CIDR ranges, each of the first two with an optional port; "*" excludes all. As in Go.
bool is_excluded_from_proxy(std::string_view no_proxy, const ServerUrl& server);

using EnvironmentVariable = std::function<std::optional<std::string>(const std::string& name)>;

struct ProxyChoice {
  std::optional<Proxy> proxy;
  std::string ignored;  // the variable whose proxy we cannot use: https:// and socks5://
};

/// The proxy for a server, by the rules of client-go: the kubeconfig's own is always used; else that of HTTPS_PROXY
/// (for http servers HTTP_PROXY), in capitals or small letters, unless the server is this machine or excluded by
/// NO_PROXY. Throws ConfigError, which names the variable. A variable may be meant for other programs: a kind of proxy
/// that we do not support is ignored there, and an error in a kubeconfig.
ProxyChoice proxy_for(const ClientConfig& config, const ServerUrl& server, const EnvironmentVariable& environment);

}  // namespace hubferry::kube
