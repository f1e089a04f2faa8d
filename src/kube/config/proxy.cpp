#include "kube/config/proxy.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <vector>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/read_file.hpp"

namespace hubferry::kube {

namespace {

namespace ip = boost::asio::ip;
using boost::system::error_code;

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = high ? hex_digit(text[i + 2]) : std::nullopt;
    if (!low) throw ConfigError("a percent sign in the user name or password is not followed by two hex digits");
    decoded += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return decoded;
}

std::string lowered(std::string_view text) {
  std::string small{text};
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

std::vector<std::string> split_list_of(std::string_view text) {
  std::vector<std::string> entries;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (auto entry = trimmed(std::string{text.substr(0, comma)}); !entry.empty()) entries.push_back(lowered(entry));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return entries;
}

bool contains(const std::string& range, const ip::address& address) {
  error_code error;
  if (address.is_v4()) {
    const auto network = ip::make_network_v4(range, error);
    return !error && ip::make_network_v4(address.to_v4(), network.prefix_length()).network() == network.network();
  }
  const auto network = ip::make_network_v6(range, error);
  return !error && ip::make_network_v6(address.to_v6(), network.prefix_length()).network() == network.network();
}

/// Takes the port off the end of "host:port" or "[address]:port".
std::string take_port(std::string& entry) {
  const auto colon = entry.rfind(':');
  const bool bracketed = entry.starts_with('[');
  if (bracketed) {
    const auto bracket = entry.find(']');
    if (bracket == std::string::npos) return {};
    const std::string port = bracket + 1 < entry.size() ? entry.substr(bracket + 2) : "";
    entry = entry.substr(1, bracket - 1);
    return port;
  }
  // Two colons: an IPv6 address without brackets.
  if (colon == std::string::npos || entry.find(':') != colon) return {};
  std::string port = entry.substr(colon + 1);
  entry.resize(colon);
  return port;
}

bool is_excluded_by(std::string entry, const std::string& host, const std::string& port,
                    const std::optional<ip::address>& address) {
  if (entry == "*") return true;
  if (entry.find('/') != std::string::npos) return address && contains(entry, *address);
  if (const auto only = take_port(entry); !only.empty() && only != port) return false;
  error_code not_numeric;
  if (const auto listed = ip::make_address(entry, not_numeric); !not_numeric) return address && listed == *address;
  if (entry.starts_with("*.")) entry.erase(0, 1);
  if (entry.starts_with('.')) return host.ends_with(entry);
  return host == entry || host.ends_with("." + entry);
}

std::optional<ip::address> numeric(const ServerUrl& server) {
  error_code not_numeric;
  const auto address = ip::make_address(server.host_without_zone(), not_numeric);
  return not_numeric ? std::nullopt : std::optional{address};
}

bool is_this_machine(const ServerUrl& server) {
  const auto address = numeric(server);
  return address ? address->is_loopback() : lowered(server.host) == "localhost";
}

/// The first of both spellings that is set.
std::pair<std::string, std::string> variable_of(const EnvironmentVariable& environment, const std::string& name) {
  for (const auto& spelling : {name, lowered(name)})
    if (auto value = environment(spelling); value && !value->empty()) return {spelling, *value};
  return {};
}

}  // namespace

std::string Proxy::display() const {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
}

Proxy parse_proxy_url(std::string_view text) {
  constexpr std::string_view scheme = "http://";
  if (!text.starts_with(scheme)) throw ConfigError("a proxy's URL begins with http://: others are not supported");
  text.remove_prefix(scheme.size());
  const auto end_of_authority = std::min(text.find_first_of("/?#"), text.size());
  const auto at = text.substr(0, end_of_authority).rfind('@');
  Proxy proxy;
  if (at != std::string_view::npos) {
    const auto user = text.substr(0, at);
    const auto colon = std::min(user.find(':'), user.size());
    const auto password = colon < user.size() ? user.substr(colon + 1) : std::string_view{};
    proxy.authorization =
        "Basic " + encode_base64(percent_decoded(user.substr(0, colon)) + ":" + percent_decoded(password));
    text.remove_prefix(at + 1);
  }
  const auto url = parse_server_url(std::string{scheme}.append(text));
  proxy.host = url.host;
  proxy.port = url.port;
  return proxy;
}

bool is_excluded_from_proxy(std::string_view no_proxy, const ServerUrl& server) {
  const auto host = lowered(server.host_without_zone());
  const auto address = numeric(server);
  return std::ranges::any_of(split_list_of(no_proxy), [&](const std::string& entry) {
    return is_excluded_by(entry, host, server.port, address);
  });
}

ProxyChoice proxy_for(const ClientConfig& config, const ServerUrl& server, const EnvironmentVariable& environment) {
  if (!config.proxy_url.empty()) {
    try {
      return {parse_proxy_url(config.proxy_url), {}};
    } catch (const ConfigError& error) {
      throw ConfigError((config.source.empty() ? "" : config.source + ": ") + std::string{"proxy-url: "} +
                        error.what());
    }
  }
  auto [variable, url] = variable_of(environment, server.tls ? "HTTPS_PROXY" : "HTTP_PROXY");
  if (url.empty() || is_this_machine(server)) return {};
  if (is_excluded_from_proxy(variable_of(environment, "NO_PROXY").second, server)) return {};
  // "proxy:3128" is common.
  if (url.find("://") == std::string::npos) url.insert(0, "http://");
  for (const auto* unsupported : {"https://", "socks5://", "socks5h://"})
    if (lowered(url).starts_with(unsupported)) return {std::nullopt, variable};
  try {
    return {parse_proxy_url(url), {}};
  } catch (const ConfigError& error) {
    throw ConfigError(variable + ": " + error.what());
  }
}

}  // namespace hubferry::kube
