#include "hubferry/kube/server_url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "hubferry/kube/config.hpp"

namespace hubferry::kube {

namespace {

constexpr std::string_view letters_and_digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool consists_of(std::string_view text, std::string_view extra) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return letters_and_digits.find(c) != std::string_view::npos || extra.find(c) != std::string_view::npos;
  });
}

std::string_view default_port(bool tls) {
  return tls ? "443" : "80";
}

/// The address between the brackets of a URL. A zone ("fe80::1%25eth0") says by which interface to go there; its
/// percent sign is encoded in a URL (RFC 6874), though people forget that.
std::string checked_ipv6(std::string_view text) {
  const auto percent = std::min(text.find('%'), text.size());
  const std::string address{text.substr(0, percent)};
  auto zone = text.substr(percent);
  in6_addr parsed{};
  // inet_pton would stop at a NUL and take what is before it.
  if (!consists_of(address, ":.") || ::inet_pton(AF_INET6, address.c_str(), &parsed) != 1)
    throw ConfigError("the address in brackets is not an IPv6 address");
  if (zone.empty()) return address;
  zone.remove_prefix(zone.starts_with("%25") ? 3 : 1);
  if (zone.empty() || !consists_of(zone, "._-"))
    throw ConfigError("the zone of the IPv6 address is not an interface name");
  return address + "%" + std::string{zone};
}

void check_name(std::string_view host) {
  if (host.empty()) throw ConfigError("the URL names no host");
  // Underscores are no part of a DNS name, but resolvers and people know them.
  if (host.size() > 253 || !consists_of(host, ".-_")) throw ConfigError("the host in the URL is not a valid name");
}

std::string checked_port(std::string_view port, bool tls) {
  if (port.empty()) return std::string{default_port(tls)};
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535)
    throw ConfigError("the port in the URL is not a number from 1 to 65535");
  return std::to_string(number);
}

std::string checked_prefix(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!consists_of(path, "/-._~%!$&'()*+,;=:@"))
    throw ConfigError("the path in the URL holds characters that must be percent-encoded");
  return std::string{path};
}

}  // namespace

std::string ServerUrl::host_without_zone() const {
  return host.substr(0, host.find('%'));
}

std::string ServerUrl::with_port(const std::string& written_host) const {
  std::string text = written_host.find(':') == std::string::npos ? written_host : "[" + written_host + "]";
  if (port != default_port(tls)) text += ":" + port;
  return text;
}

std::string ServerUrl::authority() const {
  return with_port(host_without_zone());
}

std::string ServerUrl::text() const {
  const auto percent = host.find('%');
  const auto encoded = percent == std::string::npos ? host : host_without_zone() + "%25" + host.substr(percent + 1);
  return (tls ? "https://" : "http://") + with_port(encoded) + prefix;
}

ServerUrl parse_server_url(std::string_view text) {
  ServerUrl url;
  if (text.starts_with("https://")) {
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    url.tls = false;
    text.remove_prefix(7);
  } else {
    throw ConfigError("a server URL begins with https:// or http://");
  }
  if (text.find_first_of("?#") != std::string_view::npos)
    throw ConfigError("a server URL has neither a query nor a fragment");

  const auto slash = std::min(text.find('/'), text.size());
  auto authority = text.substr(0, slash);
  if (authority.find('@') != std::string_view::npos)
    throw ConfigError("a server URL holds no user name or password: these belong under users");
  if (authority.starts_with('[')) {
    const auto bracket = authority.find(']');
    if (bracket == std::string_view::npos) throw ConfigError("the IPv6 address in the URL lacks its closing bracket");
    url.host = checked_ipv6(authority.substr(1, bracket - 1));
    authority.remove_prefix(bracket + 1);
    if (!authority.empty() && !authority.starts_with(':'))
      throw ConfigError("after an IPv6 address comes a port or a path");
  } else {
    const auto colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    authority.remove_prefix(colon);
    if (std::count(authority.begin(), authority.end(), ':') > 1)
      throw ConfigError("an IPv6 address in a URL stands in brackets, as in https://[::1]:6443");
    check_name(url.host);
  }
  if (authority == ":") throw ConfigError("the URL has a colon but no port");
  url.port = checked_port(authority.substr(authority.empty() ? 0 : 1), url.tls);
  url.prefix = checked_prefix(text.substr(slash));
  return url;
}

}  // namespace hubferry::kube
