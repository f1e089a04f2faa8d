#include "hubagent/cluster_secrets.hpp"

#include "hubagent/annotations.hpp"
#include "hubagent/arrival.hpp"
#include "hubagent/own_objects.hpp"
#include "hubagent/works.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// An agent that runs has applied a work within a second.
constexpr auto apply_timeout = std::chrono::seconds{10};

Key cleanup_work_key(const MigrationRef& migration, const std::string& cluster) {
  return {cluster, migration.bootstrap_secret()};
}

bool has_secret(const Object& work, const std::string& name) {
  const auto* manifests = work.find({"spec", "workload", "manifests"});
  return manifests != nullptr && manifests->is_array() &&
         std::ranges::any_of(manifests->get_array(), [&](const json::value& manifest) {
           return manifest.is_object() && kube::string_at(manifest.get_object(), {"kind"}) == "Secret" &&
                  kube::string_at(manifest.get_object(), {"metadata", "name"}) == name;
         });
}

/// The Secrets without their content: the agent may write it before it deletes them.
json::array outdated_secrets(const MigrationRef& migration, const Object& klusterlet_work) {
  json::array manifests;
  for (const auto& name : {migration.bootstrap_secret(), std::string{bootstrap_secret} + "-current-hub"}) {
    if (has_secret(klusterlet_work, name)) continue;
    manifests.push_back(json::object{{"apiVersion", "v1"},
                                     {"kind", "Secret"},
                                     {"type", "Opaque"},
                                     {"metadata", json::object{{"name", name}, {"namespace", agent_namespace}}}});
  }
  return manifests;
}

json::object cleanup_work(const MigrationRef& migration, const std::string& cluster, json::array manifests) {
  const Key key = cleanup_work_key(migration, cluster);
  json::object work{{"metadata", json::object{{"name", key.name}, {"namespace", key.ns}}},
                    {"spec", json::object{{"workload", json::object{{"manifests", std::move(manifests)}}}}}};
  set_label(work, migration_label, migration.uid);
  // It is none of the copied works, for which an arrival waits.
  set_annotation(work, annotations::applied_on_source, "false");
  return work;
}

/// False: nothing is to be done, or we may not.
Awaitable<Result<bool>> create_cleanup_work(Hub& hub, MigrationRef migration, std::string cluster) {
  auto slot = co_await hub.slot();
  auto klusterlet_work = co_await get_if_exists(hub, ocm::manifest_works, klusterlet_work_key(cluster));
  if (!klusterlet_work) co_return klusterlet_work.error();
  // Without an import controller no such Secrets come to a cluster, and without a work agent, whose finalizer this is,
  // nobody would apply our work.
  if (!*klusterlet_work || !kube::has_finalizer(**klusterlet_work, work_cleanup_finalizer)) co_return false;
  auto manifests = outdated_secrets(migration, **klusterlet_work);
  if (manifests.empty()) co_return false;
  auto work = cleanup_work(migration, cluster, std::move(manifests));
  auto attempt = [&] { return hub.api().create(ocm::manifest_works, work); };
  auto created = co_await with_retry(hub, attempt);
  if (created || created.error().kind == ErrorKind::already_exists) co_return true;
  if (created.error().kind != ErrorKind::forbidden) co_return Error{created.error()};
  hub.env().log.info("may not create works: bootstrap Secrets stay on the cluster", {{"cluster", cluster}});
  co_return false;
}

}  // namespace

Awaitable<Result<>> delete_bootstrap_secrets(Hub& hub, MigrationRef migration, std::string cluster) {
  auto created = co_await create_cleanup_work(hub, migration, cluster);
  if (!created) co_return created.error();
  if (!*created) co_return Result<>{};
  const Key key = cleanup_work_key(migration, cluster);
  auto is_applied_or_gone = [](const Object* work) { return work == nullptr || is_applied(*work); };
  auto& clock = hub.env().clock;
  auto applied = co_await async::before_deadline(clock, clock.now() + apply_timeout,
                                                 wait_for_work(hub, migration, key, is_applied_or_gone));
  if (!applied)
    hub.env().log.info("the agent has not applied a work in time: bootstrap Secrets may stay on the cluster",
                       {{"cluster", cluster}});
  auto slot = co_await hub.slot();
  co_return co_await delete_own_object(hub, migration, ocm::manifest_works, key);
}

}  // namespace hubferry::hubagent
