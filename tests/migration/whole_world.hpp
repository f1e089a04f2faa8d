#pragma once

#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>

#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "hubferry/sim/machine_clock.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "snapshot.hpp"

/// A manager with nothing replaced, on simulated hubs with real klusterlets, on virtual time.
namespace hubferry::migration::test {

namespace json = boost::json;
using async::Awaitable;
using hubagent::ClusterNames;
using namespace std::chrono_literals;

/// Of the manager to one hub.
struct Line {
  bool severed = false;                                // no answer comes back
  std::size_t requests = 0;                            // sent
  std::map<std::string, std::size_t> by_request = {};  // "patch managedclusters"
};

class SeverableApi final : public kube::Api {
 public:
  SeverableApi(std::shared_ptr<kube::Api> inner, Line& line) : inner_(std::move(inner)), line_(line) {}

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    static constexpr const char* verbs[] = {"get", "create", "update", "patch", "apply", "delete"};
    if (!sends(verbs[static_cast<std::size_t>(request.verb)], request.resource))
      co_return lost(kube::ErrorKind::unreachable);
    const bool writes = request.verb != kube::Verb::get;
    auto answer = co_await inner_->call(std::move(request));
    if (line_.severed) co_return lost(writes ? kube::ErrorKind::ambiguous : kube::ErrorKind::unreachable);
    co_return answer;
  }
  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                               const kube::Decoder& decoder) override {
    if (!sends("list", resource)) co_return lost(kube::ErrorKind::unreachable);
    co_return co_await inner_->list(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource, kube::WatchOptions options,
                                                                    const kube::Decoder& decoder) override {
    if (!sends("watch", resource)) co_return lost(kube::ErrorKind::unreachable);
    auto stream = co_await inner_->watch(std::move(resource), std::move(options), decoder);
    if (!stream) co_return stream.error();
    co_return std::make_unique<Stream>(std::move(*stream), line_);
  }
  Awaitable<kube::Result<json::value>> get_path(std::string path) override {
    if (!sends("get path", {})) co_return lost(kube::ErrorKind::unreachable);
    co_return co_await inner_->get_path(std::move(path));
  }
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

 private:
  class Stream final : public kube::WatchStream {
   public:
    Stream(std::unique_ptr<kube::WatchStream> inner, const Line& line) : inner_(std::move(inner)), line_(line) {}
    Awaitable<kube::Result<std::vector<kube::WatchEvent>>> next() override {
      auto events = co_await inner_->next();
      if (line_.severed) co_return lost(kube::ErrorKind::unreachable);
      co_return events;
    }

   private:
    std::unique_ptr<kube::WatchStream> inner_;
    const Line& line_;
  };

  bool sends(std::string verb, const kube::Resource& resource) {
    ++line_.requests;
    ++line_.by_request[std::move(verb) + " " + resource.plural];
    return !line_.severed;
  }

  static kube::Error lost(kube::ErrorKind kind) { return {kind, 0, {}, "the connection is severed", std::nullopt}; }

  std::shared_ptr<kube::Api> inner_;
  Line& line_;
};

inline sim::WorldOptions options_of(std::size_t clusters, std::uint64_t seed, bool accounts,
                                    sim::ImportController import_controller) {
  sim::WorldOptions options;
  options.clusters = clusters;
  options.seed = seed;
  options.managed_service_accounts = accounts;
  options.import_controller = import_controller;
  // hubferry's own agents: they leave a target that does not register them, and no person is needed for that.
  options.upstream_agents = false;
  // Between any two requests there is a moment at which something can happen.
  options.server.latency = sim::Latency::uniform(1ms, 15ms);
  return options;
}

class WholeWorld {
 public:
  explicit WholeWorld(std::size_t clusters, std::uint64_t seed = 1, bool accounts = true,
                      sim::ImportController import_controller = sim::ImportController::mce_2_17)
      : WholeWorld(options_of(clusters, seed, accounts, import_controller)) {}
  explicit WholeWorld(sim::WorldOptions options) : world(std::move(options)) {
    world.run(world.world().wait_settled());
  }
  ~WholeWorld() { stop_manager(); }

  /// The parts of the manager. May be stopped at any point, and started again.
  void start_manager() { manager_ = std::make_unique<Manager>(*this); }
  void stop_manager() {
    if (!manager_) return;
    world.run(manager_->end());
    manager_.reset();
  }

  void migrate(const std::string& name, const ClusterNames& clusters, const std::string& from = "hub1",
               const std::string& to = "hub2") {
    json::object spec{
        {"from", from}, {"to", to}, {"includedManagedClusters", json::array(clusters.begin(), clusters.end())}};
    json::object object{{"metadata", json::object{{"name", name}, {"namespace", "default"}}},
                        {"spec", std::move(spec)}};
    auto created = world.run(world.api("global").create(managed_cluster_migrations, std::move(object)));
    EXPECT_TRUE(created) << created.error();
  }
  std::string phase(const std::string& name) {
    const auto object = world.global().object(managed_cluster_migrations, {"default", name});
    return object ? std::string{object->string_at({"status", "phase"})} : "gone";
  }
  std::string describe(const std::string& name) {
    const auto object = world.global().object(managed_cluster_migrations, {"default", name});
    return object ? json::serialize(*object->find({"status"})) : "gone";
  }
  /// Until all of them have ended.
  void run_until_ended(const std::vector<std::string>& names, async::Duration limit = 2h) {
    const auto end = world.clock().now() + limit;
    const auto ended = [&](const std::string& name) {
      return phase(name) == "Completed" || phase(name) == "Failed" || phase(name) == "gone";
    };
    while (!std::ranges::all_of(names, ended) && world.clock().now() < end) world.run_for(1s);
  }
  /// Until `holds()`; false if it does not within `limit`.
  bool run_until(const std::function<bool()>& holds, async::Duration limit = 2h, async::Duration pause = 10ms) {
    const auto end = world.clock().now() + limit;
    while (!holds() && world.clock().now() < end) world.run_for(pause);
    return holds();
  }
  bool is_available(const std::string& hub, const std::string& cluster) {
    const auto object = world.server(hub).object(ocm::managed_clusters, {"", cluster});
    return object && kube::is_condition_true(*object, ocm::names::available);
  }
  bool is_accepted(const std::string& hub, const std::string& cluster) {
    const auto object = world.server(hub).object(ocm::managed_clusters, {"", cluster});
    const auto* accepts = object ? object->find({"spec", "hubAcceptsClient"}) : nullptr;
    return accepts != nullptr && *accepts == true;
  }
  bool exists(const std::string& hub, const std::string& cluster) {
    return world.server(hub).object(ocm::managed_clusters, {"", cluster}).has_value();
  }
  /// As a new pod: with what the cluster has stored, and nothing else.
  void restart_agent(const std::string& cluster) {
    auto& agents = world.world().agents();
    const auto* store = agents.store_of(cluster);
    sim::FleetMember again{cluster, store->bootstraps(), store->secret()};
    EXPECT_TRUE(agents.remove(cluster));
    world.run_for(1s);
    agents.add(std::move(again));
  }
  std::string renewal(const std::string& hub, const std::string& cluster) {
    const auto lease = world.server(hub).object(kube::resources::leases, ocm::lease_key(cluster));
    return lease ? std::string{lease->string_at({"spec", "renewTime"})} : "";
  }
  Snapshot snapshot(const std::string& server) { return world.run(take_snapshot(world.api(server))); }

  sim::VirtualWorld world;
  sim::MachineClock clock{world.clock()};  // of the manager's machine
  std::map<std::string, Line> lines;       // to each hub, of the manager; agents have their own
  /// What else is between the manager and a server, also "global". Empty: nothing.
  std::function<std::shared_ptr<kube::Api>(const std::string& hub, std::shared_ptr<kube::Api>)> wire = {};

 private:
  struct Manager {
    explicit Manager(WholeWorld& whole)
        : global(whole.world.network().connect(whole.world.world().admin_config("global"))),
          api(whole.wire ? whole.wire("global", global) : global),
          hubs(
              *api,
              [&whole](const std::string& hub, const kube::ClientConfig& config) {
                auto api = whole.world.network().connect(config);
                if (whole.wire) api = whole.wire(hub, std::move(api));
                return std::make_shared<SeverableApi>(std::move(api), whole.lines[hub]);
              },
              {}, env_of(whole)),
          controller(*api, hubs, {}, env_of(whole)),
          scope(whole.world.loop().executor()) {
      scope.spawn(hubs.run());
      scope.spawn(controller.run());
    }
    static kube::Env env_of(WholeWorld& whole) {
      const auto env = whole.world.env();
      return {whole.clock, env.random, env.metrics, env.log};
    }
    Awaitable<> end() {
      scope.stop();
      co_await scope.join();
    }

    std::shared_ptr<kube::Api> global;
    std::shared_ptr<kube::Api> api;
    hubs::HubDirectory hubs;
    Controller controller;
    async::TaskScope scope;
  };

  std::unique_ptr<Manager> manager_;
};

/// Secrets and ConfigMaps are copied if they are labelled, known by name, or referenced; the others stay, and are
/// deleted with the cluster's namespace.
inline bool stays_behind(const std::string& key, const std::string& value) {
  if (!key.starts_with("secrets ") && !key.starts_with("configmaps ")) return false;
  if (value.find("siteconfig.open-cluster-management.io/") != std::string::npos) return false;
  for (const auto* part :
       {"-admin-password", "-admin-kubeconfig", "-metadata-json", "-seed-reconfiguration", "bmc", "pull", "manifest"})
    if (key.find(part) != std::string::npos) return false;
  return true;
}

/// What must be left: the moved clusters' objects on the target and not on the source, the migrations with their
/// ledgers, and nothing else. `part` is the part of the source that is compared now.
inline void expect_clean_move(
    WholeWorld& whole, const std::map<std::string, Snapshot>& before, const std::vector<std::string>& moved,
    const std::vector<std::string>& migrations,
    const std::function<Snapshot(const Snapshot&)>& part = [](const Snapshot& all) { return all; }) {
  auto source = before.at("hub1");
  Snapshot travelled;
  for (auto entry = source.begin(); entry != source.end();) {
    const bool moves = std::ranges::any_of(moved, [&](const auto& name) { return belongs_to(entry->first, name); });
    if (moves) travelled.insert(*entry);
    entry = moves ? source.erase(entry) : std::next(entry);
  }
  EXPECT_EQ(differences(source, part(whole.snapshot("hub1"))), "");

  const auto after = part(whole.snapshot("hub2"));
  Snapshot rest;
  Snapshot arrived;
  for (const auto& [key, value] : after) {
    const bool moves = std::ranges::any_of(moved, [&](const auto& name) { return belongs_to(key, name); });
    (moves ? arrived : rest).emplace(key, value);
  }
  EXPECT_EQ(differences(before.at("hub2"), rest), "");
  for (const auto& [key, value] : travelled)
    EXPECT_TRUE(arrived.contains(key) || stays_behind(key, value)) << "did not arrive: " << key;
  for (const auto& [key, value] : arrived) EXPECT_TRUE(travelled.contains(key)) << "was not there before: " << key;

  std::vector<std::string> ours;
  for (const auto& name : migrations) ours.push_back("default/" + name);
  EXPECT_EQ(differences(before.at("global"), without(whole.snapshot("global"), ours)), "");
}

}  // namespace hubferry::migration::test
