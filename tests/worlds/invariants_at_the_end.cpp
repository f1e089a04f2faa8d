#include <algorithm>
#include <boost/json/serialize.hpp>

#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/migration/phases.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/fleet_agents.hpp"
#include "invariants.hpp"

/// What holds when a world has come to rest.
namespace hubferry::worlds {

namespace json = boost::json;

namespace {

bool is_ours(const std::string& name) {
  // Secrets with this label are made by people.
  if (name == "hubferry.io/hub-kubeconfig") return false;
  return name.starts_with("hubferry.io/") || name.starts_with("use.hubferry.io/") ||
         name == ocm::names::migrating_annotation;
}

/// The first label or annotation of ours; empty: none. `brought`: by a migration, whose label stays.
std::string trace_of(const kube::Object& object, bool brought) {
  for (const auto* part : {"labels", "annotations"}) {
    const auto* entries = object.find({"metadata", part});
    if (entries == nullptr || !entries->is_object()) continue;
    for (const auto& entry : entries->get_object())
      if (is_ours(std::string{entry.key()}) && !(brought && entry.key() == hubagent::migration_label))
        return std::string{entry.key()};
  }
  return {};
}

/// Copied only if they are labelled, known by name, or referenced; the others are deleted with the cluster's namespace.
bool stays_behind(const std::string& key, const std::string& value) {
  if (!key.starts_with("secrets ") && !key.starts_with("configmaps ")) return false;
  if (value.find("siteconfig.open-cluster-management.io/") != std::string::npos) return false;
  for (const auto* part :
       {"-admin-password", "-admin-kubeconfig", "-metadata-json", "-seed-reconfiguration", "bmc", "pull", "manifest"})
    if (key.find(part) != std::string::npos) return false;
  return true;
}

/// What of it lasts. Hive and the operator of metal3, which are not here, give an object its finalizer again where it
/// was taken for a deletion that did not come to its end.
std::string text_of(const kube::Object& object) {
  const auto kind = object.string_at({"kind"});
  if (kind != ocm::bare_metal_hosts.kind && kind != ocm::cluster_deployments.kind)
    return migration::test::essence(object);
  json::object copy = object.json();
  copy["metadata"].as_object().erase("finalizers");
  return migration::test::essence(kube::Object{std::move(copy)});
}

bool is_unchanged(const kube::Object& before, const kube::Object& after) {
  return before.uid() == after.uid() && before.resource_version() == after.resource_version();
}

}  // namespace

Invariants::Objects Invariants::snapshot(const std::string& server) {
  Objects taken;
  for (const auto& kind : kinds_[server])
    for (auto& object : world_.server(server).objects(kind)) {
      auto key = kind.display_name() + " " + kube::to_string(object.key());
      taken.insert_or_assign(std::move(key), std::move(object));
    }
  return taken;
}

void Invariants::check_place(const std::string& cluster) {
  auto& wanted = place_.at(cluster);
  const auto* agent = world_.world().agents().find(cluster);
  // Where a person interferes, the cluster may end on either hub; but on one.
  if (excused_.contains(cluster))
    for (const auto& hub : accepting_[cluster]) wanted = hub;
  std::string found;
  for (const auto& hub : hubs_) {
    const auto object = world_.server(hub).object(ocm::managed_clusters, {"", cluster});
    if (!object) continue;
    const auto* accepted = object->find({"spec", "hubAcceptsClient"});
    found += " " + hub + (accepted != nullptr && *accepted == true ? ":accepted" : ":denied") +
             (kube::is_condition_true(*object, ocm::names::available) ? ":Available" : ":not-Available") +
             (object->is_being_deleted() ? ":deleting" : "");
  }
  if (agent != nullptr) {
    const auto view = agent->view();
    found += " agent:" + view.phase + "@" + view.hub + (view.available ? "" : ":not-Available");
  }
  const auto expected = " " + wanted + ":accepted:Available agent:Joined@https://" + wanted + ".sim";
  if (found != expected) violation("lost", cluster + " should be" + expected + ", but is" + found);
  const auto object = world_.server(wanted).object(ocm::managed_clusters, {"", cluster});
  if (edited_.contains(cluster) && !excused_.contains(cluster) && object && object->label("owner").empty())
    violation("content", cluster + " on " + wanted + " lacks the label that a person gave it");
}

void Invariants::check_leftovers(const std::string& server) {
  std::set<std::string> ledgers;
  for (const auto& [uid, migration] : migrations_)
    if (migration.exists) ledgers.insert(migration.name);
  for (const auto& kind : kinds_[server]) {
    for (const auto& object : world_.server(server).objects(kind)) {
      if (kind.plural == "managedclustermigrations") continue;
      const bool is_ledger = server == sim::global_hub && kind.plural == "configmaps" && object.ns() == "default" &&
                             ledgers.contains(std::string{object.name()});
      const auto home = place_.find(std::string{object.ns().empty() ? object.name() : object.ns()});
      const bool brought = home != place_.end() && home->second == server &&
                           (first_place_.at(home->first) != server || moved_.contains(home->first));
      const auto trace = is_ledger ? std::string{} : trace_of(object, brought);
      const auto what = kind.plural + " " + kube::to_string(object.key()) + " on " + server;
      if (!trace.empty()) violation("left", what + " has " + trace);
      if (object.is_being_deleted()) violation("left", what + " is being deleted for ever");
    }
  }
}

void Invariants::check_content() {
  std::map<std::string, Objects> after;
  for (const auto& server : world_.world().servers()) after[server] = snapshot(server);
  const auto cluster_of = [&](const std::string& key) {
    for (const auto& [cluster, hub] : place_)
      if (migration::test::belongs_to(key, cluster)) return cluster;
    return std::string{};
  };
  for (const auto& server : world_.world().servers()) {
    for (const auto& [key, object] : before_[server]) {
      const auto cluster = cluster_of(key);
      if (!cluster.empty() && excused_.contains(cluster)) continue;
      const auto& home = cluster.empty() ? server : place_.at(cluster);
      const bool stayed = home == server && !moved_.contains(cluster);
      const auto found = after[home].find(key);
      if (found != after[home].end()) {
        const bool edited = edited_.contains(cluster) && key.starts_with("managedclusters");
        if (!stayed || edited || is_unchanged(object, found->second)) continue;
        const auto was = text_of(object);
        const auto is = text_of(found->second);
        if (was != is) violation("content", key + " on " + home + " was " + was + "\n  is " + is);
      } else if (stayed || !stays_behind(key, text_of(object))) {
        violation("content", key + " is missing on " + home);
      }
    }
    for (const auto& [key, object] : after[server]) {
      if (before_[server].contains(key)) continue;
      const auto cluster = cluster_of(key);
      if (!cluster.empty() && (place_.at(cluster) == server || excused_.contains(cluster))) continue;
      const bool is_migration = server == sim::global_hub && key.find(" default/") != std::string::npos;
      if (!is_migration) violation("left", key + " on " + server);
    }
  }
}

void Invariants::check_end() {
  for (const auto& [uid, migration] : migrations_)
    if (migration.exists && !migration::is_terminal(migration.phase)) {
      const auto object = world_.global().object(migration::managed_cluster_migrations, {"default", migration.name});
      const auto* conditions = object ? object->find({"status", "conditions"}) : nullptr;
      violation("unended", migration.name + " is " + migration.phase +
                               (conditions != nullptr ? " " + json::serialize(*conditions) : ""));
    }
  for (const auto& [cluster, hub] : place_) check_place(cluster);
  for (const auto& server : world_.world().servers()) check_leftovers(server);
  check_content();
}

}  // namespace hubferry::worlds
