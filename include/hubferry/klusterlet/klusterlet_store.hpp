#pragma once

#include <functional>
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
  std::vector<ExternalServer> external_servers;
  std::string problem_reason;  // why these settings are invalid, in CamelCase; empty: they are valid
  std::string problem;         // and as a message

  bool operator==(const KlusterletSettings&) const = default;
};
/// With the gate on: the Secrets of bootstrapKubeConfigs; off: only `bootstrap-hub-kubeconfig`.
/// Never throws.
KlusterletSettings read_klusterlet(const kube::Object& klusterlet);

struct KlusterletStoreOptions {
  std::string klusterlet = "klusterlet";
  std::string ns = "open-cluster-management-agent";
  std::string cluster_name;  // given to the process: takes precedence over the Klusterlet's; empty: not given
};

/// Reads its settings from a Klusterlet resource and Secrets on the agent's own cluster, and keeps the hub credential
/// there, in the Secret `hub-kubeconfig-secret`.
///
/// All of them are watched: an edit takes effect immediately. An invalid Klusterlet, and a Secret that is missing,
/// empty or unparsable, get Applied=False with the reason, and what was valid last stays in effect: a typing error must
/// not move a cluster. HubConnectionDegraded reports the current state of the hub connection.
///
/// What a hub sends is kept in Secrets with the label `hubferry.io/sent-by-hub`. An administrator's Secret is never
/// written: if a hub sends other content for it, that is in `<name>-hubferry`, and used until the administrator edits
/// his. Lifetime: api and what `env` refers to outlive it. Executor: one loop.
class KlusterletStore final : public LocalStore {
 public:
  KlusterletStore(kube::Api& api, KlusterletStoreOptions options, kube::Env env);

  /// Watches the resources and writes the Klusterlet's status until cancelled.
  Awaitable<> run();
  /// Returns when the Klusterlet exists and the Secrets are synced; run() must be running.
  Awaitable<> wait_ready();
  /// Runs `work` with the cluster's name while the Klusterlet exists; run() must be running. When it is deleted for
  /// good, or names another cluster, the work is cancelled; then begins anew when there is a Klusterlet.
  Awaitable<> follow(std::function<Awaitable<>(std::string cluster_name)> work);

  [[nodiscard]] std::vector<BootstrapConfig> bootstraps() const override { return bootstraps_; }
  [[nodiscard]] bool takes_bootstraps() const override { return true; }
  Awaitable<kube::Result<>> put_bootstraps(std::vector<BootstrapConfig> list, std::optional<Duration> timeout) override;
  Awaitable<kube::Result<std::optional<HubSecret>>> load() override;
  Awaitable<kube::Result<>> save(HubSecret secret) override;
  [[nodiscard]] bool lost_secret() const override { return lost_secret_; }
  [[nodiscard]] std::optional<Duration> connection_timeout() const override { return settings_.timeout; }
  [[nodiscard]] std::optional<bool> multiple_hubs() const override { return settings_.multiple_hubs; }
  [[nodiscard]] std::optional<std::chrono::seconds> certificate_lifetime() const override {
    return settings_.certificate_lifetime;
  }
  [[nodiscard]] std::map<std::string, std::string> cluster_annotations() const override {
    return settings_.cluster_annotations;
  }
  [[nodiscard]] std::vector<ExternalServer> external_servers() const override { return settings_.external_servers; }
  void report(const AgentReport& report) override;

  /// spec.clusterName; empty: not set.
  [[nodiscard]] std::string cluster_name() const;

 private:
  Awaitable<> wait_synced();
  [[nodiscard]] std::shared_ptr<const kube::Object> klusterlet() const;
  /// Returns when the work for this cluster has to end.
  Awaitable<> wait_for_end(std::string cluster);
  void apply_settings();
  void saw_secret(const kube::Key& key, bool was_there, bool is_there);
  /// The bootstrap kubeconfig of this Secret, the administrator's or that which a hub sent.
  [[nodiscard]] BootstrapConfig read_bootstrap(const std::string& name) const;
  /// Remembers the readable Secrets, and reports the others. False: the settings cannot take effect.
  bool check_secrets(const KlusterletSettings& settings);
  Awaitable<kube::Result<>> put_secret(std::string name, BootstrapConfig sent);
  /// Deletes the Secrets of lists that hubs sent before.
  Awaitable<> delete_unused(std::vector<std::string> names);
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
  std::map<std::string, BootstrapConfig> last_readable_;  // by Secret
  std::string unreadable_;                                // which Secrets are not readable now, and why; empty: none
  bool present_ = false;                                  // the Klusterlet exists
  bool lost_secret_ = false;
  AgentReport report_;
  async::Notify status_changed_;
  std::string named_;  // clusterName, as last seen
};

}  // namespace hubferry::klusterlet
