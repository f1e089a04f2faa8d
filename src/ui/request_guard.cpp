#include "ui/request_guard.hpp"

#include <algorithm>
#include <cctype>

namespace hubferry::ui {

namespace {

/// "[::1]:80" -> "::1", "localhost:80" -> "localhost".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  return host.substr(0, host.find(':'));
}

bool is_loopback(std::string_view host) {
  std::string lower{host};
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool digits_and_dots = lower.find_first_not_of("0123456789.") == std::string::npos;
  // "127.0.0.1.example.com" is a name like any other.
  return lower == "localhost" || lower == "::1" || (lower.starts_with("127.") && digits_and_dots);
}

}  // namespace

bool is_expected_host(std::string_view listens_on, std::string_view host_header) {
  return !is_loopback(listens_on) || is_loopback(without_port(host_header));
}

const std::vector<std::pair<std::string, std::string>>& security_headers() {
  static const std::vector<std::pair<std::string, std::string>> headers{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
  };
  return headers;
}

}  // namespace hubferry::ui
