#pragma once

#include <memory>

#include "hubferry/async/event.hpp"
#include "hubferry/klusterlet/local_store.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::klusterlet {

/// The settings of a Klusterlet's registrationConfiguration.
struct KlusterletSettings {
  bool multiple_hubs = false;        // the feature gate
  std::vector<std::string> secrets;  // in order
  Duration timeout = std::chrono::seconds{600};
  std::optional<std::chrono::seconds> certificate_lifetime;  // clientCertExpirationSeconds, if set
  std::map<std::string, std::string> cluster_annotations;
  std::string problem_reason;  // why these settings are invalid, in CamelCase; empty: they are valid
  std::string problem;         // and as a message
};
/// With the gate on: the Secrets of bootstrapKubeConfigs; off: only `bootstrap-hub-kubeconfig`.
/// Never throws.
KlusterletSettings read_klusterlet(const kube::Object& klusterlet);

struct KlusterletStoreOptions {
  std::string klusterlet = "klusterlet";
  std::string ns = "open-cluster-management-agent";
};

/// Reads its settings from a Klusterlet resource and Secrets on the agent's own cluster, and keeps the hub credential
/// there, in the Secret `hub-kubeconfig-secret`.
///
/// All of them are watched: an edit takes effect immediately. An invalid Klusterlet gets Applied=False with the reason,
/// and the last valid settings stay in effect. HubConnectionDegraded reports the current state of the hub connection.
/// Lifetime: api and what `env` refers to outlive it. Executor: one loop.
class KlusterletStore final : public LocalStore {
 public:
  KlusterletStore(kube::Api& api, KlusterletStoreOptions options, kube::Env env);

  /// Watches the resources and writes the Klusterlet's status until cancelled.
  Awaitable<> run();
  /// Returns when the Klusterlet exists and the Secrets are synced; run() must be running.
  Awaitable<> wait_ready();

  [[nodiscard]] std::vector<BootstrapConfig> bootstraps() const override { return bootstraps_; }
  [[nodiscard]] bool takes_bootstraps() const override { return true; }
  Awaitable<kube::Result<>> put_bootstraps(std::vector<BootstrapConfig> list, std::optional<Duration> timeout) override;
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override;
  Awaitable<kube::Result<>> save(HubSecret secret) override;
  [[nodiscard]] std::optional<Duration> connection_timeout() const override { return settings_.timeout; }
  [[nodiscard]] std::optional<bool> multiple_hubs() const override { return settings_.multiple_hubs; }
  [[nodiscard]] std::optional<std::chrono::seconds> certificate_lifetime() const override {
    return settings_.certificate_lifetime;
  }
  [[nodiscard]] std::map<std::string, std::string> cluster_annotations() const override {
    return settings_.cluster_annotations;
  }
  void report(const AgentReport& report) override;

  /// spec.clusterName; empty: not set.
  [[nodiscard]] std::string cluster_name() const;

 private:
  Awaitable<> wait_synced();
  void apply_settings();
  Awaitable<> write_status();
  bool put_conditions(kube::json::object& klusterlet) const;

  kube::Api& api_;
  KlusterletStoreOptions options_;
  kube::Env env_;
  kube::Cache<kube::Object> klusterlets_;
  kube::Cache<kube::Object> secrets_;
  KlusterletSettings settings_;         // the last valid ones, in effect
  KlusterletSettings latest_settings_;  // as the Klusterlet has them now
  std::vector<BootstrapConfig> bootstraps_;
  AgentReport report_;
  async::Notify status_changed_;
  async::Event found_;  // the Klusterlet has been seen
};

}  // namespace hubferry::klusterlet
