#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/hubs/hubs.hpp"

namespace hubferry::migration::test {

using async::Awaitable;
using async::Duration;
using hubagent::ClusterNames;
using hubagent::MigrationRef;
using hubagent::Outcome;
using namespace std::chrono_literals;

/// A cluster as one hub has it.
struct FakeCluster {
  bool accepted = true;
  bool available = true;
  std::string migrating;             // uid of the migration that has it in hand
  std::string created_by;            // uid of the migration that brought it here; empty: it was here before
  std::string reached;               // by which bootstrap identity's user it came
  async::WallTime seen{};            // its last sign of life
  async::WallTime accepted_again{};  // by a rollback; zero: it was not
  bool was_detached = false;         // by a migration
  bool being_deleted = false;
  bool deletion_begun = false;
  bool lacks_works = false;  // its agent has not applied all of its ManifestWorks
  bool marked = false;       // carries the marks of a move
  int content = 0;           // what must be the same on both hubs
  bool stubborn = false;     // keeps its content whatever is sent

  static constexpr int deleted_content = -1;  // an object that was copied is missing
};

struct FakeHub {
  std::string name;
  bool exists = true;
  bool available = true;
  bool is_hub = true;
  bool reachable = true;
  std::string url = "https://hub.example:6443";
  std::map<std::string, FakeCluster> clusters;
  std::map<std::string, ClusterNames> placements;
  std::map<std::string, std::string> kubeconfigs;       // by migration: on a source
  std::map<std::string, std::set<std::string>> rights;  // by migration: users that may register, on a target
  std::set<std::string> accounts;                       // users with a token, on a target
};

/// How operations fail: by operation ("source.detach"), or by operation and cluster ("source.detach c1").
struct FakeFault {
  std::optional<kube::Error> error = {};
  bool hang = false;
  int times = 1'000'000;
  Duration delay{0};                                                // before it fails, or else succeeds
  hubagent::FailureReason reason = hubagent::FailureReason::error;  // of a cluster
};

/// Two or more hubs and their clusters in memory, with agents that do what real ones do. Clusters move as klusterlets
/// do: detached by the source, they register on the target with the bootstrap kubeconfig of the source, and are
/// Available after a while; they return when they are accepted again and the target no longer accepts them.
/// On virtual time. fleet() must run beside the operations.
class FakeHubs final : public hubs::Hubs {
 public:
  explicit FakeHubs(async::Clock& clock);
  ~FakeHubs() override;

  FakeHub& add(const std::string& name);
  FakeHub& hub(const std::string& name) { return *hubs_.at(name); }
  void add_cluster(const std::string& hub, const std::string& cluster);

  /// The clusters' agents, until cancelled.
  Awaitable<> fleet();

  Awaitable<hubs::HubInfo> find(std::string hub) override;
  Awaitable<std::vector<std::string>> names() override;
  hubagent::Result<std::shared_ptr<hubs::Connection>> connection(const std::string& hub) override;

  /// Of every hub.
  static constexpr const char* authority = "-----BEGIN CERTIFICATE-----\nTUE=\n-----END CERTIFICATE-----\n";

  static kube::Error unreachable(const std::string& hub);
  static kube::Error forbidden();

  async::Clock& clock;
  std::map<std::string, FakeFault> faults;
  Duration travel_time = 20s;                    // from being let go to being Available elsewhere
  Duration proof_time{0};                        // from there until it is known that it would come back after a restart
  std::map<std::string, Duration> travel_times;  // of single clusters; never arrives: 1000h
  Duration return_time = 5s;                     // from being accepted again to the next heartbeat
  Duration emptying_time{0};                     // how long a source's namespaces outlive their clusters
  bool namespaces_hang = false;                  // those of deleted clusters are not deleted
  std::set<std::string> stranded;                // their agents reach no hub
  int unreadable_authorities = 0;                // so often the CA of a hub cannot be read
  std::vector<std::string> orders;               // "hub1 source.detach", in the order of their arrival
  /// Called with the number of each operation's start and end: for tests that crash there.
  std::function<void()> on_order;

  [[nodiscard]] std::size_t count(const std::string& order) const;

 private:
  friend class FakeSource;
  friend class FakeTarget;
  struct Agents;

  /// Records the operation, takes a moment, and fails or hangs if a fault says so.
  Awaitable<hubagent::Result<>> begin(FakeHub& hub, std::string order);
  /// The injected failure of that cluster, if any.
  std::optional<hubagent::ClusterFailure> cluster_fault(const std::string& order, const std::string& cluster);
  Awaitable<hubagent::Result<>> await_renewals(FakeHub& hub, std::string order, ClusterNames clusters,
                                               std::function<void(const std::string&)> on_renewal);
  Awaitable<> follow(FakeHub& from, std::string cluster);
  Awaitable<> until_accepted(FakeHub& hub, std::string cluster);
  /// A cluster that never left renews its lease.
  void renew_if_present(FakeHub& hub, const std::string& cluster);
  void changed();

  std::map<std::string, std::unique_ptr<FakeHub>> hubs_;
  std::map<std::string, std::shared_ptr<hubs::Connection>> connections_;
  async::WaitList changes_;
  async::TaskScope* fleet_scope_ = nullptr;
  std::set<std::string> travelling_;
};

}  // namespace hubferry::migration::test
