#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/kube/object.hpp"

namespace hubferry::sim {

/// A parsed request target.
struct Route {
  std::string path;  // decoded, without the query
  std::map<std::string, std::string, std::less<>> query;

  /// True if the path is that of a resource.
  bool is_resource = false;
  std::string group;
  std::string version;
  std::string plural;
  kube::Key key;
  std::string subresource;

  [[nodiscard]] const std::string& parameter(std::string_view name) const;
  /// "true" or "1".
  [[nodiscard]] bool flag(std::string_view name) const;
};

/// Nothing if the target is invalid.
std::optional<Route> parse_target(std::string_view target);

}  // namespace hubferry::sim
