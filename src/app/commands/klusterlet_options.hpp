#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "app/cli/log_flags.hpp"
#include "app/service/observability.hpp"
#include "hubferry/klusterlet/agent.hpp"

namespace hubferry::app {

/// What `hubferry klusterlet` can be told.
struct KlusterletOptions {
  std::string cluster_name;  // empty: what the store remembers, else a UUID
  std::string agent_id;      // empty: what the store remembers, else five random characters
  std::vector<std::filesystem::path> bootstrap_kubeconfigs;
  std::string hub_kubeconfig_dir;
  std::string kubeconfig;  // of the own cluster
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

  /// This object must outlive the command.
  void add_to(Command& command);
  /// What concerns several flags at once. Throws UsageError.
  void check() const;

  /// From files, or from a Klusterlet resource on the own cluster?
  [[nodiscard]] bool from_files() const { return !bootstrap_kubeconfigs.empty() || !hub_kubeconfig_dir.empty(); }
  /// With the names filled in by the caller.
  [[nodiscard]] klusterlet::AgentOptions agent_options() const;
};

}  // namespace hubferry::app
