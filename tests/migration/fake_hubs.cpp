#include "fake_hubs.hpp"

#include "hubferry/kube/config.hpp"

namespace hubferry::migration::test {

using hubagent::BootstrapIdentity;
using hubagent::Bundle;
using hubagent::ClusterFailure;
using hubagent::Stage;

namespace {

// Long enough that a test sees each phase, short beside every timeout.
constexpr auto moment = 200ms;
constexpr std::size_t clusters_in_bundle = 100;

/// What a bootstrap kubeconfig says: the token is "token-for-<user>".
std::string user_in(const std::string& kubeconfig) {
  const auto config = kube::parse_kubeconfig(kubeconfig, "bootstrap", std::nullopt);
  return config.token.substr(std::string{"token-for-"}.size());
}

}  // namespace

FakeHubs::FakeHubs(async::Clock& given) : clock(given) {}
FakeHubs::~FakeHubs() = default;

kube::Error FakeHubs::unreachable(const std::string& hub) {
  return {kube::ErrorKind::unreachable, 0, "", "hub " + hub + " does not answer", std::nullopt};
}

kube::Error FakeHubs::forbidden() {
  return {kube::ErrorKind::forbidden, 403, "Forbidden", "the manager may not do that", std::nullopt};
}

void FakeHubs::add_cluster(const std::string& hub_name, const std::string& cluster) {
  auto& entry = hub(hub_name).clusters[cluster];
  entry.content = static_cast<int>(std::hash<std::string>{}(cluster) % 1000);
}

std::size_t FakeHubs::count(const std::string& order) const {
  return static_cast<std::size_t>(std::ranges::count(orders, order));
}

void FakeHubs::changed() {
  changes_.wake_all();
}

Awaitable<kube::Result<>> FakeHubs::begin(FakeHub& hub, std::string order) {
  orders.push_back(hub.name + " " + order);
  if (on_order) on_order();
  co_await clock.sleep_for(moment);
  if (!hub.reachable) co_return unreachable(hub.name);
  const auto found = faults.find(order);
  if (found == faults.end() || found->second.times <= 0) co_return kube::Result<>{};
  --found->second.times;
  if (found->second.hang) co_await clock.sleep_until(async::never);
  co_return *found->second.error;
}

std::optional<ClusterFailure> FakeHubs::cluster_fault(const std::string& order, const std::string& cluster) {
  const auto found = faults.find(order + " " + cluster);
  if (found == faults.end() || found->second.times <= 0) return std::nullopt;
  --found->second.times;
  return ClusterFailure{cluster, "Error", found->second.error->message};
}

/// One cluster's agent: from the moment when its hub lets it go until it is somewhere.
Awaitable<> FakeHubs::follow(FakeHub& from, std::string name) {
  for (;;) {
    const auto own = travel_times.find(name);
    co_await clock.sleep_for(own == travel_times.end() ? travel_time : own->second);
    if (!from.clusters.contains(name)) break;
    auto& home = from.clusters[name];
    if (home.accepted) {
      home.available = true;
      home.seen = clock.wall_now();
      break;
    }
    home.available = false;
    const auto kubeconfig = from.kubeconfigs.find(home.migrating);
    if (kubeconfig == from.kubeconfigs.end()) continue;
    const auto user = user_in(kubeconfig->second);
    bool arrived = false;
    for (auto& [id, other] : hubs_) {
      if (&*other == &from || !other->reachable || !other->clusters.contains(name)) continue;
      const auto rights = other->rights.find(home.migrating);
      if (rights == other->rights.end() || !rights->second.contains(user)) continue;
      auto& there = other->clusters[name];
      there.available = there.accepted = true;
      there.reached = user;
      there.seen = clock.wall_now();
      arrived = true;
    }
    changed();
    if (!arrived) continue;
    // It stays there until that hub does not have it any more.
    const auto elsewhere = [&] {
      for (auto& [id, other] : hubs_)
        if (&*other != &from && other->clusters.contains(name)) return true;
      return false;
    };
    while (elsewhere() && from.clusters.contains(name)) co_await changes_.wait();
  }
  travelling_.erase(name);
  changed();
}

Awaitable<> FakeHubs::fleet() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    for (;;) {
      for (auto& [id, hub] : hubs_)
        for (auto& [name, cluster] : hub->clusters)
          if ((!cluster.accepted || !cluster.available) && cluster.created_by.empty() &&
              travelling_.insert(name).second)
            scope.spawn(follow(*hub, name));
      co_await changes_.wait();
    }
  };
  travelling_.clear();
  co_await async::with_scope(body);
}

Awaitable<hubs::HubInfo> FakeHubs::find(std::string name) {
  co_await clock.sleep_for(moment);
  hubs::HubInfo info;
  info.name = name;
  const auto found = hubs_.find(name);
  if (found == hubs_.end()) co_return info;
  const auto& hub = *found->second;
  info.exists = hub.exists;
  info.available = hub.available;
  info.is_hub = hub.is_hub;
  info.server_url = hub.url;
  co_return info;
}

class FakeSource final : public hubagent::SourceHub {
 public:
  FakeSource(FakeHubs& world, FakeHub& hub) : world_(world), hub_(hub) {}

  Awaitable<kube::Result<ClusterNames>> resolve_placement(std::string placement) override {
    auto begun = co_await world_.begin(hub_, "source.resolve_placement");
    if (!begun) co_return begun.error();
    const auto found = hub_.placements.find(placement);
    if (found == hub_.placements.end())
      co_return kube::Error{kube::ErrorKind::not_found, 404, "NotFound", "there is no placement " + placement, {}};
    co_return found->second;
  }

  Awaitable<kube::Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override {
    return each("source.validate", clusters, [this, migration](const std::string& name) -> std::string {
      const auto found = hub_.clusters.find(name);
      if (found == hub_.clusters.end()) return "ClusterNotFound";
      const auto& cluster = found->second;
      if (!cluster.migrating.empty() && cluster.migrating != migration.uid) return "ClusterConflict";
      const bool let_go = cluster.migrating == migration.uid && !cluster.accepted;
      return cluster.available || let_go ? "" : "ClusterNotAvailable";
    });
  }

  Awaitable<kube::Result<Outcome>> initialize(MigrationRef migration, ClusterNames clusters,
                                              obs::Secret kubeconfig) override {
    return each("source.initialize", clusters, [this, migration, kubeconfig](const std::string& name) -> std::string {
      hub_.kubeconfigs[migration.uid] = kubeconfig.reveal();
      if (!hub_.clusters.contains(name)) return "ClusterNotFound";
      hub_.clusters[name].migrating = migration.uid;
      hub_.clusters[name].marked = true;
      return "";
    });
  }

  Awaitable<kube::Result<Outcome>> collect(MigrationRef, ClusterNames clusters, hubagent::BundleSink sink) override {
    auto begun = co_await world_.begin(hub_, "source.collect");
    if (!begun) co_return begun.error();
    Outcome outcome;
    Bundle bundle;
    for (const auto& name : clusters) {
      if (auto failure = world_.cluster_fault("source.collect", name)) {
        outcome.failed.push_back(*failure);
        continue;
      }
      if (!hub_.clusters.contains(name)) {
        outcome.failed.push_back({name, "ClusterNotFound", "cluster " + name + " does not exist"});
        continue;
      }
      hubagent::CarriedObject object{{{"content", hub_.clusters[name].content}}, false};
      bundle.clusters.push_back({name, {std::move(object)}});
      outcome.done.push_back(name);
      if (bundle.clusters.size() == clusters_in_bundle) co_await sink(std::exchange(bundle, {}));
    }
    if (!bundle.clusters.empty()) co_await sink(std::move(bundle));
    co_return outcome;
  }

  Awaitable<kube::Result<Outcome>> detach(MigrationRef migration, ClusterNames clusters) override {
    return each("source.detach", clusters, [this, migration](const std::string& name) -> std::string {
      const auto found = hub_.clusters.find(name);
      if (found == hub_.clusters.end() || found->second.migrating != migration.uid) return "ClusterNotFound";
      found->second.accepted = false;
      return "";
    });
  }

  Awaitable<kube::Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters) override {
    return each("source.clean", clusters, [this, migration](const std::string& name) -> std::string {
      const auto found = hub_.clusters.find(name);
      if (found == hub_.clusters.end()) return "";
      if (found->second.migrating != migration.uid) return "ClusterConflict";
      hub_.clusters.erase(found);
      return "";
    });
  }

  Awaitable<kube::Result<Outcome>> roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) override {
    auto outcome = co_await each("source.roll_back", clusters, [&](const std::string& name) -> std::string {
      const auto found = hub_.clusters.find(name);
      if (found == hub_.clusters.end()) return stage == Stage::registering ? "ClusterNotFound" : "";
      auto& cluster = found->second;
      if (cluster.migrating != migration.uid) return "";
      cluster.migrating.clear();
      cluster.marked = false;
      if (stage == Stage::registering) cluster.accepted = true;
      return "";
    });
    if (!outcome || stage != Stage::registering) co_return outcome;
    const auto waits = [&] {
      for (const auto& name : outcome->done)
        if (hub_.clusters.contains(name) && !hub_.clusters[name].available) return true;
      return false;
    };
    while (waits()) co_await world_.changes_.wait();
    co_return outcome;
  }

  Awaitable<kube::Result<>> delete_migration_objects(MigrationRef migration) override {
    auto begun = co_await world_.begin(hub_, "source.delete_migration_objects");
    if (begun) hub_.kubeconfigs.erase(migration.uid);
    if (world_.on_order) world_.on_order();
    co_return begun;
  }

 private:
  /// Treats each; `treat` gives an empty text, or the reason of a failure.
  Awaitable<kube::Result<Outcome>> each(std::string order, ClusterNames clusters,
                                        std::function<std::string(const std::string&)> treat) {
    auto begun = co_await world_.begin(hub_, order);
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) {
      auto failure = world_.cluster_fault(order, name);
      const auto reason = failure ? std::string{} : treat(name);
      if (!reason.empty()) failure = {name, reason, "cluster " + name + " on " + hub_.name + ": " + reason};
      if (failure) {
        outcome.failed.push_back(*failure);
      } else {
        outcome.done.push_back(name);
      }
    }
    world_.changed();
    if (world_.on_order) world_.on_order();
    co_return outcome;
  }

  FakeHubs& world_;
  FakeHub& hub_;
};

class FakeTarget final : public hubagent::TargetHub {
 public:
  FakeTarget(FakeHubs& world, FakeHub& hub) : world_(world), hub_(hub) {}

  Awaitable<kube::Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override {
    auto begun = co_await world_.begin(hub_, "target.validate");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) {
      if (hub_.clusters.contains(name) && hub_.clusters[name].created_by != migration.uid) {
        outcome.failed.push_back({name, "ClusterConflict", "cluster " + name + " is on " + hub_.name + " already"});
      } else {
        outcome.done.push_back(name);
      }
    }
    co_return outcome;
  }

  Awaitable<kube::Result<obs::Secret>> issue_token(MigrationRef, BootstrapIdentity identity) override {
    auto begun = co_await world_.begin(hub_, "target.issue_token");
    if (!begun) co_return begun.error();
    hub_.accounts.insert(identity.user());
    co_return obs::Secret{"token-for-" + identity.user()};
  }

  Awaitable<kube::Result<>> initialize(MigrationRef migration, BootstrapIdentity identity) override {
    auto begun = co_await world_.begin(hub_, "target.initialize");
    if (begun) hub_.rights[migration.uid].insert(identity.user());
    if (world_.on_order) world_.on_order();
    co_return begun;
  }

  Awaitable<kube::Result<Outcome>> deploy(MigrationRef migration, Bundle bundle) override {
    auto begun = co_await world_.begin(hub_, "target.deploy");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& cluster : bundle.clusters) {
      const auto found = hub_.clusters.find(cluster.cluster);
      auto failure = world_.cluster_fault("target.deploy", cluster.cluster);
      if (!failure && found != hub_.clusters.end() && found->second.created_by != migration.uid)
        failure = {cluster.cluster, "ClusterConflict", "it is there already"};
      if (failure) {
        outcome.failed.push_back(*failure);
        continue;
      }
      if (found == hub_.clusters.end()) {
        FakeCluster made;
        made.available = false;
        made.created_by = migration.uid;
        made.marked = true;
        made.content = static_cast<int>(cluster.objects.at(0).object.at("content").as_int64());
        hub_.clusters.emplace(cluster.cluster, made);
      } else if (!found->second.stubborn) {
        found->second.content = static_cast<int>(cluster.objects.at(0).object.at("content").as_int64());
      }
      outcome.done.push_back(cluster.cluster);
    }
    world_.changed();
    if (world_.on_order) world_.on_order();
    co_return outcome;
  }

  Awaitable<kube::Result<>> await_arrivals(MigrationRef migration, ClusterNames clusters, async::WallTime since,
                                           OnArrival on_arrival) override {
    auto begun = co_await world_.begin(hub_, "target.await_arrivals");
    if (!begun) co_return begun.error();
    std::set<std::string> missing{clusters.begin(), clusters.end()};
    for (;;) {
      if (!hub_.reachable) co_return FakeHubs::unreachable(hub_.name);
      std::erase_if(missing, [&](const std::string& name) {
        if (!is_here(migration, name, since)) return false;
        on_arrival(name);
        return true;
      });
      if (missing.empty()) co_return kube::Result<>{};
      co_await world_.changes_.wait();
    }
  }

  Awaitable<kube::Result<ClusterNames>> arrived(MigrationRef migration, ClusterNames clusters,
                                                async::WallTime since) override {
    auto begun = co_await world_.begin(hub_, "target.arrived");
    if (!begun) co_return begun.error();
    ClusterNames here;
    for (const auto& name : clusters)
      if (is_here(migration, name, since)) here.push_back(name);
    co_return here;
  }

  Awaitable<kube::Result<Outcome>> verify(MigrationRef, Bundle bundle) override {
    auto begun = co_await world_.begin(hub_, "target.verify");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& cluster : bundle.clusters) {
      const auto found = hub_.clusters.find(cluster.cluster);
      const bool same =
          found != hub_.clusters.end() && cluster.objects.at(0).object.at("content") == found->second.content;
      if (same) {
        outcome.done.push_back(cluster.cluster);
      } else {
        outcome.failed.push_back({cluster.cluster, "Error", "its content differs"});
      }
    }
    co_return outcome;
  }

  Awaitable<kube::Result<Outcome>> clean(MigrationRef, ClusterNames clusters) override {
    auto begun = co_await world_.begin(hub_, "target.clean");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) {
      if (auto failure = world_.cluster_fault("target.clean", name)) {
        outcome.failed.push_back(*failure);
        continue;
      }
      hub_.clusters.at(name).marked = false;
      outcome.done.push_back(name);
    }
    if (world_.on_order) world_.on_order();
    co_return outcome;
  }

  Awaitable<kube::Result<Outcome>> roll_back(MigrationRef migration, Stage, ClusterNames clusters) override {
    auto begun = co_await world_.begin(hub_, "target.roll_back");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) {
      const auto found = hub_.clusters.find(name);
      if (found != hub_.clusters.end() && found->second.created_by == migration.uid) hub_.clusters.erase(found);
      outcome.done.push_back(name);
    }
    world_.changed();
    if (world_.on_order) world_.on_order();
    co_return outcome;
  }

  Awaitable<kube::Result<>> delete_migration_objects(MigrationRef migration, BootstrapIdentity identity) override {
    auto begun = co_await world_.begin(hub_, "target.delete_migration_objects");
    if (begun) {
      hub_.rights.erase(migration.uid);
      hub_.accounts.erase(identity.user());
    }
    if (world_.on_order) world_.on_order();
    co_return begun;
  }

 private:
  bool is_here(const MigrationRef& migration, const std::string& name, async::WallTime since) const {
    const auto found = hub_.clusters.find(name);
    return found != hub_.clusters.end() && found->second.created_by == migration.uid && found->second.available &&
           found->second.seen > since;
  }

  FakeHubs& world_;
  FakeHub& hub_;
};

FakeHub& FakeHubs::add(const std::string& name) {
  auto& hub = hubs_[name];
  hub = std::make_unique<FakeHub>();
  hub->name = name;
  sources_[name] = std::make_shared<FakeSource>(*this, *hub);
  targets_[name] = std::make_shared<FakeTarget>(*this, *hub);
  return *hub;
}

kube::Result<std::shared_ptr<hubagent::SourceHub>> FakeHubs::source(const std::string& hub) {
  const auto found = sources_.find(hub);
  if (found == sources_.end())
    return kube::Error{kube::ErrorKind::not_found, 404, "NotFound", "there is no hub " + hub, {}};
  return found->second;
}

kube::Result<std::shared_ptr<hubagent::TargetHub>> FakeHubs::target(const std::string& hub) {
  const auto found = targets_.find(hub);
  if (found == targets_.end())
    return kube::Error{kube::ErrorKind::not_found, 404, "NotFound", "there is no hub " + hub, {}};
  return found->second;
}

}  // namespace hubferry::migration::test
