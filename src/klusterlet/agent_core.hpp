#pragma once

#include <map>
#include <memory>
#include <optional>

#include "hubferry/async/backoff.hpp"
#include "hubferry/klusterlet/agent.hpp"
#include "hubferry/obs/metrics.hpp"
#include "hubferry/phase/default_definition.hpp"
#include "klusterlet/hub_selection.hpp"

namespace hubferry::klusterlet {

/// Why an agent left a hub: the metric label `reason`.
enum class LeaveReason {
  denied,                // hubAcceptsClient became false
  connection_lost,       // no heartbeat reached it within the connection timeout
  bootstrap_timeout,     // it did not complete our registration within the connection timeout
  bootstrap_refused,     // during registration it revoked our credential's permissions or denied us
  bootstrap_changed,     // the bootstrap kubeconfig in use was edited or removed
  certificate_expired,   // our certificate could not be renewed in time
  certificate_rejected,  // the hub no longer accepts our certificate: a new one is requested
  failed,                // an unexpected error
};
std::string_view to_string(LeaveReason reason);

/// Shared by all agents of a process: no series per agent.
struct AgentMetrics {
  explicit AgentMetrics(obs::Metrics& metrics);

  obs::Family<obs::Counter>& switches;    // {reason}
  obs::Histogram& time_to_available;      // from leaving a hub to being available on the next one
  obs::Family<obs::Counter>& heartbeats;  // {result}
};

/// Why an agent leaves a hub.
struct Leave {
  LeaveReason reason = LeaveReason::failed;
  std::string message;
};

/// The hub that was selected.
struct SelectedHub {
  BootstrapConfig bootstrap;
  kube::ClientConfig config;
};

/// The phase machine's resource: the state of one agent. It lives in memory; see Agent.
struct AgentRecord {
  struct Status {
    phase::Phase phase;
    phase::States state;
  };
  Status status;
};

/// One agent: what its phases share. The services of its phase machine.
class AgentCore {
 public:
  AgentCore(AgentOptions agent_options, LocalStore& local_store, Connect connect_to, kube::Env environment);

  Awaitable<> run();
  [[nodiscard]] AgentView view() const;

  [[nodiscard]] Identity identity() const { return {options.cluster_name, options.agent_name}; }
  [[nodiscard]] Duration connection_timeout() const {
    return store.connection_timeout().value_or(options.connection_timeout);
  }
  [[nodiscard]] bool multiple_hubs() const { return store.multiple_hubs().value_or(options.multiple_hubs); }
  [[nodiscard]] std::chrono::seconds certificate_lifetime() const {
    return store.certificate_lifetime().value_or(options.certificate_lifetime);
  }
  void heartbeat_succeeded();
  void heartbeat_failed(const kube::Error& error);
  void set_secret(HubSecret secret);
  void became_available();
  void view_changed();
  /// True if the bootstrap kubeconfig in use was edited or removed from the list.
  [[nodiscard]] bool bootstrap_changed() const;
  /// Saves, retrying until it succeeds: a certificate that was issued must not be requested again.
  Awaitable<> save_secret(HubSecret secret);

  AgentOptions options;
  LocalStore& store;
  Connect connect;
  kube::Env env;
  AgentMetrics metrics;

  AgentRecord record;
  std::optional<SelectedHub> selected;
  std::optional<HubSecret> secret;                 // as stored
  bool needs_certificate = true;                   // the one in `secret` is not for the selected hub
  std::optional<Validity> validity;                // of its certificate
  std::optional<Leave> leave;                      // why the phase Leaving was entered
  std::optional<TimePoint> left_at;                // until available again
  std::map<std::string, TimePoint> demoted_until;  // by server
  async::Backoff selection_backoff;
  async::Backoff failure_backoff;  // after unexpected errors; reset when available again
  bool available = false;
  std::string problem;

  std::string rejected_certificate;      // the hub answered 401 to it for the connection timeout
  bool renewed_after_rejection = false;  // and no heartbeat has succeeded since
  unsigned failed_heartbeats = 0;        // in a row
  std::string heartbeat_reason;          // as in AgentReport
  std::string heartbeat_problem;
};

using AgentContext = phase::Context<AgentCore>;

// The handlers of the phases.
Awaitable<phase::ReconcileState> select_hub(AgentContext& context, AgentRecord& record, const phase::State& last);
Awaitable<phase::ReconcileState> bootstrap(AgentContext& context, AgentRecord& record, const phase::State& last);
Awaitable<phase::ReconcileState> stay_joined(AgentContext& context, AgentRecord& record, const phase::State& last);
Awaitable<phase::ReconcileState> leave_hub(AgentContext& context, AgentRecord& record, const phase::State& last);

namespace phases {
inline constexpr const char* selecting = "Selecting";
inline constexpr const char* bootstrapping = "Bootstrapping";
inline constexpr const char* joined = "Joined";
inline constexpr const char* leaving = "Leaving";
inline constexpr const char* failed = "Failed";
}  // namespace phases

/// The definition that all agents share.
phase::Definition<AgentCore, AgentRecord>& agent_definition();

/// Converts a wall-clock time to one that can be slept until.
TimePoint monotonic(async::Clock& clock, WallTime when);

}  // namespace hubferry::klusterlet
