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

namespace hubferry::klusterlet {

/// How our own cluster does.
struct SpokeHealth {
  bool healthy = true;
  std::string message;             // why not
  std::string kubernetes_version;  // empty: unknown
};
using SpokeProbe = std::function<Awaitable<SpokeHealth>()>;

/// Asks the cluster's own API server: /livez, or /healthz where that is not served or not allowed.
SpokeProbe probe_of(std::shared_ptr<kube::Api> own_cluster);

/// What an observer may see of an agent, at any time.
struct AgentView {
  phase::Phase phase;
  std::string hub;        // the server that was chosen; empty: none yet
  std::string bootstrap;  // the name of the bootstrap kubeconfig that was chosen
  std::optional<WallTime> certificate_expires;
  bool available = false;  // the hub has been told so, since we are there
  std::string problem;     // why no hub could be chosen; empty: one was
};

struct AgentOptions {
  std::string cluster_name;
  std::string agent_name;
  /// How long a hub may be out of reach, or may leave our registration unanswered. The store's own wish takes
  /// precedence.
  Duration connection_timeout = std::chrono::minutes{10};
  /// What we ask for; zero: the hub decides.
  std::chrono::seconds certificate_lifetime{0};
  Duration healthcheck_period = std::chrono::minutes{1};
  /// Where others reach our own cluster: https URLs for the ManagedCluster, and the authority to trust there.
  std::vector<std::string> external_server_urls;
  std::string external_ca_pem;
  /// Only those of agent.open-cluster-management.io go into the ManagedCluster.
  std::map<std::string, std::string> cluster_annotations;
  /// Leave a hub that denies us or is lost. Without it the first bootstrap kubeconfig is the only one, for ever.
  bool multiple_hubs = true;
  bool record_events = true;
  /// Also go to hubs without TLS: for simulated ones only, since the credential travels in clear.
  bool allow_plain_http = false;
  /// Absent: always healthy.
  SpokeProbe probe;
  /// Called on the agent's loop after each change of what view() shows. Must not throw.
  std::function<void(const AgentView&)> on_change;

  /// What is wrong with these, one sentence each.
  [[nodiscard]] std::vector<std::string> problems() const;
};

/// Why there cannot be a choice between these hubs, in a sentence; nullopt when there can. With the gate MultipleHubs
/// at least two are needed, without it one.
std::optional<std::string> bootstrap_problem(std::size_t count, bool multiple_hubs);

/// A client for the server of this configuration. May throw kube::ConfigError.
using Connect = std::function<std::shared_ptr<kube::Api>(const kube::ClientConfig&)>;

class AgentCore;

/// The agent of one managed cluster: chooses a hub, registers, stays in touch, and leaves for the next one when it is
/// denied or lost. Switching happens in here, without a restart: every client, watch and timer is built anew.
///
/// It is a phase machine: Selecting, Bootstrapping, Joined, Leaving, and round again. All agents of a process share its
/// definition and their metrics; one that waits costs under 64 KiB and no thread.
/// After a restart it begins with Selecting: the store's secret holds all that is worth remembering.
///
/// Lifetime: store, and what `env` refers to, outlive it; it outlives run().
/// Executor: the loop of run(). Cancellation: terminal; the hub is told nothing.
/// Errors: run() throws only what is a bug, or what the options' problems() would have told.
class Agent {
 public:
  Agent(AgentOptions options, LocalStore& store, Connect connect, kube::Env env);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  Awaitable<> run();

  [[nodiscard]] AgentView view() const;
  /// Where it stands in the machine, for people.
  [[nodiscard]] phase::States states() const;

 private:
  std::unique_ptr<AgentCore> core_;
};

/// The phases, as a diagram (mermaid).
std::string agent_diagram();

}  // namespace hubferry::klusterlet
