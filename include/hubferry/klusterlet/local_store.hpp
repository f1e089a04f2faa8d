#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/wait_list.hpp"
#include "hubferry/klusterlet/hub_secret.hpp"
#include "hubferry/kube/error.hpp"

namespace hubferry::klusterlet {

using async::Awaitable;
using async::Duration;
using async::TimePoint;

/// A low-privilege credential for one hub.
struct BootstrapConfig {
  std::string name;                           // of the file or the Secret, for display
  obs::Secret kubeconfig;                     // its text
  std::optional<std::filesystem::path> base;  // base of its relative file references; absent: it may have none

  std::string unreadable = {};  // why its text is missing; empty: it is not
  std::string authority = {};   // what the CA file that it refers to contained when it was read; empty: no file
  /// It stands in a list that a hub sent. False for the administrator's own hubs, also if a hub has renewed its
  /// credential in one of them.
  bool sent = false;
  /// The cluster was moved away from this hub. It can come back while its ManagedCluster is still there, but must not
  /// register there anew: the move may be complete, and the cluster deleted there on purpose.
  bool fallback = false;

  bool operator==(const BootstrapConfig&) const = default;
  /// True if it leads to the same hub with the same credential.
  [[nodiscard]] bool is_same(const BootstrapConfig& other) const {
    return kubeconfig == other.kubeconfig && authority == other.authority && unreadable == other.unreadable;
  }

  /// Throws kube::ConfigError that names it.
  [[nodiscard]] kube::ClientConfig parse() const;
};

/// Why this text is no bootstrap kubeconfig; nullopt if it can be parsed.
std::optional<std::string> why_unparsable(const BootstrapConfig& bootstrap);

/// A URL at which the managed cluster's own API server is reachable from outside, and the CA to trust there.
struct ExternalServer {
  std::string url;
  std::string ca_pem = {};  // empty: that of the agent's options

  bool operator==(const ExternalServer&) const = default;
};

/// Why no credential may be sent to this server; nullopt if it may.
std::optional<std::string> transport_problem(const kube::ClientConfig& config);

/// The state that an agent reports to its store, for display.
struct AgentReport {
  std::string phase;
  std::string hub;      // server of the hub in use; empty: none
  std::string problem;  // why there is none; empty: no problem
  /// Why the connection to the hub fails, as a CamelCase reason and a message. Empty: it does not.
  std::string connection_reason;
  std::string connection_problem;
  std::string store_problem;  // why the credential could not be saved; empty: it is
};

/// What an agent keeps on its own cluster: the bootstrap kubeconfigs of its hubs, and the credential for the current
/// one.
///
/// Lifetime: outlives the agent. Executor: the agent's loop.
/// Cancellation of the coroutines: terminal; a cancelled save is either complete or has not happened.
/// Errors: values; the agent retries.
class LocalStore {
 public:
  LocalStore() = default;
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;
  virtual ~LocalStore() = default;

  /// In the order of preference.
  [[nodiscard]] virtual std::vector<BootstrapConfig> bootstraps() const = 0;
  /// True if the hub may send a list.
  [[nodiscard]] virtual bool takes_bootstraps() const { return false; }
  /// Keeps a list that a hub has sent, beside the administrator's own, which is never changed.
  /// `timeout`: the connection timeout that came with it, if any.
  virtual Awaitable<kube::Result<>> put_bootstraps(std::vector<BootstrapConfig> list, std::optional<Duration> timeout);

  /// nullopt: there is none, or it is unusable.
  virtual Awaitable<kube::Result<std::optional<HubSecret>>> load() = 0;
  /// All keys in one write.
  virtual Awaitable<kube::Result<>> save(HubSecret secret) = 0;
  /// True if what was saved has been deleted since: a new certificate is wanted.
  [[nodiscard]] virtual bool lost_secret() const { return false; }

  /// How long a hub may be unreachable; absent: as in the agent's options.
  [[nodiscard]] virtual std::optional<Duration> connection_timeout() const { return std::nullopt; }
  /// True if the feature gate MultipleHubs is on; absent: as in the agent's options.
  [[nodiscard]] virtual std::optional<bool> multiple_hubs() const { return std::nullopt; }
  /// Requested lifetime of certificates; absent: as in the agent's options.
  [[nodiscard]] virtual std::optional<std::chrono::seconds> certificate_lifetime() const { return std::nullopt; }
  /// For the ManagedCluster, in addition to those of the agent's options.
  [[nodiscard]] virtual std::map<std::string, std::string> cluster_annotations() const { return {}; }
  /// For the ManagedCluster, in addition to those of the agent's options.
  [[nodiscard]] virtual std::vector<ExternalServer> external_servers() const { return {}; }
  /// Records the agent's state; must not block.
  virtual void report(const AgentReport&) {}

  /// Counts changes of what the functions above return.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// Returns as soon as version() is no longer `seen`.
  Awaitable<> wait_for_change(std::uint64_t seen);

 protected:
  void changed();

 private:
  std::uint64_t version_ = 0;
  async::WaitList waiters_;
};

/// Keeps everything in memory: for the agents of a simulated fleet.
class MemoryStore final : public LocalStore {
 public:
  explicit MemoryStore(std::vector<BootstrapConfig> bootstraps, std::optional<HubSecret> secret = std::nullopt)
      : bootstraps_(std::move(bootstraps)), secret_(std::move(secret)) {}

  [[nodiscard]] std::vector<BootstrapConfig> bootstraps() const override { return bootstraps_; }
  [[nodiscard]] bool takes_bootstraps() const override { return true; }
  Awaitable<kube::Result<>> put_bootstraps(std::vector<BootstrapConfig> list, std::optional<Duration> timeout) override;
  [[nodiscard]] std::optional<Duration> connection_timeout() const override { return timeout_; }
  [[nodiscard]] std::optional<bool> multiple_hubs() const override;
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override;
  Awaitable<kube::Result<>> save(HubSecret secret) override;

  /// From now on the hub's list is all that the agent knows, and MultipleHubs is on while it names several hubs: as the
  /// import controller writes it into the Klusterlet.
  void let_list_decide_on_multiple_hubs() { list_decides_ = true; }
  /// Replaces the list, as an administrator would.
  void set_bootstraps(std::vector<BootstrapConfig> list);
  [[nodiscard]] const std::optional<HubSecret>& secret() const { return secret_; }
  [[nodiscard]] unsigned saves() const { return saves_; }

 private:
  std::vector<BootstrapConfig> bootstraps_;
  std::optional<HubSecret> secret_;
  std::optional<Duration> timeout_;
  bool list_decides_ = false;
  unsigned saves_ = 0;
};

}  // namespace hubferry::klusterlet
