#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

struct HiveOptions {
  std::string name = "hive";
  /// Hive as it is knows its own annotation only. With this, its controllers respect the seed's two annotations too, as
  /// a Hive would that has ClusterRelocator built in.
  bool knows_relocators = false;
  /// Hive's own relocation controller is enabled, as it is by default: it clears its annotation where no
  /// ClusterRelocate matches.
  bool relocate_controller = true;
};

/// Hive's controllers on a hub, as far as a relocation relies on them: clusterdeployment (deprovision finalizer,
/// provisions, the child DNSZone), clustersync, machinepool, dnszone, dnsendpoint, and its own clusterrelocate. They
/// change no cloud and no cluster, but record what they would do: see actions().
///
/// Lifetime: `hub` outlives it. Executor: one loop. Cancellation: terminal. Errors: logged and retried.
class HiveControllers {
 public:
  HiveControllers(kube::Api& hub, HiveOptions options, kube::Env env);
  HiveControllers(const HiveControllers&) = delete;
  HiveControllers& operator=(const HiveControllers&) = delete;
  ~HiveControllers();

  /// Runs until cancelled. The CRDs must exist (install_crds()).
  kube::Awaitable<> run();

  /// What was done to clouds and clusters, in order: "deprovision ns/name", "provision ns/name", "sync ns/name",
  /// "machines ns/name", "remove machines ns/name", "dns ns/name", "remove dns ns/name", "error dns ns/name",
  /// "delegate ns/name", "remove delegation ns/name" (the records of the parent domain).
  [[nodiscard]] const std::vector<std::string>& actions() const;
  /// How many of them begin with `text`.
  [[nodiscard]] std::size_t count(const std::string& text) const;
  void forget_actions();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
