#include "hubagent/outdated_secrets.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "hubagent/annotations.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/hub_wide_rights.hpp"
#include "hubagent/works.hpp"
#include "hubferry/kube/wait_for_object.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// An agent that runs applies a work within a second or two. Some hundred that are off, whose turns come one after the
/// other, must not use up the time of an attempt.
constexpr auto apply_timeout = std::chrono::seconds{8};

std::array<std::string, 2> outdated_names(const MigrationRef& migration) {
  return {migration.bootstrap_secret(), std::string{bootstrap_secret} + "-current-hub"};
}

std::string work_name(const MigrationRef& migration) {
  return "outdated-secrets-" + migration.uid;
}

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
  for (const auto& name : outdated_names(migration)) {
    if (klusterlet.brings_secret(name)) continue;
    manifests.push_back(outdated_secret(name));
    configs.push_back(create_only(name));
  }
  if (manifests.empty()) return {};
  json::object metadata{{"name", work_name(migration)}, {"namespace", cluster}};
  json::object spec{{"workload", json::object{{"manifests", std::move(manifests)}}},
                    {"manifestConfigs", std::move(configs)}};
  json::object work{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  set_label(work, migration_label, migration.uid);
  set_label(work, outdated_secrets_label, "true");
  // It is no copy: no arrival waits for it.
  set_annotation(work, annotations::applied_on_source, "false");
  return work;
}

Awaitable<Result<std::shared_ptr<const KlusterletWork>>> read_klusterlet_work(const Hub& hub, std::string cluster) {
  auto found = co_await get_if_exists(hub, ocm::manifest_works, klusterlet_work_key(cluster));
  if (!found) co_return found.error();
  co_return klusterlet_work_of(*found ? &**found : nullptr);
}

bool deletes_secrets(const MigrationRef& migration, const Object& work) {
  return is_ours(migration, work) && !work.label(outdated_secrets_label).empty();
}

std::string names_of(const json::object& work) {
  std::string names;
  const auto* manifests = kube::find(work, {"spec", "workload", "manifests"});
  if (manifests != nullptr && manifests->is_array())
    for (const auto& manifest : manifests->get_array())
      if (manifest.is_object())
        names +=
            (names.empty() ? "" : ", ") + std::string{kube::string_at(manifest.get_object(), {"metadata", "name"})};
  return names;
}

/// Whether this hub itself gives the cluster one of the Secrets that the work would delete.
bool takes_own_secret(const MigrationRef& migration, const Object& work, const KlusterletWork& klusterlet) {
  const auto contained = ", " + names_of(work.json()) + ",";
  return std::ranges::any_of(outdated_names(migration), [&](const std::string& name) {
    return klusterlet.brings_secret(name) && contained.find(", " + name + ",") != std::string::npos;
  });
}

Error secrets_stay(const std::string& cluster, const std::string& names, const std::string& why) {
  return {FailureReason::works_not_applied,
          "Secrets " + names + " stay in namespace " + agent_namespace + " of cluster " + cluster + ", since " + why};
}

/// The work that an earlier attempt has created and not deleted: it must go, whatever has become of the cluster since.
/// Clusters that are processed at once share one list of the hub.
Awaitable<Result<std::optional<Object>>> find_work(const Hub& hub, MigrationRef migration, std::string cluster) {
  const auto selector = ours_selector(migration) + "," + outdated_secrets_label + "=true";
  auto works = co_await list_few(hub, ocm::manifest_works, cluster, selector);
  // Without that permission nobody has created one.
  if (!works && works.error().is(ErrorKind::forbidden)) co_return std::optional<Object>{};
  if (!works) co_return works.error();
  co_return works->empty() ? std::nullopt : std::optional<Object>{std::move(works->front())};
}

/// True if the hub's shared watch shows that no agent takes works of this cluster.
bool lacks_work_agent(Hub& hub, const std::string& cluster) {
  const auto watched = hub.watches().klusterlet_works.current();
  const auto known = watched == nullptr ? nullptr : watched->get(klusterlet_work_key(cluster));
  return known != nullptr && !known->has_work_agent();
}

/// Creates the work of a cluster. Nothing: there are no such Secrets, or nobody would apply it.
Awaitable<Result<std::optional<Object>>> create_work(Hub& hub, MigrationRef migration, std::string cluster,
                                                     bool may_create) {
  if (!may_create || lacks_work_agent(hub, cluster)) co_return co_await find_work(hub, migration, cluster);
  auto klusterlet = co_await read_klusterlet_work(hub, cluster);
  if (!klusterlet) co_return klusterlet.error();
  // Without an import controller there are no such Secrets; without a work agent nobody would apply the work.
  if (*klusterlet == nullptr || !(*klusterlet)->has_work_agent()) co_return co_await find_work(hub, migration, cluster);
  auto wanted = work_with_secrets(migration, cluster, **klusterlet);
  if (wanted.empty()) co_return co_await find_work(hub, migration, cluster);
  auto attempt = [&] { return hub.api().create(ocm::manifest_works, wanted); };
  auto created = co_await with_retry(hub, attempt);
  if (created) co_return std::optional<Object>{std::move(*created)};
  if (created.error().kind == ErrorKind::already_exists)
    co_return co_await get_if_exists(hub, ocm::manifest_works, {cluster, work_name(migration)});
  // It may be there, or appear.
  if (kube::is_transient(created.error().kind))
    co_return Error{FailureReason::unknown, described(ocm::manifest_works, {cluster, work_name(migration)}) +
                                                " on hub " + hub.name() +
                                                " may have been created: " + Error{created.error()}.describe()};
  co_return Error{secrets_stay(
      cluster, names_of(wanted),
      "hub " + hub.name() + " refuses the ManifestWork that would delete them: " + Error{created.error()}.describe())};
}

/// The work as it is when its agent has applied it; nothing: it is gone; an error: not in time.
Awaitable<Result<std::optional<Object>>> wait_until_applied(Hub& hub, MigrationRef migration, Object work) {
  std::optional<Object> seen = work;
  auto is_over = [&](const Object* now) {
    seen = now == nullptr || now->uid() != work.uid() ? std::nullopt : std::optional<Object>{*now};
    return !seen || is_applied(*seen);
  };
  if (is_applied(work)) co_return seen;
  auto permit = co_await hub.small_watches().acquire(migration.uid);
  const auto deadline = async::later(hub.env().clock.now(), apply_timeout);
  const bool over =
      co_await kube::wait_for_object(hub.api(), ocm::manifest_works, work.key(), is_over, deadline, hub.env());
  if (over) co_return seen;
  co_return secrets_stay(std::string{work.ns()}, names_of(work.json()),
                         "its agent has not applied ManifestWork " + std::string{work.name()} + " within " +
                             async::format_duration(apply_timeout));
}

/// Lets the cluster keep what the work has adopted.
Awaitable<Result<>> orphan(Hub& hub, MigrationRef migration, Object work) {
  json::object option{{"propagationPolicy", "Orphan"}};
  json::object patch{{"metadata", json::object{{"resourceVersion", work.resource_version()}}},
                     {"spec", json::object{{"deleteOption", std::move(option)}}}};
  auto patched = co_await hub.api().merge_patch(ocm::manifest_works, work.key(), std::move(patch));
  if (!patched)
    co_return Error{patched.error()}.in_context("cannot change " + described(ocm::manifest_works, work.key()) +
                                                " on hub " + hub.name());
  auto applied = co_await wait_until_applied(hub, std::move(migration), std::move(*patched));
  if (!applied) co_return applied.error();
  co_return Result<>{};
}

/// It must be deleted before the migration ends.
Error work_stays(const Hub& hub, const Object& work, const Error& error) {
  return {FailureReason::unknown,
          described(ocm::manifest_works, work.key()) + " is still on hub " + hub.name() + ": " + error.describe()};
}

/// From the creation of the work to its deletion. Between the two the hub may have begun to give the cluster one of the
/// Secrets itself: its klusterlet's work is read once more.
Awaitable<Result<>> delete_secrets_of(Hub& hub, MigrationRef migration, std::string cluster, bool may_create,
                                      Slot slot) {
  auto work = co_await create_work(hub, migration, cluster, may_create);
  slot.release();
  if (!work) co_return work.error();
  if (!*work || !deletes_secrets(migration, **work)) co_return Result<>{};
  auto applied = co_await wait_until_applied(hub, migration, **work);
  if (applied && !*applied) co_return Result<>{};
  if (applied) {
    auto klusterlet = co_await read_klusterlet_work(hub, cluster);
    if (!klusterlet) co_return work_stays(hub, **work, klusterlet.error());
    if (*klusterlet != nullptr && takes_own_secret(migration, **applied, **klusterlet)) {
      auto orphaned = co_await orphan(hub, migration, **applied);
      if (!orphaned) co_return work_stays(hub, **work, orphaned.error());
    }
  }
  // A creation without an answer would bring it back.
  auto settled = co_await hub.settle(migration, cluster, Slot{});
  settled.release();
  StillDeletable unchanged = [&](const Object& current) { return deletes_secrets(migration, current); };
  auto deleted = co_await delete_object(hub, ocm::manifest_works, **work, unchanged);
  if (!deleted) co_return work_stays(hub, **work, deleted.error());
  if (!applied) co_return applied.error();
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> DirectTargetHub::delete_outdated_secrets(MigrationRef migration, ClusterNames clusters) {
  auto& hub = *hub_;
  const bool may_create = co_await hub.rights().may("create", ocm::manifest_works);
  HubWatch<KlusterletWork>::Use use{hub.watches().klusterlet_works, clusters.size()};
  co_await use.ready();
  auto process = [&](std::string cluster, Slot slot) {
    return delete_secrets_of(hub, migration, std::move(cluster), may_create, std::move(slot));
  };
  co_return co_await for_each_cluster(hub, std::move(clusters), process);
}

}  // namespace hubferry::hubagent
