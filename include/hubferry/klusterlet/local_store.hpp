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
  std::string name;                           // of the file or the Secret, for people
  obs::Secret kubeconfig;                     // its text
  std::optional<std::filesystem::path> base;  // where its file references start; absent: it may have none

  std::string unreadable = {};  // why there is no text; empty: there is

  bool operator==(const BootstrapConfig&) const = default;

  /// Throws kube::ConfigError that names it.
  [[nodiscard]] kube::ClientConfig parse() const;
};

/// Why nothing secret may be sent to this server, in a sentence; nullopt when it may.
std::optional<std::string> transport_problem(const kube::ClientConfig& config);

/// What an agent tells about itself where its store can show it.
struct AgentReport {
  std::string phase;
  std::string hub;      // the server in use; empty: none
  std::string problem;  // why there is none; empty: all is well
  /// Why heartbeats do not reach the hub: a CamelCase word and a sentence. Empty: they do.
  std::string heartbeat_reason;
  std::string heartbeat_problem;
};

/// What an agent keeps on its own cluster: the hubs it may go to, and the credential for the one it is at.
///
/// Lifetime: outlives the agent. Executor: the agent's loop.
/// Cancellation of the coroutines: terminal; a cancelled save has happened as a whole or not at all.
/// Errors: values; an agent tries again.
class LocalStore {
 public:
  LocalStore() = default;
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;
  virtual ~LocalStore() = default;

  /// In the order of preference.
  [[nodiscard]] virtual std::vector<BootstrapConfig> bootstraps() const = 0;
  /// May the list be replaced by what a hub sends?
  [[nodiscard]] virtual bool takes_bootstraps() const { return false; }
  /// `timeout`: the connection timeout that came with it, if any.
  virtual Awaitable<kube::Result<>> put_bootstraps(std::vector<BootstrapConfig> list, std::optional<Duration> timeout);

  /// nullopt: there is none, or what there is cannot be used.
  virtual Awaitable<kube::Result<std::optional<HubSecret>>> load() = 0;
  /// All keys in one write.
  virtual Awaitable<kube::Result<>> save(HubSecret secret) = 0;

  /// How long a hub may be out of reach; absent: as the agent's options say.
  [[nodiscard]] virtual std::optional<Duration> connection_timeout() const { return std::nullopt; }
  /// Is the feature gate MultipleHubs on? Absent: as the agent's options say.
  [[nodiscard]] virtual std::optional<bool> multiple_hubs() const { return std::nullopt; }
  /// What certificates shall be asked for; absent: as the agent's options say.
  [[nodiscard]] virtual std::optional<std::chrono::seconds> certificate_lifetime() const { return std::nullopt; }
  /// For the ManagedCluster, beside those of the agent's options.
  [[nodiscard]] virtual std::map<std::string, std::string> cluster_annotations() const { return {}; }
  /// Only takes note.
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

  /// As an administrator would: replaces the list.
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
