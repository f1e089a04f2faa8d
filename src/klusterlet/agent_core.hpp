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
  obs::Family<obs::Counter>& problems;    // {reason}: those of the conditions, counted when they begin
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

/// Our ManagedCluster on the selected hub, as it was read a moment ago.
struct ProbedCluster {
  std::optional<kube::Object> object;  // nullopt: it does not exist
};

/// The credential of the store, parsed.
struct StoredCredential {
  HubSecret secret;
  kube::ClientConfig config;
  std::optional<std::string> flaw;  // why no hub would accept it
  WallTime until;                   // when its certificate expires
};

/// What happened to the bootstrap kubeconfig of the hub in use.
enum class BootstrapChange {
  none,       // nothing, or its credential alone, which is not in use
  reconnect,  // the hub is reached in another way: a rotated CA, another proxy
  gone,       // it was removed from the list, or is for another hub now
};

/// The parts of an agent that notice a failing connection. Each reports its own failures, and that they are over.
enum class ConnectionPart { heartbeat, cluster, status };

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
  [[nodiscard]] KeySource& keys() const { return options.keys != nullptr ? *options.keys : fresh_keys(); }
  [[nodiscard]] Duration connection_timeout() const {
    return store.connection_timeout().value_or(options.connection_timeout);
  }
  [[nodiscard]] bool multiple_hubs() const { return store.multiple_hubs().value_or(options.multiple_hubs); }
  [[nodiscard]] std::chrono::seconds certificate_lifetime() const {
    return store.certificate_lifetime().value_or(options.certificate_lifetime);
  }
  /// Those of the options and of the store.
  [[nodiscard]] std::vector<ExternalServer> external_servers() const;
  /// A failure is reported when it begins and when its reason changes: in the log, the metric and the conditions.
  void connection_failed(ConnectionPart part, std::string reason, std::string message);
  void connection_failed(ConnectionPart part, const kube::Error& error);
  void connection_works(ConnectionPart part);
  /// The same for the registration. Empty: it works.
  void registration_problem(std::string message);
  void set_secret(HubSecret secret);
  /// The hub accepts the certificate in use after all: it is not rejected any more, and is due for renewal.
  void trust_certificate_again();
  void became_available();
  void view_changed();
  /// Compares the hub in use with the list, and takes over its new credential and CA.
  BootstrapChange follow_bootstraps();
  /// The credential: as stored, or from memory if it could not be saved or cannot be read.
  Awaitable<kube::Result<std::optional<HubSecret>>> load_secret();
  /// Takes a new credential into use; save_unsaved() saves it.
  void use_secret(HubSecret secret);
  /// The same, and tries to save it once. A store that fails does not keep the agent from using
  /// it: otherwise it would blame the hub and request another certificate.
  Awaitable<> keep_secret(HubSecret secret);
  /// Saves what could not be saved; returns when that succeeded.
  Awaitable<> save_unsaved();

  AgentOptions options;
  LocalStore& store;
  Connect connect;
  kube::Env env;
  AgentMetrics metrics;

  AgentRecord record;
  std::optional<SelectedHub> selected;
  std::optional<ProbedCluster> probed;             // by Selecting, for Bootstrapping
  std::string cluster_version;                     // the latest known version of our ManagedCluster there
  std::map<std::string, TimePoint> requested;      // by server: our last certificate request
  bool was_joined = false;                         // since the process started
  std::optional<StoredCredential> stored;          // as last parsed by Selecting
  std::optional<HubSecret> secret;                 // in use
  bool unsaved = false;                            // it is not stored yet
  bool needs_certificate = true;                   // the one in `secret` is not for the selected hub
  std::optional<Validity> validity;                // of its certificate
  TimePoint certificate_until{};                   // the same end on the monotonic clock
  std::optional<Leave> leave;                      // why the phase Leaving was entered
  std::optional<TimePoint> left_at;                // until available again
  std::map<std::string, TimePoint> demoted_until;  // by server
  async::Backoff selection_backoff;
  async::Backoff failure_backoff;  // after unexpected errors; reset when available again
  bool available = false;
  std::string problem;

  /// The last heartbeat that reached the hub in use, or when it was joined. Sessions with one hub follow each other, as
  /// often as somebody edits how it is reached: a dead one is left in time all the same.
  TimePoint reached{};
  bool grace_given = false;  // since then, see Session::give_grace()

  std::string rejected_certificate;      // the hub answered 401 to it for the connection timeout
  bool renewed_after_rejection = false;  // and no heartbeat has succeeded since

  struct Problem {
    std::string reason;
    std::string message;
  };
  std::map<ConnectionPart, Problem> connection;  // what fails now
  std::string store_problem;

 private:
  Awaitable<bool> try_to_save();
  /// When the certificate that is taken into use now ends, on the monotonic clock.
  [[nodiscard]] TimePoint end_of(const Validity& certificate) const;
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
