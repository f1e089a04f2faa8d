#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/manager/manager_options.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/hubs/hubs.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "hubferry/kube/fence.hpp"
#include "hubferry/obs/health.hpp"
#include "hubferry/phase/definition.hpp"

namespace hubferry::app {

/// 1 while another manager acts: one for which this one waits, or one that does not share its Lease.
obs::Gauge& other_manager(obs::Metrics& metrics);

/// What the manager's controllers share.
/// Lifetime: everything outlives Controllers::run().
struct ControllerSurroundings {
  const ManagerOptions& options;
  kube::Api& global;
  const kube::ClientConfig& global_config;
  async::LoopPool& loops;  // of the connections to hubs
  kube::Env env;
  std::shared_ptr<const hubagent::CarriedResources> carried;  // null: the default
  kube::Fence* fence = nullptr;                               // of the leader; null: nothing keeps another one away
  /// See migration::ControllerOptions; may be empty.
  std::function<void(const kube::Key& migration, const std::string& cluster)> on_arrival = {};
  /// Called for every connection to a hub, with the URL of its server; may be empty.
  std::function<void(const std::string& hub, const std::string& server)> on_connect = {};
};

/// One controller of the manager. To add one, add a row to the registry in manager_controllers.cpp.
struct ControllerEntry {
  std::string name;  // in --controllers, and the label `machine` of its metrics
  /// Its phases, for --print-phases: one machine for each kind.
  std::vector<const phase::DefinitionBase& (*)()> definitions;
  /// Runs it until cancelled. It reports to `readiness` why it cannot work yet.
  std::function<async::Awaitable<>(const ControllerSurroundings&, hubs::Hubs&, obs::CheckState& readiness)> run;
  /// False: it has CRDs and rights of its own, and runs only if --controllers names it.
  bool by_default = true;
  /// False: it gets a registry of hubs that is empty. The rights for hubs are not needed then.
  bool uses_hubs = true;
};
const std::vector<ControllerEntry>& controller_registry();

/// The controllers that --controllers names. Each has a readiness check `<name>-controller`, which passes on a standby:
/// only the leader needs synced caches.
class Controllers {
 public:
  Controllers(const ManagerOptions& options, obs::Health& health);

  /// Runs them until cancelled, with one registry of hubs: what the leader does. Everything that the next leader needs
  /// is in the API then.
  async::Awaitable<> run(ControllerSurroundings around);

 private:
  struct Selected {
    const ControllerEntry& entry;
    std::unique_ptr<obs::CheckState> readiness;
  };
  std::vector<Selected> selected_;
};

/// The phases of those controllers and all their transitions, as `format` ("mermaid" or "dot").
std::string render_phases(const ManagerOptions& options, const std::string& format);

}  // namespace hubferry::app
