#include "hubagent/direct_hubs.hpp"
#include "hubagent/own_objects.hpp"
#include "hubagent/pause.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using kube::resources::secrets;
using namespace ocm::names;

Key secret_key(const MigrationRef& migration) {
  return {engine_namespace, migration.bootstrap_secret()};
}

Key config_key(const MigrationRef& migration) {
  return {{}, migration.klusterlet_config()};
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

json::object bootstrap_from_secret(const MigrationRef& migration) {
  json::object secret;
  secret["name"] = migration.bootstrap_secret();
  json::object local;
  local["kubeConfigSecrets"] = json::array{std::move(secret)};
  json::object kubeconfigs;
  kubeconfigs["type"] = "LocalSecrets";
  kubeconfigs["localSecretsConfig"] = std::move(local);
  return kubeconfigs;
}

/// The format of MCE 2.8 and newer. "IncludeCurrentHub" keeps a rollback possible.
json::object several_hubs_spec(const MigrationRef& migration) {
  json::object hubs;
  hubs["genBootstrapKubeConfigStrategy"] = "IncludeCurrentHub";
  hubs["bootstrapKubeConfigs"] = bootstrap_from_secret(migration);
  json::object wanted;
  kube::object_in(wanted, "spec")["multipleHubsConfig"] = std::move(hubs);
  return wanted;
}

/// The format of older versions.
json::object one_hub_spec(const MigrationRef& migration) {
  json::object wanted;
  kube::object_in(wanted, "spec")["bootstrapKubeConfigs"] = bootstrap_from_secret(migration);
  return wanted;
}

/// The newer format where the server keeps it, else the older one: a server drops fields that its version does not
/// know, so its answer shows which format it supports.
Awaitable<Result<>> put_klusterlet_config(const Hub& hub, MigrationRef migration) {
  auto newer = several_hubs_spec(migration);
  auto written =
      co_await put_own_object(hub, migration, ocm::klusterlet_configs, config_key(migration), std::move(newer));
  if (!written) co_return written.error();
  if (written->find({"spec", "multipleHubsConfig"}) != nullptr) co_return Result<>{};
  auto older = one_hub_spec(migration);
  auto again =
      co_await put_own_object(hub, migration, ocm::klusterlet_configs, config_key(migration), std::move(older));
  if (!again) co_return again.error();
  co_return Result<>{};
}

/// Sets the three annotations and records the previous values. False also for a cluster that is claimed by another
/// migration.
bool claim(json::object& object, const MigrationRef& migration) {
  const auto* holder = annotation_in(object, migrating_annotation);
  if (holder != nullptr && *holder != json::value(migration.uid)) return false;
  bool changed = set_annotation(object, migrating_annotation, migration.uid);
  // If the user had disabled auto import, it stays disabled afterwards.
  if (annotation_in(object, disable_auto_import_annotation) == nullptr)
    changed |= set_annotation(object, disable_auto_import_annotation, migration.uid);
  const std::string before{annotation_text(object, klusterlet_config_annotation)};
  if (before != migration.klusterlet_config()) {
    if (!before.empty()) set_annotation(object, annotations::klusterlet_config_before, before);
    set_annotation(object, klusterlet_config_annotation, migration.klusterlet_config());
    changed = true;
  }
  return changed;
}

Awaitable<Result<>> initialize_one(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                   std::string cluster, Slot slot) {
  auto mutate = [&](json::object& object) { return claim(object, migration); };
  auto claimed = co_await edit(hub, ocm::managed_clusters, cluster_scoped(cluster), mutate);
  if (!claimed && claimed.error().is(ErrorKind::not_found)) co_return no_such_cluster(hub, cluster);
  if (!claimed) co_return claimed.error();
  if (!is_claimed_by(migration, *claimed)) co_return not_claimed(hub, cluster, *claimed);
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
  auto config = co_await put_klusterlet_config(hub, migration);
  if (!config) co_return config.error();
  auto process = [&](std::string cluster, Slot slot) {
    return initialize_one(hub, *kinds, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), process);
}

Awaitable<Result<>> DirectSourceHub::delete_migration_objects(MigrationRef migration) {
  auto& hub = *hub_;
  auto config = co_await delete_own_object(hub, migration, ocm::klusterlet_configs, config_key(migration));
  if (!config) co_return config.error();
  auto secret = co_await delete_own_object(hub, migration, secrets, secret_key(migration));
  if (!secret) co_return secret.error();
  co_return co_await release_namespace(hub, migration, engine_namespace);
}

}  // namespace hubferry::hubagent
