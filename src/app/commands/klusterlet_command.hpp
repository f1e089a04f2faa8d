#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/common_flags.hpp"
#include "app/service/service.hpp"
#include "hubferry/async/clock.hpp"
#include "hubferry/klusterlet/agent.hpp"
#include "hubferry/klusterlet/cluster_facts.hpp"
#include "hubferry/kube/leader_election.hpp"
#include "hubferry/obs/health.hpp"
#include "hubferry/obs/metrics.hpp"

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
  bool leader_elect = true;  // among the replicas that follow one Klusterlet
  std::string lease_name = "klusterlet-agent-lock";
  // Long ones, as Open Cluster Management has them: the API server of a single node may be away for a minute, and the
  // agent must live to report that. A replica that stops in order releases the Lease.
  async::Duration lease_duration = std::chrono::seconds{137};
  async::Duration renew_deadline = std::chrono::seconds{107};
  async::Duration retry_period = std::chrono::seconds{10};
  int most_custom_claims = 20;
  std::vector<std::string> reserved_claim_suffixes;
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
  [[nodiscard]] klusterlet::ClusterFactsOptions facts_options() const;
  /// The caller fills in the identity.
  [[nodiscard]] kube::LeaderElectionOptions election_options() const;
};

/// Metrics and health of the agent in `hubferry klusterlet`.
/// Lifetime: the constructor's arguments outlive it; its health checks may run after its end.
class AgentDisplay {
 public:
  AgentDisplay(obs::Metrics& metrics, obs::Health& health);

  /// The agent has read its settings and its identity, or stands by for the one that has, and is ready. Readiness does
  /// not depend on a reachable hub: a rollout must not stop because a hub is down.
  void started() { started_.pass(); }
  void show(const klusterlet::AgentView& view);

 private:
  obs::Family<obs::Gauge>& hubs_;
  obs::Gauge& expiry_;
  obs::Gauge& rotation_;
  obs::CheckState started_{"the agent has not started yet"};
  std::string hub_;
};

}  // namespace hubferry::app
