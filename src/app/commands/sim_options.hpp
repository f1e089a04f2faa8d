#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/common_flags.hpp"
#include "hubferry/obs/bind_address.hpp"

namespace hubferry::app {

/// Options of `hubferry sim`.
struct SimOptions {
  std::vector<std::string> hubs{"hub1", "hub2"};
  bool hubs_given = false;
  int clusters = 0;
  bool agents = true;
  bool managed_service_accounts = true;
  std::string kubeconfig_dir;
  obs::BindAddress listen{.host = "127.0.0.1", .port = 0};
  bool insecure_http = false;
  std::uint64_t seed = 1;
  std::string faults;                 // a file
  std::vector<std::string> attached;  // kubeconfig files
  std::string output = "text";
  LogFlags log;

  /// Lifetime: this object outlives the command.
  void add_to(Command& command);
  /// Validates combinations of flags. Throws UsageError.
  void check() const;

  /// True if there are simulated servers, not only attached ones.
  [[nodiscard]] bool simulates() const { return attached.empty() || hubs_given; }
};

/// "hub1" for "/etc/hubs/hub1.kubeconfig". Throws std::invalid_argument if that is not a valid name.
std::string hub_name_of(const std::string& file);

}  // namespace hubferry::app
