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

  bool operator==(const BootstrapConfig&) const = default;

  /// Throws kube::ConfigError that names it.
  [[nodiscard]] kube::ClientConfig parse() const;
};

/// Why no credential may be sent to this server; nullopt if it may.
std::optional<std::string> transport_problem(const kube::ClientConfig& config);

/// The state that an agent reports to its store, for display.
struct AgentReport {
  std::string phase;
  std::string hub;      // server of the hub in use; empty: none
  std::string problem;  // why there is none; empty: no problem
  /// Why heartbeats do not reach the hub, as a CamelCase reason and a message. Empty: they do.
  std::string heartbeat_reason;
  std::string heartbeat_problem;
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
  /// True if the hub may replace the list.
  [[nodiscard]] virtual bool takes_bootstraps() const { return false; }
  /// `timeout`: the connection timeout that came with it, if any.
  virtual Awaitable<kube::Result<>> put_bootstraps(std::vector<BootstrapConfig> list, std::optional<Duration> timeout);

  /// nullopt: there is none, or it is unusable.
  virtual Awaitable<kube::Result<std::optional<HubSecret>>> load() = 0;
  /// All keys in one write.
  virtual Awaitable<kube::Result<>> save(HubSecret secret) = 0;

  /// How long a hub may be unreachable; absent: as in the agent's options.
  [[nodiscard]] virtual std::optional<Duration> connection_timeout() const { return std::nullopt; }
  /// True if the feature gate MultipleHubs is on; absent: as in the agent's options.
  [[nodiscard]] virtual std::optional<bool> multiple_hubs() const { return std::nullopt; }
  /// Requested lifetime of certificates; absent: as in the agent's options.
  [[nodiscard]] virtual std::optional<std::chrono::seconds> certificate_lifetime() const { return std::nullopt; }
  /// For the ManagedCluster, in addition to those of the agent's options.
  [[nodiscard]] virtual std::map<std::string, std::string> cluster_annotations() const { return {}; }
  /// Records the agent's state; must not block.
  virtual void report(const AgentReport&) {}

  /// Counts changes of bootstraps(), multiple_hubs() and connection_timeout().
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
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override;
  Awaitable<kube::Result<>> save(HubSecret secret) override;

  /// Replaces the list, as an administrator would.
  void set_bootstraps(std::vector<BootstrapConfig> list);
  [[nodiscard]] const std::optional<HubSecret>& secret() const { return secret_; }
  [[nodiscard]] unsigned saves() const { return saves_; }

 private:
  std::vector<BootstrapConfig> bootstraps_;
  std::optional<HubSecret> secret_;
  std::optional<Duration> timeout_;
  unsigned saves_ = 0;
};

}  // namespace hubferry::klusterlet
