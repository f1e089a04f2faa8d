#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/log_flags.hpp"
#include "hubferry/obs/bind_address.hpp"

namespace hubferry::app {

/// What `hubferry sim` can be told.
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

  /// This object must outlive the command.
  void add_to(Command& command);
  /// What concerns several flags at once. Throws UsageError.
  void check() const;

  /// Are there simulated servers at all?
  [[nodiscard]] bool simulates() const { return attached.empty() || hubs_given; }
};

/// "hub1" of "/etc/hubs/hub1.kubeconfig". Throws std::invalid_argument for a file whose name makes no name.
std::string hub_name_of(const std::string& file);

}  // namespace hubferry::app
