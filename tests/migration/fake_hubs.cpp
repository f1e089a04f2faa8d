#include "fake_hubs.hpp"

#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::migration::test {

using hubagent::BootstrapIdentity;
using hubagent::Bundle;
using hubagent::ClusterFailure;
using hubagent::FailureReason;
using hubagent::Result;
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

Awaitable<Result<>> FakeHubs::begin(FakeHub& hub, std::string order) {
  orders.push_back(hub.name + " " + order);
  if (on_order) on_order();
  co_await clock.sleep_for(moment);
  if (!hub.reachable) co_return unreachable(hub.name);
  const auto found = faults.find(order);
  if (found == faults.end() || found->second.times <= 0) co_return Result<>{};
  --found->second.times;
  // A copy: a test may take the fault back meanwhile.
  const auto fault = found->second;
  if (fault.hang) co_await clock.sleep_until(async::never);
  co_await clock.sleep_for(fault.delay);
  if (fault.error) co_return *fault.error;
  co_return Result<>{};
}

std::optional<ClusterFailure> FakeHubs::cluster_fault(const std::string& order, const std::string& cluster) {
  const auto found = faults.find(order + " " + cluster);
  if (found == faults.end() || found->second.times <= 0) return std::nullopt;
  --found->second.times;
  return ClusterFailure{cluster, found->second.reason, found->second.error->message};
}

Awaitable<> FakeHubs::until_accepted(FakeHub& hub, std::string cluster) {
  while (hub.clusters.contains(cluster) && !hub.clusters[cluster].accepted) co_await changes_.wait();
}

void FakeHubs::renew_if_present(FakeHub& hub, const std::string& cluster) {
  if (!travelling_.contains(cluster) && !stranded.contains(cluster))
    hub.clusters[cluster].seen = clock.wall_now() + 1ms;
}

/// One cluster's agent: from the moment when its hub detaches it until it is registered somewhere.
Awaitable<> FakeHubs::follow(FakeHub& from, std::string name) {
  for (;;) {
    const auto own = travel_times.find(name);
    const auto arrival = async::later(clock.now(), own == travel_times.end() ? travel_time : own->second);
    co_await async::before_deadline(clock, arrival, until_accepted(from, name));
    while (stranded.contains(name)) co_await changes_.wait();
    if (!from.clusters.contains(name)) break;
    auto& home = from.clusters[name];
    if (home.accepted) {
      co_await clock.sleep_for(return_time);
      if (!from.clusters.contains(name)) break;
      if (!home.accepted) continue;
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
      if (!there.accepted) continue;
      there.available = true;
      there.reached = user;
      there.seen = clock.wall_now();
      arrived = true;
    }
    changed();
    if (!arrived) continue;
    // It stays there until that hub has denied or deleted it.
    const auto elsewhere = [&] {
      for (auto& [id, other] : hubs_)
        if (&*other != &from && other->clusters.contains(name) && other->clusters[name].accepted) return true;
      return false;
    };
    while (elsewhere() && from.clusters.contains(name)) co_await changes_.wait();
  }
  travelling_.erase(name);
  changed();
}

namespace {

/// Detached, or accepted again and not back yet.
bool is_away(const FakeCluster& cluster) {
  const bool returns = cluster.accepted_again != async::WallTime{} && cluster.seen <= cluster.accepted_again;
  return !cluster.accepted || !cluster.available || returns;
}

}  // namespace

Awaitable<> FakeHubs::fleet() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    for (;;) {
      for (auto& [id, hub] : hubs_)
        for (auto& [name, cluster] : hub->clusters)
          if (is_away(cluster) && cluster.created_by.empty() && travelling_.insert(name).second)
            scope.spawn(follow(*hub, name));
      co_await changes_.wait();
    }
  };
  travelling_.clear();
  co_await async::with_scope(body);
}

Awaitable<Result<>> FakeHubs::await_renewals(FakeHub& hub, std::string order, ClusterNames clusters,
                                             std::function<void(const std::string&)> on_renewal) {
  auto begun = co_await begin(hub, std::move(order));
  if (!begun) co_return begun.error();
  std::map<std::string, async::WallTime> marks;
  for (const auto& name : clusters)
    if (const auto found = hub.clusters.find(name); found != hub.clusters.end()) marks[name] = found->second.seen;
  while (!marks.empty()) {
    co_await clock.sleep_for(1s);
    if (!hub.reachable) co_return unreachable(hub.name);
    std::erase_if(marks, [&](const auto& mark) {
      const auto found = hub.clusters.find(mark.first);
      if (found == hub.clusters.end() || found->second.seen == mark.second) return false;
      on_renewal(mark.first);
      return true;
    });
  }
  co_return Result<>{};
}

Awaitable<std::vector<std::string>> FakeHubs::names() {
  std::vector<std::string> names;
  for (const auto& [name, hub] : hubs_)
    if (hub->is_hub) names.push_back(name);
  co_return names;
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
  if (unreadable_authorities-- > 0)
    info.ca_error = kube::Error{kube::ErrorKind::retry_later, 500, "", "the global hub is busy", std::nullopt};
  else
    info.ca_pem = FakeHubs::authority;
  co_return info;
}

class FakeSource final : public hubagent::SourceHub {
 public:
  FakeSource(FakeHubs& world, FakeHub& hub) : world_(world), hub_(hub) {}

  Awaitable<Result<ClusterNames>> resolve_placement(std::string placement) override {
    auto begun = co_await world_.begin(hub_, "source.resolve_placement");
    if (!begun) co_return begun.error();
    const auto found = hub_.placements.find(placement);
    if (found == hub_.placements.end())
      co_return hubagent::Error{FailureReason::placement_not_found, "there is no placement " + placement};
    co_return found->second;
  }

  Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override {
    return each("source.validate", clusters,
                [this, migration](const std::string& name) -> std::optional<FailureReason> {
                  const auto found = hub_.clusters.find(name);
                  if (found == hub_.clusters.end()) return FailureReason::cluster_not_found;
                  const auto& cluster = found->second;
                  if (!cluster.migrating.empty() && cluster.migrating != migration.uid)
                    return FailureReason::cluster_conflict;
                  const bool let_go = cluster.migrating == migration.uid && !cluster.accepted;
                  if (cluster.available || let_go) return std::nullopt;
                  return FailureReason::cluster_not_available;
                });
  }

  Awaitable<Result<hubagent::KlusterletConfigUses>> klusterlet_configs(MigrationRef, ClusterNames) override {
    co_return hubagent::KlusterletConfigUses{};
  }

  Awaitable<Result<Outcome>> initialize(MigrationRef migration, ClusterNames clusters,
                                        obs::Secret kubeconfig) override {
    return each("source.initialize", clusters,
                [this, migration, kubeconfig](const std::string& name) -> std::optional<FailureReason> {
                  hub_.kubeconfigs[migration.uid] = kubeconfig.reveal();
                  if (!hub_.clusters.contains(name)) return FailureReason::cluster_not_found;
                  hub_.clusters[name].migrating = migration.uid;
                  hub_.clusters[name].marked = true;
                  return std::nullopt;
                });
  }

  Awaitable<Result<Outcome>> collect(MigrationRef, ClusterNames clusters, hubagent::BundleSink sink) override {
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
        outcome.failed.push_back({name, FailureReason::cluster_not_found, "cluster " + name + " does not exist"});
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

  Awaitable<Result<Outcome>> restart_agents(MigrationRef, ClusterNames clusters) override {
    co_return Outcome{std::move(clusters), {}};
  }

  /// Each as soon as the caller lets it.
  Awaitable<Result<Outcome>> detach(MigrationRef migration, ClusterNames clusters, OnDetach on_detach) override {
    auto begun = co_await world_.begin(hub_, "source.detach");
    if (!begun) co_return begun.error();
    Outcome outcome;
    auto detach_one = [&](std::string name) -> Awaitable<> {
      const bool attached = hub_.clusters.contains(name) && hub_.clusters[name].accepted;
      auto permitted = attached ? co_await on_detach.before(name) : Result<>{};
      if (!permitted) {
        outcome.failed.push_back({name, permitted.error().reason(), permitted.error().describe()});
        co_return;
      }
      const auto failed = outcome.failed.size();
      process_one("source.detach", name, detaching(migration), outcome);
      on_detach.after(name, outcome.failed.size() == failed);
      world_.changed();
    };
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      for (const auto& name : clusters) scope.spawn(detach_one(name));
      co_return;
    };
    co_await async::with_scope(body);
    world_.changed();
    if (world_.on_order) world_.on_order();
    co_return outcome;
  }

  Awaitable<Result<Outcome>> detach_arrived(MigrationRef migration, ClusterNames clusters,
                                            std::optional<async::WallTime> here_before) override {
    return each("source.detach_arrived", std::move(clusters), detaching(migration, here_before.has_value()));
  }

  Awaitable<Result<Outcome>> clean(MigrationRef migration, ClusterNames clusters, ConfirmArrival confirm,
                                   OnDeletion on_deletion) override {
    std::map<std::string, std::string> refused;
    for (const auto& name : clusters) {
      if (!hub_.clusters.contains(name)) continue;
      auto confirmed = co_await confirm(name);
      if (!confirmed) refused[name] = confirmed.error().message();
    }
    auto outcome = co_await each("source.clean", clusters,
                                 [this, migration, &refused](const std::string& name) -> std::optional<FailureReason> {
                                   const auto found = hub_.clusters.find(name);
                                   if (found == hub_.clusters.end()) return std::nullopt;
                                   const auto& here = found->second;
                                   if (here.migrating != migration.uid || (here.accepted && here.was_detached))
                                     return FailureReason::cluster_conflict;
                                   if (refused.contains(name)) return FailureReason::unknown;
                                   if (here.accepted) return FailureReason::cluster_attached;
                                   hub_.clusters.erase(found);
                                   return std::nullopt;
                                 });
    if (outcome)
      for (auto& failure : outcome->failed)
        if (refused.contains(failure.cluster)) failure.message = refused[failure.cluster];
    if (outcome) {
      for (const auto& name : outcome->done) on_deletion(name);
      co_await world_.clock.sleep_for(world_.emptying_time);
      if (world_.namespaces_hang) {
        for (const auto& name : outcome->done)
          outcome->failed.push_back({name, FailureReason::unknown, "its namespace is being deleted"});
        outcome->done.clear();
      }
    }
    co_return outcome;
  }

  Awaitable<Result<Outcome>> returnable(MigrationRef migration, ClusterNames clusters) override {
    return each("source.returnable", clusters,
                [this, migration](const std::string& name) -> std::optional<FailureReason> {
                  const auto found = hub_.clusters.find(name);
                  if (found == hub_.clusters.end()) return FailureReason::cluster_not_found;
                  if (found->second.being_deleted) return FailureReason::cluster_not_available;
                  if (found->second.migrating != migration.uid) return FailureReason::cluster_conflict;
                  if (found->second.deletion_begun) return FailureReason::deletion_begun;
                  return std::nullopt;
                });
  }

  Awaitable<Result<ClusterNames>> accepted(ClusterNames clusters) override {
    auto begun = co_await world_.begin(hub_, "source.accepted");
    if (!begun) co_return begun.error();
    std::erase_if(clusters, [this](const std::string& name) {
      const auto found = hub_.clusters.find(name);
      return found == hub_.clusters.end() || !found->second.accepted;
    });
    co_return clusters;
  }

  Awaitable<Result<Outcome>> accept(MigrationRef migration, ClusterNames clusters) override {
    return each("source.accept", clusters, [this, migration](const std::string& name) -> std::optional<FailureReason> {
      const auto found = hub_.clusters.find(name);
      if (found == hub_.clusters.end()) return FailureReason::cluster_not_found;
      auto& cluster = found->second;
      if (cluster.being_deleted) return FailureReason::cluster_not_available;
      if (cluster.migrating != migration.uid)
        return cluster.accepted ? std::nullopt : std::optional{FailureReason::cluster_not_available};
      if (!cluster.accepted || cluster.accepted_again == async::WallTime{}) {
        cluster.accepted = true;
        cluster.accepted_again = world_.clock.wall_now();
        world_.renew_if_present(hub_, name);
      }
      return std::nullopt;
    });
  }

  Awaitable<Result<Outcome>> await_returns(MigrationRef migration, ClusterNames clusters, OnReturn on_return) override {
    auto begun = co_await world_.begin(hub_, "source.await_returns");
    if (!begun) co_return begun.error();
    std::set<std::string> missing{clusters.begin(), clusters.end()};
    for (;;) {
      if (!hub_.reachable) co_return FakeHubs::unreachable(hub_.name);
      std::erase_if(missing, [&](const std::string& name) {
        if (!is_back(migration, name)) return false;
        on_return(name);
        return true;
      });
      if (missing.empty()) co_return Outcome{clusters, {}};
      co_await world_.changes_.wait();
    }
  }

  Awaitable<Result<>> await_renewals(ClusterNames clusters, OnRenewal on_renewal) override {
    return world_.await_renewals(hub_, "source.await_renewals", std::move(clusters), std::move(on_renewal));
  }

  /// The claim only: the phase has waited for detached clusters before.
  Awaitable<Result<Outcome>> roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) override {
    return each("source.roll_back", clusters,
                [this, migration, stage](const std::string& name) -> std::optional<FailureReason> {
                  const auto found = hub_.clusters.find(name);
                  if (found == hub_.clusters.end() && stage == Stage::registering)
                    return FailureReason::cluster_not_found;
                  if (found == hub_.clusters.end()) return std::nullopt;
                  auto& cluster = found->second;
                  if (cluster.migrating != migration.uid) return std::nullopt;
                  if (stage == Stage::registering && !is_back(migration, name))
                    return FailureReason::cluster_not_available;
                  cluster.migrating.clear();
                  cluster.marked = false;
                  cluster.accepted_again = {};
                  return std::nullopt;
                });
  }

  Awaitable<Result<ClusterNames>> claimed(MigrationRef migration) override {
    auto begun = co_await world_.begin(hub_, "source.claimed");
    if (!begun) co_return begun.error();
    ClusterNames names;
    for (const auto& [name, cluster] : hub_.clusters)
      if (cluster.migrating == migration.uid) names.push_back(name);
    co_return names;
  }

  Awaitable<Result<>> delete_migration_objects(MigrationRef migration) override {
    auto begun = co_await world_.begin(hub_, "source.delete_migration_objects");
    if (begun) hub_.kubeconfigs.erase(migration.uid);
    if (world_.on_order) world_.on_order();
    co_return begun;
  }

 private:
  bool is_back(const MigrationRef& migration, const std::string& name) const {
    const auto found = hub_.clusters.find(name);
    if (found == hub_.clusters.end()) return false;
    const auto& cluster = found->second;
    return cluster.migrating != migration.uid ||
           (cluster.accepted && cluster.available && cluster.seen > cluster.accepted_again);
  }

  /// Processes each; `process` returns the reason of a failure, if it fails.
  using Process = std::function<std::optional<FailureReason>(const std::string&)>;

  /// `reclaim`: one that was released is claimed again.
  Process detaching(const MigrationRef& migration, bool reclaim = false) {
    return [this, migration, reclaim](const std::string& name) -> std::optional<FailureReason> {
      const auto found = hub_.clusters.find(name);
      if (found == hub_.clusters.end()) return FailureReason::cluster_not_found;
      if (reclaim && found->second.migrating.empty()) found->second.migrating = migration.uid;
      if (found->second.migrating != migration.uid) return FailureReason::cluster_conflict;
      found->second.accepted = false;
      found->second.was_detached = true;
      found->second.accepted_again = {};
      return std::nullopt;
    };
  }

  void process_one(const std::string& order, const std::string& name, const Process& process, Outcome& outcome) {
    auto failure = world_.cluster_fault(order, name);
    const auto reason = failure ? std::nullopt : process(name);
    if (reason)
      failure = {name, *reason, "cluster " + name + " on " + hub_.name + ": " + std::string{to_string(*reason)}};
    if (failure) {
      outcome.failed.push_back(*failure);
    } else {
      outcome.done.push_back(name);
    }
  }

  Awaitable<Result<Outcome>> each(std::string order, ClusterNames clusters, Process process) {
    auto begun = co_await world_.begin(hub_, order);
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) process_one(order, name, process, outcome);
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

  Awaitable<Result<Outcome>> validate(MigrationRef migration, ClusterNames clusters) override {
    auto begun = co_await world_.begin(hub_, "target.validate");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) {
      if (hub_.clusters.contains(name) && hub_.clusters[name].created_by != migration.uid) {
        outcome.failed.push_back(
            {name, FailureReason::cluster_conflict, "cluster " + name + " is on " + hub_.name + " already"});
      } else {
        outcome.done.push_back(name);
      }
    }
    co_return outcome;
  }

  Awaitable<Result<Outcome>> check_klusterlet_configs(hubagent::KlusterletConfigUses) override { co_return Outcome{}; }

  Awaitable<Result<obs::Secret>> issue_token(MigrationRef, BootstrapIdentity identity) override {
    auto begun = co_await world_.begin(hub_, "target.issue_token");
    if (!begun) co_return begun.error();
    hub_.accounts.insert(identity.user());
    co_return obs::Secret{"token-for-" + identity.user()};
  }

  Awaitable<Result<>> initialize(MigrationRef, BootstrapIdentity) override {
    auto begun = co_await world_.begin(hub_, "target.initialize");
    if (world_.on_order) world_.on_order();
    co_return begun;
  }

  Awaitable<Result<>> permit_registration(MigrationRef migration, BootstrapIdentity identity) override {
    auto begun = co_await world_.begin(hub_, "target.permit_registration");
    if (begun) hub_.rights[migration.uid].insert(identity.user());
    co_return begun;
  }

  Awaitable<Result<Outcome>> deploy(MigrationRef migration, Bundle bundle) override {
    auto begun = co_await world_.begin(hub_, "target.deploy");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& cluster : bundle.clusters) {
      const auto found = hub_.clusters.find(cluster.cluster);
      auto failure = world_.cluster_fault("target.deploy", cluster.cluster);
      if (!failure && found != hub_.clusters.end() && found->second.created_by != migration.uid)
        failure = {cluster.cluster, FailureReason::cluster_conflict, "it is there already"};
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

  Awaitable<Result<Outcome>> await_ready(MigrationRef, ClusterNames clusters) override {
    if (!hub_.reachable) co_return FakeHubs::unreachable(hub_.name);
    Outcome outcome;
    for (const auto& name : clusters) {
      if (auto failure = world_.cluster_fault("target.await_ready", name))
        outcome.failed.push_back(*failure);
      else
        outcome.done.push_back(name);
    }
    co_return outcome;
  }

  Awaitable<Result<>> await_arrivals(MigrationRef migration, ClusterNames clusters, async::WallTime since,
                                     OnArrival on_arrival) override {
    auto begun = co_await world_.begin(hub_, "target.await_arrivals");
    if (!begun) co_return begun.error();
    std::set<std::string> missing{clusters.begin(), clusters.end()};
    std::map<std::string, async::TimePoint> proven_at;
    for (;;) {
      if (!hub_.reachable) co_return FakeHubs::unreachable(hub_.name);
      const auto now = world_.clock.now();
      auto next = async::never;
      std::erase_if(missing, [&](const std::string& name) {
        if (!is_here(migration, name, since)) return false;
        const auto [proven, first] = proven_at.try_emplace(name, now + world_.proof_time);
        if (first && on_arrival.joined) on_arrival.joined(name);
        next = std::min(next, std::max(now, proven->second));
        if (now < proven->second) return false;
        on_arrival.arrived(name);
        return true;
      });
      if (missing.empty()) co_return Result<>{};
      if (next <= now) next = async::never;
      auto wait = [this]() -> Awaitable<> { co_await world_.changes_.wait(); };
      (void)co_await async::before_deadline(world_.clock, next, wait());
    }
  }

  Awaitable<Result<Outcome>> arrived(MigrationRef migration, ClusterNames clusters, async::WallTime since) override {
    auto begun = co_await world_.begin(hub_, "target.arrived");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) {
      if (auto failure = world_.cluster_fault("target.arrived", name))
        outcome.failed.push_back(*failure);
      else if (is_here(migration, name, since))
        outcome.done.push_back(name);
      else
        outcome.failed.push_back(
            {name, why_not_here(migration, name, since), "cluster " + name + " is not Available on " + hub_.name});
    }
    co_return outcome;
  }

  Awaitable<Result<>> await_renewals(ClusterNames clusters, OnFound on_renewal) override {
    return world_.await_renewals(hub_, "target.await_renewals", std::move(clusters), std::move(on_renewal));
  }

  /// No agent registers here without a copy.
  Awaitable<Result<Outcome>> adopt(MigrationRef, ClusterNames clusters, OnFound) override {
    auto begun = co_await world_.begin(hub_, "target.adopt");
    if (!begun) co_return begun.error();
    co_return Outcome{clusters, {}};
  }

  Awaitable<Result<Outcome>> find_registered(MigrationRef migration, ClusterNames clusters, OnFound on_found) override {
    auto begun = co_await world_.begin(hub_, "target.find_registered");
    if (!begun) co_return begun.error();
    for (const auto& name : clusters)
      if (has_copy(migration, name) && hub_.clusters[name].seen != async::WallTime{}) on_found(name);
    co_return Outcome{clusters, {}};
  }

  Awaitable<Result<>> confirm(MigrationRef migration, std::string cluster, async::WallTime since) override {
    auto begun = co_await world_.begin(hub_, "target.confirm");
    if (!begun) co_return begun.error();
    if (is_here(migration, cluster, since)) co_return Result<>{};
    co_return hubagent::Error{why_not_here(migration, cluster, since),
                              "cluster " + cluster + " is not Available on " + hub_.name};
  }

  Awaitable<Result<Outcome>> deny(MigrationRef migration, ClusterNames clusters,
                                  std::optional<async::WallTime> unless_alive_since) override {
    auto begun = co_await world_.begin(hub_, "target.deny");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) {
      if (unless_alive_since && is_alive(migration, name, *unless_alive_since)) {
        outcome.failed.push_back({name, FailureReason::unknown, "cluster " + name + " has arrived meanwhile"});
        continue;
      }
      outcome.done.push_back(name);
      if (!has_copy(migration, name)) continue;
      auto& copy = hub_.clusters.at(name);
      copy.accepted = copy.available = false;
    }
    world_.changed();
    if (world_.on_order) world_.on_order();
    co_return outcome;
  }

  Awaitable<Result<Outcome>> verify(MigrationRef, Bundle bundle) override {
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
        outcome.failed.push_back({cluster.cluster, FailureReason::error, "its content differs"});
      }
    }
    co_return outcome;
  }

  /// Its content is that of the target's controllers; an object that was deleted is one with no content.
  Awaitable<Result<Outcome>> complete(MigrationRef, Bundle bundle) override {
    auto begun = co_await world_.begin(hub_, "target.complete");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& cluster : bundle.clusters) {
      const auto found = hub_.clusters.find(cluster.cluster);
      if (found == hub_.clusters.end()) {
        outcome.failed.push_back({cluster.cluster, FailureReason::cluster_not_found, "it does not exist"});
      } else if (found->second.content == FakeCluster::deleted_content && found->second.stubborn) {
        outcome.failed.push_back({cluster.cluster, FailureReason::error, "its Secret cannot be created"});
      } else {
        if (found->second.content == FakeCluster::deleted_content)
          found->second.content = static_cast<int>(cluster.objects.at(0).object.at("content").as_int64());
        outcome.done.push_back(cluster.cluster);
      }
    }
    co_return outcome;
  }

  Awaitable<Result<Outcome>> delete_outdated_secrets(MigrationRef, ClusterNames clusters) override {
    if (clusters.empty()) co_return Outcome{};
    auto begun = co_await world_.begin(hub_, "target.delete_outdated_secrets");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) {
      if (auto failure = world_.cluster_fault("target.delete_outdated_secrets", name))
        outcome.failed.push_back(*failure);
      else
        outcome.done.push_back(name);
    }
    co_return outcome;
  }
  Awaitable<Result<Outcome>> clean(MigrationRef, ClusterNames clusters) override {
    auto begun = co_await world_.begin(hub_, "target.clean");
    if (!begun) co_return begun.error();
    Outcome outcome;
    for (const auto& name : clusters) {
      if (auto failure = world_.cluster_fault("target.clean", name)) {
        outcome.failed.push_back(*failure);
        continue;
      }
      const auto found = hub_.clusters.find(name);
      if (found == hub_.clusters.end()) {
        outcome.failed.push_back({name, FailureReason::cluster_not_found, "cluster " + name + " does not exist"});
        continue;
      }
      found->second.marked = false;
      outcome.done.push_back(name);
    }
    if (world_.on_order) world_.on_order();
    co_return outcome;
  }

  Awaitable<Result<Outcome>> roll_back(MigrationRef migration, Stage, ClusterNames clusters) override {
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

  Awaitable<Result<ClusterNames>> copied(MigrationRef migration) override {
    auto begun = co_await world_.begin(hub_, "target.copied");
    if (!begun) co_return begun.error();
    ClusterNames names;
    for (const auto& [name, cluster] : hub_.clusters)
      if (cluster.created_by == migration.uid) names.push_back(name);
    co_return names;
  }

  Awaitable<Result<>> delete_migration_objects(MigrationRef migration, BootstrapIdentity identity) override {
    auto begun = co_await world_.begin(hub_, "target.delete_migration_objects");
    if (begun) {
      hub_.rights.erase(migration.uid);
      hub_.accounts.erase(identity.user());
    }
    if (world_.on_order) world_.on_order();
    co_return begun;
  }

 private:
  bool has_copy(const MigrationRef& migration, const std::string& name) const {
    const auto found = hub_.clusters.find(name);
    return found != hub_.clusters.end() && found->second.created_by == migration.uid;
  }
  FailureReason why_not_here(const MigrationRef& migration, const std::string& name, async::WallTime since) const {
    if (!has_copy(migration, name)) return FailureReason::cluster_not_found;
    if (!is_alive(migration, name, since)) return FailureReason::cluster_not_available;
    return FailureReason::works_not_applied;
  }
  bool is_alive(const MigrationRef& migration, const std::string& name, async::WallTime since) const {
    if (!has_copy(migration, name)) return false;
    const auto& copy = hub_.clusters.at(name);
    return copy.accepted && copy.available && copy.seen > since;
  }
  bool is_here(const MigrationRef& migration, const std::string& name, async::WallTime since) const {
    return is_alive(migration, name, since) && !hub_.clusters.at(name).lacks_works;
  }

  FakeHubs& world_;
  FakeHub& hub_;
};

FakeHub& FakeHubs::add(const std::string& name) {
  auto& hub = hubs_[name];
  hub = std::make_unique<FakeHub>();
  hub->name = name;
  auto& connection = connections_[name];
  connection = std::make_shared<hubs::Connection>();
  connection->source = std::make_shared<FakeSource>(*this, *hub);
  connection->target = std::make_shared<FakeTarget>(*this, *hub);
  return *hub;
}

Result<std::shared_ptr<hubs::Connection>> FakeHubs::connection(const std::string& hub) {
  const auto found = connections_.find(hub);
  if (found == connections_.end()) return hubagent::Error{FailureReason::hub_not_found, "there is no hub " + hub};
  return found->second;
}

}  // namespace hubferry::migration::test
