#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "app/cli/common_flags.hpp"
#include "app/service/service.hpp"
#include "hubferry/klusterlet/agent.hpp"

namespace hubferry::app {

/// Options of `hubferry klusterlet`.
struct KlusterletOptions {
  std::string cluster_name;  // empty: that of the stored identity, or a UUID
  std::string agent_id;      // empty: that of the stored identity, or five random characters
  std::vector<std::filesystem::path> bootstrap_kubeconfigs;
  std::string hub_kubeconfig_dir;
  std::string kubeconfig;  // of the managed cluster itself
  std::string klusterlet_name = "klusterlet";
  std::string own_namespace = "open-cluster-management-agent";
  async::Duration hub_connection_timeout = std::chrono::minutes{10};
  async::Duration healthcheck_period = std::chrono::minutes{1};
  std::chrono::seconds certificate_lifetime{0};
  std::vector<std::string> external_server_urls;
  std::map<std::string, std::string> cluster_annotations;
  bool multiple_hubs = true;
  async::Duration shutdown_grace_period = std::chrono::seconds(10);
  LogFlags log;
  ServingFlags serving;

  /// Lifetime: this object outlives the command.
  void add_to(Command& command);
  /// Validates combinations of flags. Throws UsageError.
  void check() const;

  /// True if hubs and credentials are in files, false if they are read from a Klusterlet on this cluster.
  [[nodiscard]] bool from_files() const { return !bootstrap_kubeconfigs.empty() || !hub_kubeconfig_dir.empty(); }
  /// The caller fills in empty names.
  [[nodiscard]] klusterlet::AgentOptions agent_options() const;
};

}  // namespace hubferry::app
