#pragma once

#include <string>
#include <string_view>

namespace hubferry::kube {

/// Where an API server listens, taken apart: what a connection and its requests need.
struct ServerUrl {
  bool tls = true;
  std::string host;    // a name or an address; IPv6 without brackets, with its zone ("fe80::1%eth0") if there is one
  std::string port;    // always set: 443 or 80 where the URL has none
  std::string prefix;  // what stands before /api and /apis: empty, or "/k8s/clusters/c-1", without a slash at its end

  bool operator==(const ServerUrl&) const = default;

  /// What a certificate can be for: a zone is local to this machine.
  [[nodiscard]] std::string host_without_zone() const;
  /// What belongs into a Host header: brackets around IPv6, no zone, and the port unless it is the scheme's own.
  [[nodiscard]] std::string authority() const;
  /// The URL again, in one spelling per server.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::string with_port(const std::string& written_host) const;
};

/// Reads http(s)://host[:port][/prefix]. Throws ConfigError with a reason that does not repeat the URL, since people
/// put passwords into URLs: the caller says where it stands.
ServerUrl parse_server_url(std::string_view text);

}  // namespace hubferry::kube
