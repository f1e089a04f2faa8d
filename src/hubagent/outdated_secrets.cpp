#include "hubagent/outdated_secrets.hpp"

#include <map>

#include "hubagent/annotations.hpp"
#include "hubagent/clusters.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/hub_wide_rights.hpp"
#include "hubagent/works.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// An agent that runs applies a work within a second or two, and has had the time in which the source was cleaned.
constexpr auto apply_timeout = std::chrono::seconds{10};
constexpr auto look_period = std::chrono::seconds{1};

json::object secret_identity(const std::string& name) {
  return json::object{{"name", name}, {"namespace", agent_namespace}};
}

/// Without their content, which only the source's import controller had.
json::object outdated_secret(const std::string& name) {
  return json::object{
      {"apiVersion", "v1"}, {"kind", "Secret"}, {"type", "Opaque"}, {"metadata", secret_identity(name)}};
}

/// The agent's running process may still have them mounted: until they are deleted they must stay as they are.
json::object create_only(const std::string& name) {
  auto identifier = secret_identity(name);
  identifier["group"] = "";
  identifier["resource"] = kube::resources::secrets.plural;
  return json::object{{"resourceIdentifier", std::move(identifier)},
                      {"updateStrategy", json::object{{"type", "CreateOnly"}}}};
}

/// Named by uid: no work of a user has that name. Empty: this hub itself gives the cluster these Secrets.
json::object work_with_secrets(const MigrationRef& migration, const std::string& cluster,
                               const KlusterletWork& klusterlet) {
  json::array manifests;
  json::array configs;
  for (const auto& name : {migration.bootstrap_secret(), std::string{bootstrap_secret} + "-current-hub"}) {
    if (klusterlet.brings_secret(name)) continue;
    manifests.push_back(outdated_secret(name));
    configs.push_back(create_only(name));
  }
  if (manifests.empty()) return {};
  json::object metadata{{"name", "outdated-secrets-" + migration.uid}, {"namespace", cluster}};
  json::object spec{{"workload", json::object{{"manifests", std::move(manifests)}}},
                    {"manifestConfigs", std::move(configs)}};
  json::object work{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  set_label(work, migration_label, migration.uid);
  set_label(work, outdated_secrets_label, "true");
  // It is no copy: no arrival waits for it.
  set_annotation(work, annotations::applied_on_source, "false");
  return work;
}

Awaitable<std::shared_ptr<const KlusterletWork>> find_klusterlet_work(Hub& hub, std::string cluster) {
  const auto key = klusterlet_work_key(cluster);
  if (const auto watched = hub.watches().klusterlet_works.current())
    if (auto known = watched->get(key)) co_return known;
  auto found = co_await get_if_exists(hub, ocm::manifest_works, key);
  co_return klusterlet_work_of(found && *found ? &**found : nullptr);
}

bool deletes_secrets(const MigrationRef& migration, const Object& work) {
  return is_ours(migration, work) && !work.label(outdated_secrets_label).empty();
}

/// By namespace. A hub on which we may not list them has none.
Awaitable<Result<std::map<std::string, Object>>> list_works(const Hub& hub, MigrationRef migration) {
  const auto selector = ours_selector(migration) + "," + outdated_secrets_label;
  auto listed = co_await list(hub, ocm::manifest_works, {}, selector);
  std::map<std::string, Object> works;
  if (!listed && listed.error().is(ErrorKind::forbidden)) co_return works;
  if (!listed) co_return listed.error();
  for (auto& work : *listed)
    if (!work.is_being_deleted()) works.emplace(work.ns(), std::move(work));
  co_return works;
}

Awaitable<Result<>> delete_works(Hub& hub, MigrationRef migration, const std::map<std::string, Object>& works) {
  ClusterNames clusters;
  for (const auto& entry : works) clusters.push_back(entry.first);
  StillDeletable unchanged = [&](const Object& current) { return deletes_secrets(migration, current); };
  auto process = [&](std::string cluster, Slot slot) -> Awaitable<Result<>> {
    auto deleted = co_await delete_object(hub, ocm::manifest_works, works.at(cluster), unchanged);
    slot.release();
    if (!deleted) co_return deleted.error();
    co_return Result<>{};
  };
  auto outcome = co_await for_each_cluster(hub, std::move(clusters), process);
  if (!outcome) co_return outcome.error();
  for (const auto& failed : outcome->failed)
    hub.env().log.warn("cannot delete a ManifestWork of ours",
                       {{"cluster", failed.cluster}, {"error", failed.message}});
  co_return Result<>{};
}

}  // namespace

Awaitable<> adopt_outdated_secrets(Hub& hub, MigrationRef migration, std::string cluster) {
  const bool may_create = co_await hub.rights().may("create", ocm::manifest_works);
  if (!may_create) co_return;
  auto slot = co_await hub.slot();
  const auto klusterlet = co_await find_klusterlet_work(hub, cluster);
  // Without an import controller there are no such Secrets; without a work agent nobody would apply the work.
  if (klusterlet == nullptr || !klusterlet->has_work_agent()) co_return;
  auto work = work_with_secrets(migration, cluster, *klusterlet);
  if (work.empty()) co_return;
  auto attempt = [&] { return hub.api().create(ocm::manifest_works, work); };
  auto created = co_await with_retry(hub, attempt);
  if (created || created.error().kind == ErrorKind::already_exists) co_return;
  hub.env().log.warn("cannot create a ManifestWork: Secrets of the migration stay on the cluster",
                     {{"cluster", cluster}, {"error", Error{created.error()}.describe()}});
}

Awaitable<Result<>> delete_outdated_secrets(Hub& hub, MigrationRef migration) {
  auto& clock = hub.env().clock;
  const auto deadline = clock.now() + apply_timeout;
  for (;;) {
    auto works = co_await list_works(hub, migration);
    if (!works) co_return works.error();
    const auto all = works->size();
    const bool last = clock.now() >= deadline;
    std::erase_if(*works, [&](const auto& entry) { return !last && !is_applied(entry.second); });
    if (!works->empty()) {
      auto deleted = co_await delete_works(hub, migration, *works);
      if (!deleted) co_return deleted.error();
    }
    if (last || works->size() == all) co_return Result<>{};
    co_await clock.sleep_for(look_period);
  }
}

}  // namespace hubferry::hubagent
