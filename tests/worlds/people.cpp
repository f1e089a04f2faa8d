#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>

#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/migration/phases.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "seeded_world.hpp"
#include "spec_edits.hpp"

/// What people do in a world.
namespace hubferry::worlds {

namespace json = boost::json;
using namespace std::chrono_literals;
using migration::managed_cluster_migrations;

namespace {

bool is_accepted(const std::optional<kube::Object>& cluster) {
  const auto* value = cluster ? cluster->find({"spec", "hubAcceptsClient"}) : nullptr;
  return value != nullptr && *value == true && !cluster->is_being_deleted();
}

json::object acceptance(bool accepted) {
  return {{"spec", json::object{{"hubAcceptsClient", accepted}}}};
}

}  // namespace

Awaitable<> SeededWorld::change_lease(bool steal) {
  const kube::Key key{"default", "hubferry-manager"};
  auto& api = person(sim::global_hub);
  if (!steal) {
    (void)co_await api.remove(kube::resources::leases, key);
    co_return;
  }
  json::object patch{{"spec", json::object{{"holderIdentity", "somebody-else"}}}};
  (void)co_await api.merge_patch(kube::resources::leases, key, std::move(patch));
}

Awaitable<> SeededWorld::annotate_migration(std::size_t migration) {
  json::object annotations{{migration::names::request_annotation, migration::names::rollback_request}};
  json::object patch{{"metadata", json::object{{"annotations", std::move(annotations)}}}};
  (void)co_await person(sim::global_hub)
      .merge_patch(managed_cluster_migrations, {"default", "m" + std::to_string(migration)}, std::move(patch));
}

Awaitable<> SeededWorld::label_cluster(Step step) {
  // On both hubs, the source first: what only a copy has may go with it. Where it is not, nothing happens.
  const auto& migration = plan_.migrations[step.migration];
  for (const auto hub : {migration.from, migration.to}) {
    json::object labels{{"owner", "a-person"}};
    if (step.detail % 3 == 0) labels[set_label] = "others";
    json::object patch{{"metadata", json::object{{"labels", std::move(labels)}}}};
    co_await insist(hub_name(hub), ocm::managed_clusters, {"", clusters_[step.cluster]}, std::move(patch));
  }
}

Awaitable<> SeededWorld::deny(Step step, bool begins) {
  // Somebody else accepts it on the source: each would leave it as the other has made it.
  const auto is_accepted_again = [&](const Step& other) {
    return other.act == Act::acceptance && other.cluster == step.cluster;
  };
  if (std::ranges::any_of(plan_.steps, is_accepted_again)) co_return;
  const auto& name = clusters_[step.cluster];
  const auto accepts = [&](std::size_t hub) {
    const auto object = world_.server(hub_name(hub)).object(ocm::managed_clusters, {"", name});
    const auto* value = object ? object->find({"spec", "hubAcceptsClient"}) : nullptr;
    return value != nullptr && *value == true;
  };
  json::object patch{{"spec", json::object{{"hubAcceptsClient", !begins}}}};
  if (begins) {
    invariants_->excuse(name);
    for (std::size_t hub = 1; hub <= plan_.hubs; ++hub)
      if (accepts(hub) && denied_on_.try_emplace(step.cluster, hub_name(hub)).second)
        (void)co_await person(hub_name(hub)).merge_patch(ocm::managed_clusters, {"", name}, patch);
    co_return;
  }
  const auto found = denied_on_.find(step.cluster);
  if (found == denied_on_.end()) co_return;
  const auto hub = found->second;
  denied_on_.erase(found);
  for (std::size_t other = 1; other <= plan_.hubs; ++other)
    if (accepts(other)) co_return;
  co_await insist(hub, ocm::managed_clusters, {"", name}, std::move(patch));
}

Awaitable<> SeededWorld::delete_copy(Step step) {
  const auto& migration = plan_.migrations[step.migration];
  const auto phase = invariants_->phase_of("m" + std::to_string(step.migration));
  if (phase != migration::phases::deploying && phase != migration::phases::registering) co_return;
  const auto& name = clusters_[step.cluster];
  if (!world_.server(hub_name(migration.from)).object(ocm::managed_clusters, {"", name})) co_return;
  invariants_->excuse(name);
  (void)co_await person(hub_name(migration.to)).remove(ocm::managed_clusters, {"", name});
}

Awaitable<> SeededWorld::insist(std::string server, kube::Resource resource, kube::Key key, json::object patch) {
  for (;;) {
    const auto patched = co_await person(server).merge_patch(resource, key, patch);
    if (patched || patched.error().kind == kube::ErrorKind::not_found) co_return;
    co_await world_.clock().sleep_for(5s);
  }
}

Awaitable<bool> SeededWorld::reaches(Step step, std::string phase) {
  constexpr auto soon = 5min;
  const auto end = world_.clock().now() + soon;
  while (world_.clock().now() < end) {
    if (invariants_->phase_of("m" + std::to_string(step.migration)) == phase) co_return true;
    co_await world_.clock().sleep_for(20ms);
  }
  co_return false;
}

/// At once: the manager has yet to look at the target before it deletes the cluster from the source.
Awaitable<> SeededWorld::delete_late_copy(Step step) {
  const bool in_time = co_await reaches(step, migration::phases::cleaning);
  const auto& migration = plan_.migrations[step.migration];
  const auto& name = clusters_[step.cluster];
  if (!in_time || !world_.server(hub_name(migration.from)).object(ocm::managed_clusters, {"", name})) co_return;
  invariants_->excuse(name);
  (void)co_await person(hub_name(migration.to)).remove(ocm::managed_clusters, {"", name});
}

Awaitable<> SeededWorld::delete_copied_object(Step step) {
  const bool in_time = co_await reaches(step, migration::phases::registering);
  if (!in_time) co_return;
  const auto hub = hub_name(plan_.migrations[step.migration].to);
  const kube::Key migration{"default", "m" + std::to_string(step.migration)};
  const auto owner = world_.global().object(managed_cluster_migrations, migration);
  if (!owner) co_return;
  std::vector<std::pair<kube::Resource, kube::Key>> copied;
  for (const auto& kind : {kube::resources::config_maps, kube::resources::secrets, ocm::klusterlet_addon_configs})
    for (const auto& object : world_.server(hub).objects(kind))
      // What an earlier migration has copied, nobody copies again.
      if (object.ns() == clusters_[step.cluster] && object.label(hubagent::migration_label) == owner->uid())
        copied.emplace_back(kind, object.key());
  if (copied.empty()) co_return;
  const auto [kind, key] = copied[step.detail % copied.size()];
  (void)co_await person(hub).remove(kind, key);
}

Awaitable<> SeededWorld::delete_namespace(Step step) {
  const bool in_time =
      co_await reaches(step, step.detail % 4 < 2 ? migration::phases::deploying : migration::phases::registering);
  if (!in_time) co_return;
  const auto& name = clusters_[step.cluster];
  const auto& migration = plan_.migrations[step.migration];
  invariants_->excuse(name);
  (void)co_await person(hub_name(step.detail % 2 == 0 ? migration.to : migration.from))
      .remove(kube::resources::namespaces, {"", name});
}

Awaitable<> SeededWorld::edit_ledger(Step step) {
  const kube::Key key{"default", "m" + std::to_string(step.migration)};
  auto& api = person(sim::global_hub);
  const auto kind = step.detail % 6;
  if (kind == 0) {
    (void)co_await api.remove(kube::resources::config_maps, key);
    co_return;
  }
  static constexpr std::array texts{
      "", "", R"(["c1-0)", R"(["stranger"])", R"([[0,9223372036854775807],[-1,2],7])", R"({"a":[1]})"};
  json::object data;
  for (const char* list : {"success", "failure", "failure-details", "rolled-back", "undone", "unverified", "released",
                           "cleaned", "waiting", "left-behind"})
    data[list] = kind == 1 ? json::value(nullptr) : json::value(texts.at(kind));
  // The names that count are found again only if it is not a list of names.
  data["all-clusters"] = kind == 2 || kind == 5 ? data["success"] : json::value(nullptr);
  json::object patch{{"data", std::move(data)}};
  (void)co_await api.merge_patch(kube::resources::config_maps, key, std::move(patch));
}

Awaitable<> SeededWorld::omit_from_ledger(Step step) {
  const kube::Key key{"default", "m" + std::to_string(step.migration)};
  json::array names;
  for (const auto cluster : plan_.migrations[step.migration].clusters)
    if (cluster != step.cluster) names.emplace_back(clusters_[cluster]);
  json::object patch{{"data", json::object{{"all-clusters", json::serialize(names)}}}};
  (void)co_await person(sim::global_hub).merge_patch(kube::resources::config_maps, key, std::move(patch));
}

Awaitable<> SeededWorld::edit_spec(Step step) {
  const auto name = "m" + std::to_string(step.migration);
  // Before, the edited one is the one that counts.
  const auto phase = invariants_->phase_of(name);
  if (phase.empty() || phase == "none" || phase == "gone" || phase == migration::phases::pending ||
      phase == migration::phases::validating)
    co_return;
  const auto& plan = plan_.migrations[step.migration];
  const auto edits = spec_edits(hub_name(plan.from), hub_name(plan.to));
  json::object patch{{"spec", edits.at(step.detail % edits.size())}};
  (void)co_await person(sim::global_hub).merge_patch(managed_cluster_migrations, {"default", name}, std::move(patch));
}

Awaitable<> SeededWorld::insist_on(std::string server, kube::Resource resource, json::object object) {
  for (;;) {
    const auto created = co_await person(server).create(resource, object);
    if (created || created.error().kind == kube::ErrorKind::already_exists) co_return;
    co_await world_.clock().sleep_for(5s);
  }
}

/// It is well again in the end, as it was before.
Awaitable<> SeededWorld::edit_kubeconfig(Step step, bool begins) {
  if (step.hub == 0) co_return;
  const auto kind = step.detail % 5;
  const kube::Key key{hub_name(step.hub), "hub-kubeconfig"};
  if (begins) {
    const auto secret = world_.global().object(kube::resources::secrets, key);
    if (!secret || !kubeconfigs_.try_emplace(step.hub, *secret).second) co_return;
    kubeconfig_edits_[step.hub] = step.at;
    if (kind == 0) {
      (void)co_await person(sim::global_hub).remove(kube::resources::secrets, key);
      co_return;
    }
  }
  if (!kubeconfigs_.contains(step.hub) || kubeconfig_edits_[step.hub] != step.at) co_return;
  const auto before = begins ? kubeconfigs_.at(step.hub) : kubeconfigs_.extract(step.hub).mapped();
  if (!begins && kind == 0) {
    json::object object{before.json()};
    for (const auto* field : {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"})
      object["metadata"].as_object().erase(field);
    co_await insist_on(sim::global_hub, kube::resources::secrets, std::move(object));
    co_return;
  }
  const std::string present{before.string_at({"data", "kubeconfig"})};
  auto text = std::string{*kube::decode_base64(present)};
  if (kind == 1) text += "\n# a remark\n";
  if (kind == 2) text = "clusters: [";
  if (kind == 3) {
    const auto address = "https://" + hub_name(step.hub) + ".sim";
    text.replace(text.find(address), address.size(), "https://nowhere.sim");
  }
  if (kind == 4)
    text = kube::to_kubeconfig(
        world_.network().config_for(world_.server(hub_name(step.hub)), {"another-admin", {"system:masters"}, {}}));
  json::object patch{{"data", json::object{{"kubeconfig", begins ? kube::encode_base64(text) : present}}}};
  co_await insist(sim::global_hub, kube::resources::secrets, key, std::move(patch));
}

Awaitable<> SeededWorld::accept_again(Step step, bool begins) {
  const auto hub = plan_.migrations[step.migration].from;
  const auto same = [&](const Step& other) { return other.at == step.at && other.cluster == step.cluster; };
  if (begins)
    armed_.push_back(step);
  else
    std::erase_if(armed_, same);
  auto& wire = wire_of(Side::manager, hub);
  const auto here = [&](const Step& other) { return plan_.migrations[other.migration].from == hub; };
  wire.before_arrival = {};
  if (std::ranges::any_of(armed_, here))
    wire.before_arrival = [this, hub](const kube::Request& request) {
      return interfere(hub, request.verb, request.resource.plural, request.key.name);
    };
  if (begins || !accepted_on_.contains(step.cluster)) co_return;
  const auto source = accepted_on_.extract(step.cluster).mapped();
  const kube::Key key{"", clusters_[step.cluster]};
  for (std::size_t other = 1; other <= plan_.hubs; ++other)
    if (other != source && is_accepted(world_.server(hub_name(other)).object(ocm::managed_clusters, key))) {
      co_await insist(hub_name(source), ocm::managed_clusters, key, acceptance(false));
      co_return;
    }
}

Awaitable<> SeededWorld::interfere(std::size_t hub, kube::Verb verb, std::string plural, std::string name) {
  if (plural != ocm::managed_clusters.plural) co_return;
  const auto is_meant = [&](const Step& step) {
    const auto wanted = step.detail % 2 == 0 ? kube::Verb::get : kube::Verb::remove;
    return verb == wanted && plan_.migrations[step.migration].from == hub && clusters_[step.cluster] == name &&
           invariants_->phase_of("m" + std::to_string(step.migration)) == migration::phases::cleaning &&
           !accepted_on_.contains(step.cluster);
  };
  const auto found = std::ranges::find_if(armed_, is_meant);
  if (found == armed_.end()) co_return;
  const kube::Key key{"", name};
  const auto present = world_.server(hub_name(hub)).object(ocm::managed_clusters, key);
  if (!present || present->is_being_deleted() || is_accepted(present)) co_return;
  accepted_on_.emplace(found->cluster, hub);
  invariants_->excuse(name);
  (void)co_await person(hub_name(hub)).merge_patch(ocm::managed_clusters, key, acceptance(true));
}

}  // namespace hubferry::worlds
