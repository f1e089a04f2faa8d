#pragma once

#include <memory>
#include <optional>

#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/event_recorder.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "klusterlet/agent_core.hpp"
#include "klusterlet/enrolment.hpp"
#include "klusterlet/lease_renewal.hpp"
#include "klusterlet/rules.hpp"

namespace hubferry::klusterlet {

/// Everything that an agent does at a hub with one credential. It ends when the agent leaves the hub, or when a new
/// certificate needs a new client.
///
/// Its parts are coroutines of one scope: they share what they observe through the members below, and any of them can
/// end the session. They are in session.cpp, heartbeat.cpp, cluster_status.cpp and klusterlet_work.cpp.
class Session {
 public:
  Session(AgentCore& agent, std::shared_ptr<kube::Api> api);

  /// nullopt: the certificate was replaced.
  Awaitable<std::optional<Leave>> run();

 private:
  // session.cpp
  Awaitable<> watch_cluster();
  /// Applies the store's current settings. False: they ended the session.
  bool apply_settings();
  void saw_cluster(std::shared_ptr<const ocm::ManagedCluster> cluster);
  void check_acceptance();
  /// When rotate() is to be started, if it is not `wanted` before: it needs no task of its own until then.
  [[nodiscard]] TimePoint rotation_start() const;
  [[nodiscard]] TimePoint earliest_rotation() const;
  /// Replaces the certificate once it is due, at once if that is `wanted`.
  Awaitable<> rotate(bool wanted);
  Awaitable<Enrolled> request_certificate();
  /// The stored credential was deleted; false while the one in use waits to be stored, which then takes its place.
  [[nodiscard]] bool lost_secret() const { return agent_.store.lost_secret() && !agent_.unsaved; }
  Awaitable<> put_client_configs();
  void end(std::optional<Leave> leave);
  void report(kube::EventType type, std::string_view reason, const std::string& message);

  // heartbeat.cpp
  Awaitable<> beat();
  /// Returns why it failed; nullopt: it did not.
  Awaitable<std::optional<kube::Error>> renew_lease();
  Awaitable<> watch_connection();
  Awaitable<> read_lease();
  /// The hub gets this much time before it counts as lost, for another reason than its own. Once, until a heartbeat
  /// reaches it: a dead hub is left however often this happens.
  void give_grace();
  /// To be called after a wait until `due`. Much later than that, this process was stopped and not the hub.
  void check_for_stop(TimePoint due);
  /// A heartbeat that was sent at this time has reached the hub.
  void reached(TimePoint sent);
  void heartbeat_failed(const kube::Error& error);
  [[nodiscard]] bool is_accepted() const;
  [[nodiscard]] Duration lease_duration() const;
  [[nodiscard]] Duration period() const;

  // cluster_status.cpp
  Awaitable<> probe_spoke();
  Awaitable<> watch_facts();
  Awaitable<> write_status();
  [[nodiscard]] bool is_status_due() const;
  [[nodiscard]] std::optional<bool> availability_to_report() const;
  bool put_status(kube::json::object& cluster) const;

  // klusterlet_work.cpp
  Awaitable<> watch_work();
  Awaitable<bool> take_work(kube::Object work);

  AgentCore& agent_;
  std::shared_ptr<kube::Api> api_;
  kube::Key cluster_key_;
  kube::Key lease_key_;
  std::optional<kube::EventRecorder> recorder_;
  async::TaskScope* scope_ = nullptr;
  bool ended_ = false;
  std::optional<Leave> leave_;

  std::shared_ptr<const ocm::ManagedCluster> cluster_;  // as last seen; null: it does not exist, or was not read yet
  std::shared_ptr<const kube::Object> latest_;  // the same with all its fields, until the first status is written
  std::string accepted_uid_;                    // of the ManagedCluster that was accepted since the session began
  async::Notify beat_changed_;                  // is_accepted() or period() changed
  async::Notify status_changed_;                // is_status_due() may have changed
  async::Event cluster_seen_;                   // at least once
  async::Notify renew_;                         // the certificate is to be replaced now
  bool rotating_ = false;                       // rotate() was started
  TimePoint started_;
  TimeoutRule timeout_;
  Duration period_in_use_{0};
  struct Beat {
    std::string renew_time;
    TimePoint sent;
  };
  Beat last_beat_;                                // the last heartbeat that was sent, answered or not
  std::vector<ExternalServer> external_servers_;  // those that the ManagedCluster has been checked for
  bool rejected_ = false;                         // the last heartbeat got 401: the hub does not accept our certificate
  AvailabilityRule availability_;
  LeaseRenewal lease_;
  bool tried_to_beat_ = false;                 // since the session began
  std::uint64_t beats_ = 0;                    // heartbeats that succeeded
  std::uint64_t beats_when_reported_ = 0;      // when availability was last written, or reverted
  std::optional<bool> reported_availability_;  // what was written then
  SpokeHealth health_;
  std::optional<kube::Condition> certificate_condition_;  // to be written
  std::string written_version_;                           // of Kubernetes, as reported to the hub
  std::uint64_t written_facts_ = 0;                       // version of the facts that were reported to the hub
};

/// The bootstrap kubeconfigs in the ManifestWork `<cluster>-klusterlet`, by which a hub sends an agent its list of
/// hubs.
struct KlusterletWork {
  /// Those of the Klusterlet's bootstrapKubeConfigs, in order, without those whose Secret is missing.
  std::vector<BootstrapConfig> list;
  /// The Secret `bootstrap-hub-kubeconfig`: a fresh credential for the sending hub.
  std::optional<BootstrapConfig> own;
  /// hubConnectionTimeoutSeconds, if there is a list.
  std::optional<Duration> timeout;
  /// The hub manages the list. If it sends none, the list of the hub before has served its purpose.
  bool has_klusterlet = false;
};

/// What the API of Klusterlets allows at least: nobody has validated the one in a work.
constexpr auto least_sent_timeout = std::chrono::seconds{180};

/// Never throws: malformed parts are ignored. A shorter timeout than `least_timeout` is taken for that.
KlusterletWork read_klusterlet_work(const kube::Object& manifest_work, Duration least_timeout = least_sent_timeout);

/// The agent's new list. A list replaces the old one, but the hub in use stays in it, appended if it is missing: an
/// agent must be able to stay, and to come back. Entries that cannot be parsed do not count. Without a list of two
/// hubs, a fresh credential replaces the one for the same server, and the other hubs of a list that was sent before
/// become fallbacks.
std::vector<BootstrapConfig> merge_bootstraps(const std::vector<BootstrapConfig>& known, const KlusterletWork& work,
                                              const BootstrapConfig& in_use, const std::string& server_in_use);

}  // namespace hubferry::klusterlet
