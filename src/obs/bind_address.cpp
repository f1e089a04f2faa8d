#include "hubferry/obs/bind_address.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace hubferry::obs {

namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

bool is_host(std::string_view text, std::string_view allowed_besides_alphanumeric) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           allowed_besides_alphanumeric.find(c) != std::string_view::npos;
  });
}

}  // namespace

std::optional<BindAddress> parse_bind_address(std::string_view text) {
  if (text.empty() || text == "0") return std::nullopt;
  const auto fail = [&](const std::string& why) {
    return std::invalid_argument("'" + std::string(text) + "' is not a bind address: " + why +
                                 "; use :8080, 127.0.0.1:8080 or [::1]:8080");
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) throw fail("it has no port");
  const auto port = parse_port(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) {
    // A percent sign goes before the zone of a link-local address.
    if (!host.ends_with(']') || host.size() < 4 || !is_host(host.substr(1, host.size() - 2), ":.%"))
      throw fail("the part in brackets is not an IPv6 address");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    throw fail("an IPv6 address needs brackets");
  } else if (!is_host(host, ".-")) {
    throw fail("the host has characters that no host name has");
  }
  if (!port) throw fail("the port must be a number from 0 to 65535");
  return BindAddress{.host = std::string(host), .port = *port};
}

}  // namespace hubferry::obs
