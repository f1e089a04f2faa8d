#include "hubagent/direct_hubs.hpp"
#include "hubagent/known_clusters.hpp"
#include "hubagent/own_objects.hpp"
#include "hubagent/pause.hpp"
#include "hubagent/seen_clusters.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::secrets;
using namespace ocm::names;

Key secret_key(const MigrationRef& migration) {
  return {engine_namespace, migration.bootstrap_secret()};
}

Awaitable<Result<>> put_bootstrap_secret(const Hub& hub, MigrationRef migration, obs::Secret kubeconfig) {
  json::object data;
  data["kubeconfig"] = kube::encode_base64(kubeconfig.reveal());
  json::object wanted;
  wanted["type"] = "Opaque";
  wanted["data"] = std::move(data);
  auto written = co_await put_own_object(hub, migration, secrets, secret_key(migration), std::move(wanted));
  if (!written) co_return written.error();
  co_return Result<>{};
}

json::object bootstrap_from_secret(const std::string& name) {
  json::object secret;
  secret["name"] = name;
  json::object local;
  local["kubeConfigSecrets"] = json::array{std::move(secret)};
  json::object kubeconfigs;
  kubeconfigs["type"] = "LocalSecrets";
  kubeconfigs["localSecretsConfig"] = std::move(local);
  return kubeconfigs;
}

/// The format of MCE 2.9 and newer. "IncludeCurrentHub" keeps a rollback possible.
json::object several_hubs(const std::string& secret) {
  json::object hubs;
  hubs["genBootstrapKubeConfigStrategy"] = "IncludeCurrentHub";
  hubs["bootstrapKubeConfigs"] = bootstrap_from_secret(secret);
  return hubs;
}

/// What the user configured for these clusters (proxy, registries, authorities, placement) stays in force: the import
/// controller reads one KlusterletConfig only.
Awaitable<Result<json::object>> users_spec(const Hub& hub, std::string name) {
  if (name.empty()) co_return json::object{};
  auto found = co_await get_if_exists(hub, ocm::klusterlet_configs, cluster_scoped(name));
  if (!found) co_return found.error();
  const auto* spec = *found ? (*found)->find({"spec"}) : nullptr;
  if (spec == nullptr || !spec->is_object()) co_return json::object{};
  json::object kept = spec->get_object();
  kept.erase("multipleHubsConfig");
  kept.erase("bootstrapKubeConfigs");
  co_return kept;
}

Awaitable<Result<Object>> put_config(const Hub& hub, MigrationRef migration, std::string name, json::object spec) {
  json::object wanted;
  wanted["spec"] = std::move(spec);
  auto key = cluster_scoped(name);
  co_return co_await put_own_object(hub, std::move(migration), ocm::klusterlet_configs, std::move(key),
                                    std::move(wanted));
}

/// In the newer format where the server keeps it, else in the older one: a server drops fields that its version does
/// not know, so its answer shows which format it supports.
Awaitable<Result<>> put_klusterlet_config(const Hub& hub, MigrationRef migration, std::string before) {
  auto spec = co_await users_spec(hub, before);
  if (!spec) co_return spec.error();
  auto newer = *spec;
  newer["multipleHubsConfig"] = several_hubs(migration.bootstrap_secret());
  const auto name = migration.klusterlet_config(before);
  auto written = co_await put_config(hub, migration, name, std::move(newer));
  if (!written) co_return written.error();
  if (written->find({"spec", "multipleHubsConfig"}) != nullptr) co_return Result<>{};
  auto older = std::move(*spec);
  older["bootstrapKubeConfigs"] = bootstrap_from_secret(migration.bootstrap_secret());
  auto again = co_await put_config(hub, migration, name, std::move(older));
  if (!again) co_return again.error();
  co_return Result<>{};
}

/// See MigrationRef::resting_config(). Nobody refers to it yet, and on a server that drops the newer format nobody
/// will.
Awaitable<Result<>> put_resting_config(const Hub& hub, MigrationRef migration) {
  json::object spec;
  spec["multipleHubsConfig"] = several_hubs(migration.resting_config());
  auto written = co_await put_config(hub, migration, migration.resting_config(), std::move(spec));
  if (!written) co_return written.error();
  co_return Result<>{};
}

/// The KlusterletConfig that the cluster had before the migration claimed it; empty: none.
std::string config_before(const json::object& object, const MigrationRef& migration) {
  const bool claimed = annotation_text(object, migrating_annotation) == migration.uid;
  return std::string{
      annotation_text(object, claimed ? annotations::klusterlet_config_before : klusterlet_config_annotation)};
}

/// Claims the cluster, names our KlusterletConfig and records the previous one. False also for a cluster that is
/// claimed by another migration. Auto import stays enabled until the cluster is detached: without it, some import
/// controllers do not deliver the bootstrap kubeconfig.
bool claim(json::object& object, const MigrationRef& migration) {
  const auto* holder = annotation_in(object, migrating_annotation);
  if (holder != nullptr && *holder != json::value(migration.uid)) return false;
  const auto before = config_before(object, migration);
  if (holder == nullptr) {
    // Left by a migration whose annotations were removed by hand.
    drop_annotation(object, annotations::returning);
    drop_annotation(object, annotations::detached_by);
    drop_annotation(object, annotations::deletion_begun);
    drop_annotation(object, annotations::klusterlet_config_before);
  }
  bool changed = set_annotation(object, migrating_annotation, migration.uid);
  if (!before.empty()) changed |= set_annotation(object, annotations::klusterlet_config_before, before);
  changed |= set_annotation(object, klusterlet_config_annotation, migration.klusterlet_config(before));
  return changed;
}

Awaitable<Result<>> initialize_one(Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                   std::string cluster, Slot slot) {
  auto mutate = [&](json::object& object) { return claim(object, migration); };
  auto claimed = co_await edit_cluster(hub, cluster, mutate);
  if (!claimed && claimed.error().is(ErrorKind::not_found)) co_return no_such_cluster(hub, cluster);
  if (!claimed) co_return claimed.error();
  if (!is_claimed_by(migration, *claimed)) co_return not_claimed(hub, cluster, *claimed);
  hub.known_clusters().remember(*claimed);
  auto paused = co_await pause_all(hub, std::move(kinds), migration, cluster);
  slot.release();
  co_return paused;
}

}  // namespace

Awaitable<Result<Outcome>> DirectSourceHub::initialize(MigrationRef migration, ClusterNames clusters,
                                                       obs::Secret bootstrap_kubeconfig) {
  auto& hub = *hub_;
  if (bootstrap_kubeconfig.empty())
    co_return Error{FailureReason::error, "there is no bootstrap kubeconfig for the clusters of hub " + hub.name()};
  auto kinds = co_await served_pausing_kinds(hub);
  if (!kinds) co_return kinds.error();
  auto space = co_await acquire_namespace(hub, migration, engine_namespace);
  if (!space) co_return space.error();
  auto secret = co_await put_bootstrap_secret(hub, migration, std::move(bootstrap_kubeconfig));
  if (!secret) co_return secret.error();
  auto uses = co_await klusterlet_configs(migration, clusters);
  if (!uses) co_return uses.error();
  std::vector<std::string> configs{""};
  for (const auto& use : *uses) configs.push_back(use.first);
  for (const auto& before : configs) {
    auto config = co_await put_klusterlet_config(hub, migration, before);
    if (!config) co_return config.error();
  }
  auto resting = co_await put_resting_config(hub, migration);
  if (!resting) co_return resting.error();
  auto process = [&](std::string cluster, Slot slot) {
    return initialize_one(hub, *kinds, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), process);
}

Awaitable<Result<>> DirectSourceHub::delete_migration_objects(MigrationRef migration) {
  auto& hub = *hub_;
  co_await hub.settle_own_objects(migration.uid, engine_namespace);
  auto configs = co_await list(hub, ocm::klusterlet_configs, {}, ours_selector(migration));
  if (!configs) co_return configs.error();
  for (const auto& config : *configs) {
    auto deleted = co_await delete_object(hub, ocm::klusterlet_configs, config);
    if (!deleted) co_return deleted.error();
  }
  auto secret = co_await delete_own_object(hub, migration, secrets, secret_key(migration));
  if (!secret) co_return secret.error();
  co_return co_await release_namespace(hub, migration, engine_namespace);
}

}  // namespace hubferry::hubagent
