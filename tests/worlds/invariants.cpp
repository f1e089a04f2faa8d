#include "invariants.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/async/clock.hpp"
#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/migration/phases.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::worlds {

namespace json = boost::json;

namespace {

using hubagent::migration_label;

bool is_by_manager(const sim::ObservedWrite& write) {
  return write.user.starts_with(manager_user);
}

std::string_view label_of(const kube::Object* object) {
  return object == nullptr ? std::string_view{} : object->label(migration_label);
}

bool accepts(const kube::Object& cluster) {
  const auto* value = cluster.find({"spec", "hubAcceptsClient"});
  return value != nullptr && *value == true && !cluster.is_being_deleted();
}

std::string describe(const std::string& server, const sim::ObservedWrite& write) {
  const auto& object = write.after != nullptr ? *write.after : *write.before;
  const bool removed = write.after == nullptr || write.after->is_being_deleted();
  return std::string{write.before == nullptr ? "created"
                     : removed               ? "deleted"
                                             : "changed"} +
         " " + write.resource.plural + " " + kube::to_string(object.key()) + " on " + server + " by " + write.user;
}

/// On the source, what a migration may change although it did not create it: it is paused, and released or deleted with
/// the cluster.
bool is_paused_kind(const kube::Resource& resource) {
  static const std::set<std::string> kinds{"clusterdeployments", "baremetalhosts",       "imageclusterinstalls",
                                           "dataimages",         "hostfirmwaresettings", "firmwareschemas"};
  return kinds.contains(resource.plural);
}

std::set<std::string> names_in(const kube::Object& config_map, std::string_view list) {
  std::set<std::string> names;
  const auto text = config_map.string_at({"data", list});
  boost::system::error_code failed;
  const auto parsed = json::parse(text, failed);
  if (failed || !parsed.is_array()) return names;
  for (const auto& name : parsed.get_array())
    if (name.is_string()) names.emplace(name.get_string());
  return names;
}

}  // namespace

Invariants::Invariants(sim::VirtualWorld& world, std::map<std::string, std::string> clusters)
    : world_(world), place_(clusters), first_place_(std::move(clusters)) {
  for (const auto& server : world.world().servers()) {
    if (server != sim::global_hub) hubs_.push_back(server);
    kinds_[server] = world.run(migration::test::find_kinds(world.api(server), migration::test::Kinds::lasting));
    before_[server] = snapshot(server);
    for (const auto& secret : world.server(server).objects(kube::resources::secrets)) see_secret(secret);
    for (const auto& object : world.server(server).objects(ocm::managed_clusters))
      if (server != sim::global_hub && accepts(object)) accepting_[std::string{object.name()}].insert(server);
    world.server(server).observe_writes([this, server](const sim::ObservedWrite& write) { see(server, write); });
  }
}

void Invariants::remember(std::string_view text) {
  for (const char character : text)
    fingerprint_ = (fingerprint_ ^ static_cast<unsigned char>(character)) * 1099511628211U;
}

void Invariants::violation(const std::string& kind, const std::string& text) {
  // One cause has many effects: the first ones name it.
  if (++counts_[kind] > 3) return;
  violations_ += kind + ": " + async::format_duration(world_.clock().now().time_since_epoch()) + " " + text + "\n";
}

void Invariants::see(const std::string& server, const sim::ObservedWrite& write) {
  ++writes_;
  const auto& object = write.after != nullptr ? *write.after : *write.before;
  remember(server);
  remember(write.user);
  remember(write.resource.plural);
  remember(object.ns());
  remember(object.name());
  remember(object.resource_version());
  remember(std::to_string(world_.clock().now().time_since_epoch().count()));
  const auto& kind = write.resource.plural;
  if (kind == "secrets" && write.after != nullptr) see_secret(*write.after);
  if (server == sim::global_hub && kind == "managedclustermigrations") see_migration(write);
  if (server == sim::global_hub && kind == "configmaps") see_ledger(write);
  if (server != sim::global_hub && kind == "managedclusters") see_cluster(server, write);
  if (server != sim::global_hub && kind == "leases") see_lease(server, write);
  if (!is_by_manager(write)) return;
  check_ownership(server, write);
  check_secrecy(server, write);
}

void Invariants::see_cluster(const std::string& hub, const sim::ObservedWrite& write) {
  const std::string name{(write.after != nullptr ? write.after : write.before)->name()};
  if (!place_.contains(name)) return;
  if (write.user == person_user && write.after != nullptr && !write.after->label("owner").empty()) edited_.insert(name);
  if (write.before == nullptr && write.user.starts_with("system:serviceaccount:"))
    self_registered_.insert(std::string{write.after->uid()});
  auto& hubs = accepting_[name];
  const bool before = hubs.contains(hub);
  const bool now = write.after != nullptr && accepts(*write.after);
  if (const auto found = detached_.find({hub, name}); found != detached_.end() && !before && now)
    found->second = {true, false};
  if (before && !now && write.after != nullptr && is_by_manager(write)) check_detaching(hub, *write.after);
  check_return(hub, write);
  if (before == now) return;
  if (now)
    hubs.insert(hub);
  else
    hubs.erase(hub);
  if (write.user == person_user) excuse(name);
  check_cluster(name);
}

void Invariants::see_lease(const std::string& hub, const sim::ObservedWrite& write) {
  if (write.after == nullptr || !write.user.starts_with("system:open-cluster-management:")) return;
  const auto found = detached_.find({hub, std::string{write.after->ns()}});
  if (found != detached_.end() && found->second.accepted_again) found->second.renewed = true;
}

void Invariants::check_detaching(const std::string& hub, const kube::Object& cluster) {
  // Several migrations may list it: the one that claims it detaches it.
  const auto found = migrations_.find(std::string{cluster.annotation(ocm::names::migrating_annotation)});
  if (found == migrations_.end() || found->second.from != hub) return;
  const std::string name{cluster.name()};
  const auto& target = found->second.to;
  detached_[{hub, name}] = {};
  const auto copy = world_.server(target).object(ocm::managed_clusters, {"", name});
  if (excused_.contains(name) || (copy && kube::is_condition_true(*copy, ocm::names::accepted))) return;
  violation("unready", name + " is detached from " + hub + ", but " + target + " has not accepted it yet");
}

void Invariants::check_return(const std::string& hub, const sim::ObservedWrite& write) {
  if (write.before == nullptr || write.before->annotation(ocm::names::migrating_annotation).empty()) return;
  if (write.after != nullptr && !write.after->annotation(ocm::names::migrating_annotation).empty()) return;
  const std::string name{write.before->name()};
  const auto entry = detached_.extract({hub, name});
  if (entry.empty() || write.after == nullptr || excused_.contains(name) || entry.mapped().renewed) return;
  violation("back", hub + " drops the claim on " + name + " before its agent is back");
}

void Invariants::check_cluster(const std::string& cluster) {
  if (excused_.contains(cluster)) return;
  const auto& hubs = accepting_[cluster];
  if (hubs.empty()) violation("nowhere", "no hub accepts " + cluster);
  if (hubs.size() < 2) return;
  static const std::set<std::string> hand_over{migration::phases::deploying, migration::phases::registering,
                                               migration::phases::rollbacking};
  const auto covers = [&](const auto& entry) {
    const Migration& migration = entry.second;
    return migration.exists && hand_over.contains(migration.phase) && migration.clusters.contains(cluster) &&
           hubs == std::set<std::string>{migration.from, migration.to};
  };
  if (std::ranges::any_of(migrations_, covers)) return;
  std::string names;
  for (const auto& hub : hubs) names += " " + hub;
  violation("twice", cluster + " is accepted by" + names);
}

void Invariants::see_migration(const sim::ObservedWrite& write) {
  const auto& object = write.after != nullptr ? *write.after : *write.before;
  auto& migration = migrations_[std::string{object.uid()}];
  if (migration.name.empty()) {
    const auto spec = migration::read_spec(object.json());
    migration.name = object.name();
    migration.from = spec.from;
    migration.to = spec.to;
    migration.clusters = announced_[migration.name];
    if (spec.clusters) migration.clusters = {spec.clusters->begin(), spec.clusters->end()};
  }
  const std::string phase{object.string_at({"status", "phase"})};
  const bool enters = phase != migration.phase;
  migration.phase = phase;
  migration.exists = write.after != nullptr;
  if (!migration.exists || migration::is_terminal(phase)) {
    settle(migration);
    for (const auto& cluster : migration.clusters) check_cluster(cluster);
  } else {
    migration.settled = false;
  }
  if (enters && on_phase) on_phase(migration.name, phase);
}

void Invariants::settle(Migration& migration) {
  if (migration.settled) return;
  migration.settled = true;
  for (const auto& cluster : arrived_[migration.name]) {
    if (!place_.contains(cluster)) continue;
    place_[cluster] = migration.to;
    moved_.insert(cluster);
  }
}

void Invariants::see_ledger(const sim::ObservedWrite& write) {
  // What a person makes of it says nothing about clusters.
  if (write.after == nullptr || label_of(write.after).empty() || write.user == person_user) return;
  arrived_[std::string{write.after->name()}] = names_in(*write.after, "success");
}

void Invariants::see_secret(const kube::Object& secret) {
  const auto* data = secret.find({"data"});
  if (data == nullptr || !data->is_object()) return;
  for (const auto& [name, value] : data->get_object()) {
    if ((name != "token" && name != "kubeconfig") || !value.is_string() || value.get_string().size() < 20) continue;
    const std::string text{value.get_string()};
    credentials_.add(text);
    if (auto decoded = kube::decode_base64(text)) credentials_.add(std::string{*decoded});
  }
}

bool Invariants::is_source(const std::string& server, const std::string& cluster) const {
  return std::ranges::any_of(migrations_, [&](const auto& entry) {
    const Migration& migration = entry.second;
    return migration.from == server && migration.clusters.contains(cluster) && migration.exists &&
           !migration::is_terminal(migration.phase);
  });
}

void Invariants::check_ownership(const std::string& server, const sim::ObservedWrite& write) {
  static const std::set<std::string> exempt{"events", "leases", "managedclustermigrations"};
  const auto& kind = write.resource.plural;
  if (exempt.contains(kind)) return;
  const auto& object = write.before != nullptr ? *write.before : *write.after;
  // What an ended migration has brought belongs to nobody any more.
  const auto owner = migrations_.find(std::string{label_of(&object)});
  if (owner != migrations_.end() && owner->second.exists && !migration::is_terminal(owner->second.phase)) return;
  // Not ours. On the source a migration has to touch what it moves.
  const std::string cluster{object.ns().empty() ? object.name() : object.ns()};
  const bool on_source = is_source(server, cluster);
  const bool removed = write.after == nullptr || write.after->is_being_deleted();
  if (kind == "managedclusters" && on_source && write.before != nullptr) {
    if (!removed) return;
    // Only what it has claimed and detached.
    if (!object.annotation(ocm::names::migrating_annotation).empty() && !accepts(object)) return;
  }
  if (on_source && is_paused_kind(write.resource)) return;
  if (kind == "certificatesigningrequests" && !removed) return;
  if (kind == "managedclusters" && !removed && is_adoption(server, write)) return;
  // A namespace for own objects that a migration created, and others may use.
  if (kind == "namespaces" && (!removed || !object.annotation("hubferry.io/created-for-helpers").empty())) return;
  violation("foreign", describe(server, write) + ": without the migration's label");
}

bool Invariants::is_adoption(const std::string& server, const sim::ObservedWrite& write) const {
  if (write.before == nullptr || !label_of(write.before).empty()) return false;
  const auto owner = migrations_.find(std::string{label_of(write.after)});
  if (owner == migrations_.end() || !self_registered_.contains(std::string{write.before->uid()})) return false;
  return owner->second.to == server && owner->second.clusters.contains(std::string{write.after->name()});
}

void Invariants::check_secrecy(const std::string& server, const sim::ObservedWrite& write) {
  if (write.after == nullptr || write.resource.plural == "secrets") return;
  if (credentials_.occur_in(json::serialize(write.after->json())))
    violation("secret", describe(server, write) + " contains a credential");
}

bool Invariants::all_ended() const {
  return std::ranges::all_of(migrations_, [](const auto& entry) {
    return !entry.second.exists || migration::is_terminal(entry.second.phase);
  });
}

std::string Invariants::phase_of(const std::string& name) const {
  std::string phase = "none";
  for (const auto& [uid, migration] : migrations_)
    if (migration.name == name) phase = migration.exists ? migration.phase : "gone";
  return phase;
}

}  // namespace hubferry::worlds
