// The behaviours on simulated hubs, in virtual time.
#include "hubferry/sim/fleet_agents.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "ocm/behaviour.hpp"

namespace hubferry::behaviour {

namespace {

sim::WorldOptions options_with(sim::ImportController import_controller) {
  sim::WorldOptions options;
  options.clusters = 1;
  options.import_controller = import_controller;
  options.auto_approval = false;
  options.cluster_servers = true;
  options.eviction_grace = 1min;
  return options;
}

/// Destroys the worlds before main() ends.
class KeptWorlds final : public testing::Environment {
 public:
  static void keep(std::shared_ptr<OcmWorld> world) { kept().push_back(std::move(world)); }
  void TearDown() override { kept().clear(); }

 private:
  static std::vector<std::shared_ptr<OcmWorld>>& kept() {
    static std::vector<std::shared_ptr<OcmWorld>> worlds;
    return worlds;
  }
};

const auto* const kept_worlds = testing::AddGlobalTestEnvironment(new KeptWorlds);

class SimWorld final : public OcmWorld {
 public:
  SimWorld(ImportController kind, sim::ImportController import_controller)
      : kind_(kind), world_(options_with(import_controller)), cluster_(world_.world().clusters().front()) {
    // Until its agent has reported, and the hub has seen it.
    world_.run_for(5s);
  }

  Api& hub1() override { return world_.api("hub1"); }
  Api& hub2() override { return world_.api("hub2"); }
  [[nodiscard]] const std::string& cluster() const override { return cluster_; }
  Api& cluster_api() override { return world_.api(cluster_); }
  ClientConfig address_of(Api& hub) override {
    return world_.network().address_of(world_.server(std::string{hub.name()}));
  }
  std::shared_ptr<Api> connect(ClientConfig config) override { return world_.network().connect(config); }
  Awaitable<> restart_agent() override {
    world_.world().agents().restart(cluster_);
    co_return;
  }
  [[nodiscard]] ImportController import_controller() const override { return kind_; }
  [[nodiscard]] Duration eviction_grace() const override { return 1min; }
  [[nodiscard]] bool differs(Difference) const override { return true; }
  Env env() override { return world_.env(); }
  void run(Awaitable<> task) override { world_.run(std::move(task)); }

 private:
  ImportController kind_;
  sim::VirtualWorld world_;
  std::string cluster_;
};

/// One for all tests, as a real one would be: building it takes longer than any test.
template <ImportController kind, sim::ImportController simulated>
std::shared_ptr<OcmWorld> make_sim() {
  static std::weak_ptr<OcmWorld> built;
  auto world = built.lock();
  if (world == nullptr) {
    world = std::make_shared<SimWorld>(kind, simulated);
    built = world;
    KeptWorlds::keep(world);
  }
  return world;
}

const Backend mce_2_17{"Mce217", make_sim<ImportController::mce_2_17, sim::ImportController::mce_2_17>};
const Backend mce_5_x{"Mce5x", make_sim<ImportController::mce_5_x, sim::ImportController::mce_5_x>};
const Backend plain{"PlainOcm", make_sim<ImportController::none, sim::ImportController::none>};

const std::vector<Backend> all{mce_2_17, mce_5_x, plain};
const std::vector<Backend> with_import{mce_2_17, mce_5_x};

}  // namespace

INSTANTIATE_OCM(OcmBehaviour, all);
INSTANTIATE_OCM(ImportBehaviour, with_import);
INSTANTIATE_OCM(AgentBehaviour, with_import);

}  // namespace hubferry::behaviour
