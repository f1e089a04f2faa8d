#pragma once

#include <chrono>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "migration/snapshot.hpp"
#include "sim/sim_process.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {

using namespace std::chrono_literals;
using migration::test::belongs_to;
using migration::test::differences;
using migration::test::Snapshot;
using migration::test::without;

/// `hubferry manager` against a world of `hubferry sim`.
class ManagerOfWorld {
 public:
  explicit ManagerOfWorld(const SimProcess& sim, const std::vector<std::string>& more_flags = {})
      : process_(command(sim, more_flags)) {}

  static std::vector<std::string> command(const SimProcess& sim, const std::vector<std::string>& more_flags) {
    std::vector<std::string> words{hubferry_binary(),
                                   "manager",
                                   "--kubeconfig=" + sim.kubeconfig("global"),
                                   "--metrics-bind-address=127.0.0.1:0",
                                   "--health-probe-bind-address=127.0.0.1:0",
                                   "--log-format=json"};
    words.insert(words.end(), more_flags.begin(), more_flags.end());
    return words;
  }
  Process& process() { return process_; }
  void kill() {
    process_.signal(SIGKILL);
    process_.wait();
  }

 private:
  Process process_;
};

/// What a test reads from the world's servers: through clients of its own, over HTTPS.
class Onlooker {
 public:
  explicit Onlooker(const SimProcess& sim) : sim_(sim) {}

  Snapshot snapshot(const std::string& server) { return loop_.run(migration::test::take_snapshot(api(server))); }

  /// The clusters of a hub that are Available there, or all of them.
  std::set<std::string> clusters(const std::string& hub, bool available_only) {
    kube::ListOptions all;
    auto listed = loop_.run(api(hub).list_all(ocm::managed_clusters, all));
    std::set<std::string> names;
    for (const auto& cluster : listed.value())
      if (!available_only || kube::is_condition_true(cluster, ocm::names::available)) names.emplace(cluster.name());
    return names;
  }
  std::map<std::string, std::string> phases() {
    kube::ListOptions all;
    auto listed = loop_.run(api("global").list_all(migration::managed_cluster_migrations, all));
    std::map<std::string, std::string> phases;
    for (const auto& object : listed.value())
      phases[std::string{object.name()}] = object.string_at({"status", "phase"});
    return phases;
  }
  bool all_ended() {
    for (const auto& [name, phase] : phases())
      if (phase != "Completed" && phase != "Failed") return false;
    return true;
  }
  /// Waits until that holds; false after far too long.
  template <typename Condition>
  bool eventually(Condition condition, std::chrono::seconds limit = 300s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(200ms);
    }
    return true;
  }

 private:
  kube::Api& api(const std::string& server) {
    auto& made = apis_[server];
    if (!made) {
      kube::HttpApiOptions options;
      made = kube::make_http_api(kube::load_kubeconfig(sim_.kubeconfig(server)), options, loop_.executor(), env_);
    }
    return *made;
  }

  const SimProcess& sim_;
  async::RealClock clock_;
  async::Random random_{1};
  obs::Metrics metrics_;
  kube::Env env_{clock_, random_, metrics_, obs::Logger{}};
  RealLoop loop_;
  std::map<std::string, std::unique_ptr<kube::Api>> apis_;
};

/// A manifest as users write it.
inline std::string migration_manifest(const std::string& name, int first, int count, const std::string& from = "hub1",
                                      const std::string& to = "hub2") {
  std::string text =
      "---\napiVersion: global-hub.open-cluster-management.io/v1alpha1\nkind: ManagedClusterMigration\n"
      "metadata: {name: " +
      name + ", namespace: default}\nspec:\n  from: " + from + "\n  to: " + to + "\n  includedManagedClusters:\n";
  for (int index = first; index < first + count; ++index) {
    auto number = std::to_string(100000 + index);
    text += "  - cluster-" + number.substr(1) + "\n";
  }
  return text;
}

/// Everything is where it should be, and nothing else is left. `moved` are numbers 1 to that many.
inline void expect_clean_world(Onlooker& onlooker, const std::map<std::string, Snapshot>& before, int moved,
                               const std::vector<std::string>& migrations) {
  const auto is_moved = [&](const std::string& key) {
    for (int index = 1; index <= moved; ++index)
      if (belongs_to(key, "cluster-" + std::to_string(100000 + index).substr(1))) return true;
    return false;
  };
  const auto stays = [&](Snapshot snapshot) {
    std::erase_if(snapshot, [&](const auto& entry) { return is_moved(entry.first); });
    return snapshot;
  };
  EXPECT_EQ(differences(stays(before.at("hub1")), onlooker.snapshot("hub1")), "");
  EXPECT_EQ(differences(before.at("hub2"), stays(onlooker.snapshot("hub2"))), "");
  std::vector<std::string> ours;
  for (const auto& name : migrations) ours.push_back("default/" + name);
  EXPECT_EQ(differences(before.at("global"), without(onlooker.snapshot("global"), ours)), "");
}

inline std::map<std::string, Snapshot> snapshots(Onlooker& onlooker) {
  std::map<std::string, Snapshot> all;
  for (const auto* server : {"global", "hub1", "hub2"}) all[server] = onlooker.snapshot(server);
  return all;
}

/// The flag that makes a simulator do so.
inline std::string write_faults(const TemporaryDirectory& folder, const std::string& rules) {
  const auto path = folder.file("faults.yaml");
  std::ofstream{path} << rules;
  return "--faults=" + path;
}

}  // namespace hubferry::test
