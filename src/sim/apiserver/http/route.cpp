#include "sim/apiserver/http/route.hpp"

#include <vector>

namespace hubferry::sim {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return decoded;
}

void find_resource(Route& route, const std::vector<std::string>& segments) {
  std::size_t at = 0;
  if (segments.size() >= 3 && segments[0] == "api") {
    route.version = segments[1];
    at = 2;
  } else if (segments.size() >= 4 && segments[0] == "apis") {
    route.group = segments[1];
    route.version = segments[2];
    at = 3;
  } else {
    return;
  }
  route.is_resource = true;
  const auto left = [&] { return segments.size() - at; };
  // "namespaces/n/x" is the kind x in n, except for the namespace's own subresources.
  const bool own_subresource = left() == 3 && (segments[at + 2] == "status" || segments[at + 2] == "finalize");
  if (segments[at] == "namespaces" && left() >= 3 && !own_subresource) {
    route.key.ns = segments[at + 1];
    at += 2;
  }
  route.plural = segments[at++];
  if (left() > 0) route.key.name = segments[at++];
  if (left() > 0) route.subresource = segments[at++];
  if (left() > 0) route.is_resource = false;
}

}  // namespace

const std::string& Route::parameter(std::string_view name) const {
  static const std::string none;
  const auto found = query.find(name);
  return found == query.end() ? none : found->second;
}

bool Route::flag(std::string_view name) const {
  const auto& value = parameter(name);
  return value == "true" || value == "1";
}

std::optional<Route> parse_target(std::string_view target) {
  Route route;
  const auto mark = target.find('?');
  std::string_view path = target.substr(0, mark);
  std::vector<std::string> segments;
  std::string_view rest = path;
  while (!rest.empty()) {
    const auto slash = rest.find('/');
    if (const auto segment = rest.substr(0, slash); !segment.empty()) {
      auto decoded = decode(segment, false);
      if (!decoded) return std::nullopt;
      segments.push_back(std::move(*decoded));
    }
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  for (const auto& segment : segments) route.path += "/" + segment;
  if (mark != std::string_view::npos) {
    std::string_view query = target.substr(mark + 1);
    while (!query.empty()) {
      const auto end = query.find('&');
      const auto pair = query.substr(0, end);
      const auto equal = pair.find('=');
      auto name = decode(pair.substr(0, equal), true);
      auto value = equal == std::string_view::npos ? std::string{} : decode(pair.substr(equal + 1), true);
      if (!name || !value) return std::nullopt;
      route.query[*name] = *value;
      if (end == std::string_view::npos) break;
      query.remove_prefix(end + 1);
    }
  }
  find_resource(route, segments);
  return route;
}

}  // namespace hubferry::sim
