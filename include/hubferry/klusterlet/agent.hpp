#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/klusterlet/local_store.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/phase/state.hpp"

namespace hubferry::phase {
struct Transition;
}

namespace hubferry::klusterlet {

class ClusterFactsWatch;

/// Health of the agent's own cluster.
struct SpokeHealth {
  bool healthy = true;
  std::string message;             // why it is not healthy
  std::string kubernetes_version;  // empty: unknown
};
using SpokeProbe = std::function<Awaitable<SpokeHealth>()>;

/// Probes the cluster's own API server: /livez, or /healthz if that is not served or not allowed.
SpokeProbe probe_of(std::shared_ptr<kube::Api> own_cluster);

/// A snapshot of an agent's state, for observers.
struct AgentView {
  phase::Phase phase;
  std::string hub;        // server of the selected hub; empty: none yet
  std::string bootstrap;  // name of its bootstrap kubeconfig
  std::optional<WallTime> certificate_expires;
  std::optional<WallTime> certificate_rotates;  // when its renewal begins, at the earliest
  bool available = false;                       // reported to this hub since we joined it
  std::string problem;             // why no hub could be selected, or why it does not register us; empty: none
  std::string connection_problem;  // why the connection to the hub fails; empty: it does not
  std::string store_problem;       // why the credential could not be saved; empty: it is
};

struct AgentOptions {
  std::string cluster_name;
  std::string agent_name;
  /// How long a hub may be unreachable, or may leave our registration unanswered. The store's setting takes
  /// precedence.
  Duration connection_timeout = std::chrono::minutes{10};
  /// Requested lifetime of client certificates; zero: the hub decides.
  std::chrono::seconds certificate_lifetime{0};
  Duration healthcheck_period = std::chrono::minutes{1};
  /// How others reach our own cluster: https URLs for the ManagedCluster, and the CA to trust there.
  std::vector<std::string> external_server_urls;
  std::string external_ca_pem;
  /// Only those of agent.open-cluster-management.io are copied to the ManagedCluster.
  std::map<std::string, std::string> cluster_annotations;
  /// Leave a hub that denies us or cannot be reached. If false, only the first bootstrap kubeconfig is ever used.
  bool multiple_hubs = true;
  /// As the registration agent of Open Cluster Management does: once it registers with a hub, neither a refusal nor a
  /// timeout nor a changed list makes it select another one, only a restart. For simulated fleets.
  bool registers_until_restarted = false;
  /// How long it takes to apply the klusterlet's ManifestWork. As the work agent of Open Cluster Management, it then
  /// reports the version that it began with, and the hub refuses the report of one that has been replaced. For
  /// simulated fleets. Zero: the current version is reported at once.
  Duration work_apply_time{0};
  bool record_events = true;
  /// Also connect to hubs without TLS: for simulated hubs only, since the credential is sent in clear text.
  bool allow_plain_http = false;
  /// Lifetime: outlives the agent. Null: fresh_keys(). For simulated fleets.
  KeySource* keys = nullptr;
  /// Absent: as `has_api_server` says.
  SpokeProbe probe;
  /// Without a probe: true reports the cluster as available, for simulated clusters. False leaves Available unset:
  /// there is no API server of which that could be said.
  bool has_api_server = true;
  /// Claims and resources of the own cluster, to be reported to the hub; it outlives the agent. Null: none are.
  ClusterFactsWatch* facts = nullptr;
  /// Called on the agent's loop after each change of what view() shows. Must not throw.
  std::function<void(const AgentView&)> on_change;
  /// Called on the agent's loop after each transition of its phase machine. Must not throw.
  std::function<void(const phase::Transition&)> on_transition;

  /// What is wrong with these options, one message each.
  [[nodiscard]] std::vector<std::string> problems() const;
};

/// Why this number of bootstrap kubeconfigs is too small; nullopt if it is not. The feature gate MultipleHubs needs at
/// least two, otherwise one suffices.
std::optional<std::string> bootstrap_problem(std::size_t count, bool multiple_hubs);

/// A client for the server of this configuration. May throw kube::ConfigError.
using Connect = std::function<std::shared_ptr<kube::Api>(const kube::ClientConfig&)>;

class AgentCore;

/// The agent of one managed cluster: selects a hub, registers, sends heartbeats, and switches to the next hub when the
/// current one denies it or cannot be reached. It switches without a restart: every client, watch and timer is created
/// anew.
///
/// It is a phase machine: Selecting, Bootstrapping, Joined, Leaving, then Selecting again. All agents of a process
/// share the definition and the metrics; a waiting agent costs under 64 KiB and no thread. After a restart it begins
/// with Selecting: the store's secret holds everything that must survive.
///
/// Lifetime: store, and what `env` refers to, outlive it; it outlives run().
/// Executor: the loop of run(). Cancellation: terminal; the hub is not notified.
/// Errors: the constructor throws std::invalid_argument with the options' problems(); run() throws only for bugs.
class Agent {
 public:
  Agent(AgentOptions options, LocalStore& store, Connect connect, kube::Env env);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  Awaitable<> run();

  [[nodiscard]] AgentView view() const;
  /// The state of its phase machine, for display.
  [[nodiscard]] phase::States states() const;

 private:
  std::unique_ptr<AgentCore> core_;
};

/// The phases as a Mermaid diagram.
std::string agent_diagram();

}  // namespace hubferry::klusterlet
