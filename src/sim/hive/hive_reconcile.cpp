#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/kube/selector.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/hive/hive_context.hpp"

namespace hubferry::sim {

namespace {

namespace json = kube::json;
using kube::Awaitable;
using kube::Key;
using kube::Object;
using kube::Result;

// The seed's annotations, for a Hive that has ClusterRelocator built in.
constexpr const char* seed_relocating = "hive.openshift.io/relocating";
constexpr const char* seed_relocated = "hive.openshift.io/relocated";
constexpr const char* seed_role = "hive.openshift.io/relocation-role";
constexpr const char* syncset_pause = "hive.openshift.io/syncset-pause";

const json::value* annotation(const Object& object, std::string_view key) {
  return object.find({"metadata", "annotations", key});
}

/// Not found counts as done: somebody was faster.
Result<bool> done_unless(const Result<Object>& result) {
  if (result || result.error().kind == kube::ErrorKind::not_found) return true;
  return result.error();
}

Key zone_of(const Key& deployment) {
  return {deployment.ns, deployment.name + "-zone"};
}

bool is_true(const Object& object, std::string_view field) {
  const auto* value = object.find({"spec", field});
  return value != nullptr && value->is_bool() && value->get_bool();
}

bool erase_relocation(json::object& object) {
  auto& annotations = kube::object_in(kube::object_in(object, "metadata"), "annotations");
  return annotations.erase(ocm::names::hive_relocate_annotation) > 0;
}

/// The DNSZone first, which Hive reads anew, whatever it says by now. Then the ClusterDeployment of its cache, on which
/// the decision was based. Each is written once: the server refuses it with a conflict if it is another one by now, and
/// Hive decides again.
Awaitable<Result<bool>> clear_relocation(kube::Api& api, Object deployment) {
  const kube::Mutation mutate = erase_relocation;
  kube::EditOptions once;
  once.attempts = 1;
  auto zone = co_await kube::edit(api, ocm::dns_zones, zone_of(deployment.key()), mutate, once);
  if (auto done = done_unless(zone); !done) co_return done;
  json::object cleared = deployment.json();
  erase_relocation(cleared);
  auto written = co_await api.update(ocm::cluster_deployments, std::move(cleared));
  co_return done_unless(written);
}

/// What Hive does before it deletes what has moved: the DNSZone says so, too, whatever it said before.
Awaitable<Result<bool>> complete_zone(kube::Api& api, const Object& deployment, std::string value) {
  const kube::Mutation mutate = [&](json::object& zone) {
    auto& annotations = kube::object_in(kube::object_in(zone, "metadata"), "annotations");
    auto& present = annotations[ocm::names::hive_relocate_annotation];
    if (present == json::value(value)) return false;
    present = value;
    return true;
  };
  kube::EditOptions once;
  once.attempts = 1;
  auto zone = co_await kube::edit(api, ocm::dns_zones, zone_of(deployment.key()), mutate, once);
  co_return done_unless(zone);
}

/// Finalizes a ClusterDeployment: the one place where a cluster would be destroyed.
Awaitable<Result<bool>> finalize(HiveContext& hive, Key key, HiveRelocation relocation) {
  if (relocation != HiveRelocation::none && relocation != HiveRelocation::complete) co_return true;
  if (relocation == HiveRelocation::none) {
    json::object metadata{{"name", key.name}, {"namespace", key.ns}};
    json::object wanted{{"metadata", metadata}, {"spec", json::object{{"clusterID", key.name}}}};
    auto made = co_await hive.api.create(ocm::cluster_deprovisions, wanted);
    if (!made && made.error().kind != kube::ErrorKind::already_exists) co_return made.error();
    hive.record("deprovision", key);
  }
  auto removed =
      co_await kube::remove_finalizer(hive.api, ocm::cluster_deployments, key, ocm::names::hive_deprovision_finalizer);
  co_return done_unless(removed);
}

Awaitable<Result<bool>> reconcile_provision(HiveContext& hive, Key key, HiveRelocation relocation) {
  const Key provision{key.ns, key.name + "-0"};
  const bool exists = hive.provisions.get(provision) != nullptr;
  if (relocation == HiveRelocation::outgoing) {
    if (!exists) co_return true;
    auto removed = co_await hive.api.remove(ocm::cluster_provisions, provision);
    co_return done_unless(removed);
  }
  // Only what is outgoing is held back: what arrives is installed at once.
  if (relocation == HiveRelocation::malformed || exists) co_return true;
  json::object metadata{{"name", provision.name}, {"namespace", provision.ns}};
  json::object reference{{"name", key.name}};
  json::object wanted{{"metadata", metadata}, {"spec", json::object{{"clusterDeploymentRef", reference}}}};
  auto made = co_await hive.api.create(ocm::cluster_provisions, wanted);
  if (!made && made.error().kind != kube::ErrorKind::already_exists) co_return made.error();
  if (made) hive.record("provision", key);
  co_return true;
}

/// Creates the child zone, or takes over the one that is there, so that it is collected with the ClusterDeployment.
Awaitable<Result<bool>> ensure_zone(HiveContext& hive, Object deployment) {
  const Key key = zone_of(deployment.key());
  const kube::Mutation mutate = [&](json::object& zone) {
    const auto owned = kube::set_owner(zone, ocm::cluster_deployments, deployment);
    return owned && *owned;
  };
  auto written = co_await kube::create_or_patch(hive.api, ocm::dns_zones, key, mutate);
  if (!written) co_return written.error();
  co_return true;
}

}  // namespace

bool is_reconcile_paused(const Object& deployment) {
  return deployment.annotation(ocm::names::hive_pause_annotation) == "true";
}

HiveRelocation hive_relocation(const HiveContext& hive, const Object& object) {
  if (hive.options.knows_relocators) {
    if (annotation(object, seed_relocated) != nullptr) return HiveRelocation::complete;
    if (annotation(object, seed_relocating) != nullptr)
      return object.annotation(seed_role) == "incoming" ? HiveRelocation::incoming : HiveRelocation::outgoing;
  }
  if (annotation(object, ocm::names::hive_relocate_annotation) == nullptr) return HiveRelocation::none;
  const auto value = object.annotation(ocm::names::hive_relocate_annotation);
  if (value.ends_with("/outgoing")) return HiveRelocation::outgoing;
  if (value.ends_with("/incoming")) return HiveRelocation::incoming;
  if (value.ends_with("/complete")) return HiveRelocation::complete;
  return HiveRelocation::malformed;
}

bool is_paused_or_relocating(const HiveContext& hive, const Object& deployment) {
  return is_reconcile_paused(deployment) || deployment.annotation(syncset_pause) == "true" ||
         hive_relocation(hive, deployment) != HiveRelocation::none;
}

Awaitable<Result<bool>> reconcile_deployment(HiveContext& hive, Key key) {
  const auto deployment = hive.deployments.get(key);
  if (deployment == nullptr || is_reconcile_paused(*deployment)) co_return true;
  const auto relocation = hive_relocation(hive, *deployment);
  if (deployment->is_being_deleted()) {
    if (!kube::has_finalizer(*deployment, ocm::names::hive_deprovision_finalizer)) co_return true;
    co_return co_await finalize(hive, key, relocation);
  }
  if (!kube::has_finalizer(*deployment, ocm::names::hive_deprovision_finalizer)) {
    auto added =
        co_await kube::add_finalizer(hive.api, ocm::cluster_deployments, key, ocm::names::hive_deprovision_finalizer);
    if (!added) co_return done_unless(added);
  }
  if (is_true(*deployment, "manageDNS")) {
    auto zone = co_await ensure_zone(hive, *deployment);
    if (!zone) co_return zone.error();
  }
  if (is_true(*deployment, "installed")) co_return true;
  co_return co_await reconcile_provision(hive, key, relocation);
}

Awaitable<Result<bool>> reconcile_sync(HiveContext& hive, Key key) {
  const auto deployment = hive.deployments.get(key);
  if (deployment == nullptr || deployment->is_being_deleted() || !is_true(*deployment, "installed")) co_return true;
  if (!is_paused_or_relocating(hive, *deployment)) hive.record("sync", key);
  co_return true;
}

Awaitable<Result<bool>> reconcile_pool(HiveContext& hive, Key key) {
  const auto pool = hive.pools.get(key);
  if (pool == nullptr) co_return true;
  const Key of{key.ns, std::string{pool->string_at({"spec", "clusterDeploymentRef", "name"})}};
  const auto deployment = hive.deployments.get(of);
  const bool held = kube::has_finalizer(*pool, ocm::names::hive_machine_pool_finalizer);
  if (deployment == nullptr) {
    if (!held) co_return true;
    auto removed =
        co_await kube::remove_finalizer(hive.api, ocm::machine_pools, key, ocm::names::hive_machine_pool_finalizer);
    co_return done_unless(removed);
  }
  if (is_paused_or_relocating(hive, *deployment)) co_return true;
  if (pool->is_being_deleted()) {
    if (held) hive.record("remove machines", key);
    auto removed =
        co_await kube::remove_finalizer(hive.api, ocm::machine_pools, key, ocm::names::hive_machine_pool_finalizer);
    co_return done_unless(removed);
  }
  hive.record("machines", key);
  if (held) co_return true;
  auto added = co_await kube::add_finalizer(hive.api, ocm::machine_pools, key, ocm::names::hive_machine_pool_finalizer);
  co_return done_unless(added);
}

/// Hive's own relocation controller without a ClusterRelocate that matches: what it does to annotations that are not
/// its own.
Awaitable<Result<bool>> reconcile_relocate(HiveContext& hive, Key key) {
  const auto deployment = hive.deployments.get(key);
  if (deployment == nullptr || is_reconcile_paused(*deployment)) co_return true;
  const std::string value{deployment->annotation(ocm::names::hive_relocate_annotation)};
  const bool clears = value.ends_with("/incoming") || value.ends_with("/outgoing");
  if (clears) {
    auto cleared = co_await clear_relocation(hive.api, *deployment);
    if (!cleared) co_return cleared.error();
  }
  if (deployment->is_being_deleted()) co_return true;
  if (value.ends_with("/complete")) {
    auto zone = co_await complete_zone(hive.api, *deployment, value);
    if (!zone) co_return zone.error();
    auto removed = co_await hive.api.remove(ocm::cluster_deployments, key);
    co_return done_unless(removed);
  }
  const auto* present = kube::find_condition(*deployment, "RelocationFailed");
  if (present != nullptr && kube::string_at(*present, {"status"}) == "False") co_return true;
  const kube::Mutation mutate = [&](json::object& object) {
    const kube::Condition condition{"RelocationFailed", kube::ConditionStatus::no, "NoMatchingRelocates",
                                    "no ClusterRelocate matches", 0};
    return kube::set_condition(kube::object_in(object, "status"), condition, hive.env.clock.wall_now());
  };
  kube::EditOptions options;
  options.subresource = "status";
  auto written = co_await kube::edit(hive.api, ocm::cluster_deployments, *deployment, mutate, options);
  co_return done_unless(written);
}

}  // namespace hubferry::sim
