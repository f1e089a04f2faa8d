#pragma once

#include <memory>

#include "hubferry/async/event.hpp"
#include "hubferry/klusterlet/local_store.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::klusterlet {

/// What a Klusterlet's registrationConfiguration asks for.
struct KlusterletWish {
  bool multiple_hubs = false;        // the feature gate
  std::vector<std::string> secrets;  // in order
  Duration timeout = std::chrono::seconds{600};
  std::optional<std::chrono::seconds> certificate_lifetime;  // clientCertExpirationSeconds, where it is set
  std::map<std::string, std::string> cluster_annotations;
  std::string problem_reason;  // a CamelCase word when it cannot be fulfilled
  std::string problem;         // and a sentence
};
/// With the gate on: the Secrets of bootstrapKubeConfigs; off: `bootstrap-hub-kubeconfig`, whatever else stands there.
/// Never throws.
KlusterletWish read_klusterlet(const kube::Object& klusterlet);

struct KlusterletStoreOptions {
  std::string klusterlet = "klusterlet";
  std::string ns = "open-cluster-management-agent";
};

/// Takes its wishes from a Klusterlet resource and Secrets on the agent's own cluster, and keeps the hub's credential
/// there, in the Secret `hub-kubeconfig-secret`.
///
/// All are watched: an edit counts at once. A Klusterlet that cannot be fulfilled gets Applied=False with the reason,
/// and the list that was good before stays. HubConnectionDegraded always says how it is with the hub now. Lifetime: api
/// and what `env` refers to outlive it. Executor: one loop.
class KlusterletStore final : public LocalStore {
 public:
  KlusterletStore(kube::Api& api, KlusterletStoreOptions options, kube::Env env);

  /// Follows the resources and writes the Klusterlet's status until cancelled.
  Awaitable<> run();
  /// Returns when there is a Klusterlet and the Secrets were read; run() must be running.
  Awaitable<> wait_ready();

  [[nodiscard]] std::vector<BootstrapConfig> bootstraps() const override { return bootstraps_; }
  [[nodiscard]] bool takes_bootstraps() const override { return true; }
  Awaitable<kube::Result<>> put_bootstraps(std::vector<BootstrapConfig> list, std::optional<Duration> timeout) override;
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override;
  Awaitable<kube::Result<>> save(HubSecret secret) override;
  [[nodiscard]] std::optional<Duration> connection_timeout() const override { return wish_.timeout; }
  [[nodiscard]] std::optional<bool> multiple_hubs() const override { return wish_.multiple_hubs; }
  [[nodiscard]] std::optional<std::chrono::seconds> certificate_lifetime() const override {
    return wish_.certificate_lifetime;
  }
  [[nodiscard]] std::map<std::string, std::string> cluster_annotations() const override {
    return wish_.cluster_annotations;
  }
  void report(const AgentReport& report) override;

  /// spec.clusterName; empty: not set.
  [[nodiscard]] std::string cluster_name() const;

 private:
  Awaitable<> wait_synced();
  void look_again();
  Awaitable<> write_status();
  bool put_conditions(kube::json::object& klusterlet) const;

  kube::Api& api_;
  KlusterletStoreOptions options_;
  kube::Env env_;
  kube::Cache<kube::Object> klusterlets_;
  kube::Cache<kube::Object> secrets_;
  KlusterletWish wish_;       // the last that could be fulfilled
  KlusterletWish last_wish_;  // as the Klusterlet says now
  std::vector<BootstrapConfig> bootstraps_;
  AgentReport report_;
  async::Notify status_changed_;
  async::Event found_;  // there is a Klusterlet, or was
};

}  // namespace hubferry::klusterlet
