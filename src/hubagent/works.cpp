#include "hubagent/works.hpp"

#include "hubagent/annotations.hpp"
#include "hubagent/outdated_secrets.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

constexpr const char* applied_condition = "Applied";

bool has_label(const Object& work, const char* label) {
  return work.find({"metadata", "labels", label}) != nullptr;
}

/// A patch, since the role for works allows no update; conditional on the version that was read. Returns the work as it
/// is then; absent if it is gone, or is another's now.
Awaitable<Result<std::optional<Object>>> patch_copied_work(const Hub& hub, MigrationRef migration, Object known,
                                                           kube::Mutation mutate) {
  const Key key = known.key();
  auto attempt = [&]() -> Awaitable<kube::Result<Object>> {
    auto current = co_await hub.api().get(ocm::manifest_works, key);
    if (!current || current->uid() != known.uid() || !is_ours(migration, *current)) co_return current;
    json::object changed = current->json();
    if (!mutate(changed)) co_return current;
    auto patch = kube::merge_patch_between(current->json(), changed);
    if (!patch) co_return current;
    kube::object_in(*patch, "metadata")["resourceVersion"] = current->resource_version();
    co_return co_await hub.api().merge_patch(ocm::manifest_works, key, std::move(*patch));
  };
  auto patched = co_await with_retry(hub, attempt);
  if (patched && (patched->uid() != known.uid() || !is_ours(migration, *patched))) co_return std::optional<Object>{};
  if (patched) co_return std::optional<Object>{std::move(*patched)};
  if (patched.error().kind == ErrorKind::not_found) co_return std::optional<Object>{};
  // The server's message may quote a Secret in the work.
  if (patched.error().kind == ErrorKind::invalid)
    co_return Error{FailureReason::resource_invalid,
                    "hub " + hub.name() + " rejects a change of " + described(ocm::manifest_works, key) + " (422)"};
  co_return Error{patched.error()}.in_context("cannot change " + described(ocm::manifest_works, key) + " on hub " +
                                              hub.name());
}

bool orphan_workload(json::object& work) {
  const json::value orphan = json::object{{"propagationPolicy", "Orphan"}};
  auto& option = kube::object_in(work, "spec")["deleteOption"];
  if (option == orphan) return false;
  option = orphan;
  return true;
}

}  // namespace

std::string users_works_selector() {
  return std::string{"!"} + ocm::names::klusterlet_works_label + ",!" + ocm::names::addon_name_label + ",!" +
         ocm::names::replica_set_label;
}

Key klusterlet_work_key(const std::string& cluster) {
  return {cluster, cluster + "-klusterlet"};
}

bool is_klusterlet_work(const std::string& cluster, const Object& work) {
  return has_label(work, ocm::names::klusterlet_works_label) || work.key() == klusterlet_work_key(cluster) ||
         work.name() == cluster + "-klusterlet-crds";
}

std::optional<std::string> why_work_stays(const std::string& cluster, const Object& work) {
  if (is_klusterlet_work(cluster, work)) return "it installs the klusterlet: the target has its own";
  if (has_label(work, ocm::names::addon_name_label)) return "it belongs to an add-on, which the target installs itself";
  if (has_label(work, ocm::names::replica_set_label))
    return "a ManifestWorkReplicaSet creates it: create that on the target";
  if (has_label(work, outdated_secrets_label))
    return "it deletes Secrets of the migration that brought the cluster here";
  if (work.annotation(annotations::stays) == "true") return "it has the annotation " + std::string{annotations::stays};
  if (const auto* owners = work.find({"metadata", "ownerReferences"});
      owners != nullptr && owners->is_array() && !owners->get_array().empty()) {
    const auto& owner = owners->get_array().front();
    const auto text = [&](const char* field) {
      return owner.is_object() ? std::string{kube::string_at(owner.get_object(), {field})} : std::string{};
    };
    return "it is owned by " + text("kind") + " " + text("name") + ", which is not copied";
  }
  return std::nullopt;
}

bool is_generated_work(const std::string& cluster, const Object& work) {
  return is_klusterlet_work(cluster, work) || has_label(work, ocm::names::addon_name_label) ||
         has_label(work, ocm::names::replica_set_label);
}

bool is_applied(const Object& work) {
  const auto* applied = kube::find_condition(work, applied_condition);
  if (applied == nullptr || kube::string_at(*applied, {"status"}) != "True") return false;
  const auto* observed = applied->if_contains("observedGeneration");
  return observed == nullptr || (observed->is_int64() && observed->get_int64() >= work.generation());
}

void record_applied(json::object& copy, const Object& work) {
  // What an older version deployed is on the cluster too.
  const bool applied = kube::is_condition_true(work, applied_condition);
  set_annotation(copy, annotations::applied_on_source, applied ? "true" : "false");
}

bool awaits_agent(const MigrationRef& migration, const Object& work) {
  return is_ours(migration, work) && work.annotation(annotations::applied_on_source) != "false" && !is_applied(work);
}

Awaitable<Result<>> delete_copied_work(const Hub& hub, MigrationRef migration, Object work) {
  Prepare prepare = [&](Object current) {
    return patch_copied_work(hub, migration, std::move(current), orphan_workload);
  };
  auto rest = co_await delete_prepared(hub, ocm::manifest_works, std::move(work), prepare);
  if (!rest) co_return rest.error();
  if (!*rest) co_return Result<>{};
  auto drop = [](json::object& object) { return kube::drop_finalizer(object, ocm::names::work_cleanup_finalizer); };
  auto dropped = co_await patch_copied_work(hub, std::move(migration), **rest, drop);
  if (!dropped) co_return dropped.error();
  co_return Result<>{};
}

}  // namespace hubferry::hubagent
