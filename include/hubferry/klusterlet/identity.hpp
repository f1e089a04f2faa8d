#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hubferry::klusterlet {

/// Who an agent is, on every hub: it keeps both names when it switches.
struct Identity {
  std::string cluster;
  std::string agent;

  bool operator==(const Identity&) const = default;

  /// "system:open-cluster-management:<cluster>:<agent>", the subject's CN and the user's name on a hub.
  [[nodiscard]] std::string common_name() const;
  /// The subject's O, and the user's groups on a hub.
  [[nodiscard]] std::vector<std::string> organizations() const;
};

/// Is this a name that Kubernetes takes for a namespace? A cluster's name must be one.
bool is_namespace_name(std::string_view text);

}  // namespace hubferry::klusterlet
