#include "hubagent/annotations.hpp"
#include "hubagent/arrival.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/source_return.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// True if the cluster's agent has received the target's bootstrap kubeconfig. Where there is a klusterlet work, it
/// arrives by that: the work contains our Secret, and the agent has applied the current version.
bool has_target_bootstrap(const Object* work, const MigrationRef& migration) {
  if (work == nullptr) return true;
  const auto* manifests = work->find({"spec", "workload", "manifests"});
  const auto is_bootstrap_secret = [&](const json::value& manifest) {
    return manifest.is_object() && kube::string_at(manifest.get_object(), {"kind"}) == "Secret" &&
           kube::string_at(manifest.get_object(), {"metadata", "name"}) == migration.bootstrap_secret();
  };
  if (manifests == nullptr || !manifests->is_array() ||
      std::ranges::none_of(manifests->get_array(), is_bootstrap_secret))
    return false;
  return satisfies(WorkRule::applied, work);
}

/// Waits until the agent has the target's bootstrap kubeconfig: once detached, it no longer reads from this hub.
Awaitable<Result<>> wait_for_target_bootstrap(Hub& hub, MigrationRef migration, std::string cluster) {
  auto has_bootstrap = [migration](const Object* work) { return has_target_bootstrap(work, migration); };
  auto& clock = hub.env().clock;
  auto waited = co_await async::before_deadline(clock, clock.now() + hub.options().busy_timeout,
                                                wait_for_klusterlet_work(hub, migration, cluster, has_bootstrap));
  if (waited) co_return std::move(*waited);
  co_return Error{FailureReason::error, "cluster " + cluster + " was not detached from hub " + hub.name() +
                                            ": its agent has not applied ManifestWork " + cluster +
                                            "-klusterlet with Secret " + migration.bootstrap_secret() +
                                            " yet, the target's bootstrap kubeconfig. If the cluster has the "
                                            "annotation " +
                                            ocm::names::disable_auto_import_annotation +
                                            ", its hub may not deliver it: remove the annotation"};
}

bool is_detached(const Object& cluster) {
  const auto* accepts = cluster.find({"spec", "hubAcceptsClient"});
  return accepts != nullptr && *accepts == false;
}

Awaitable<Result<>> detach_one(Hub& hub, bool works_served, MigrationRef migration, std::string cluster, Slot slot) {
  auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return no_such_cluster(hub, cluster);
  if (!is_claimed_by(migration, **found)) co_return not_claimed(hub, cluster, **found);
  if (is_detached(**found)) co_return Result<>{};
  // One that a rollback accepted again was detached before, so its agent has had the bootstrap kubeconfig.
  if (works_served && !is_returning(**found)) {
    slot.release();
    auto waited = co_await wait_for_target_bootstrap(hub, migration, cluster);
    if (!waited) co_return waited.error();
    slot = co_await hub.slot();
  }
  auto detach = [&](json::object& object) {
    if (!is_claimed_by(migration, Object{object})) return false;
    auto& accepts = kube::object_in(object, "spec")["hubAcceptsClient"];
    if (accepts == false) return false;
    accepts = false;
    keep_denied(object, migration);
    // From here on the import controller must not import the cluster again, with credentials that it may hold. If the
    // user had disabled that, it stays disabled afterwards.
    if (annotation_in(object, ocm::names::disable_auto_import_annotation) == nullptr)
      set_annotation(object, ocm::names::disable_auto_import_annotation, migration.uid);
    drop_annotation(object, annotations::returning);
    return true;
  };
  auto detached = co_await edit(hub, ocm::managed_clusters, cluster_scoped(cluster), detach);
  if (!detached && detached.error().is(ErrorKind::not_found)) co_return no_such_cluster(hub, cluster);
  if (!detached) co_return detached.error();
  if (!is_claimed_by(migration, *detached)) co_return not_claimed(hub, cluster, *detached);
  slot.release();
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<Outcome>> DirectSourceHub::detach(MigrationRef migration, ClusterNames clusters) {
  auto served = co_await serves(*hub_, ocm::manifest_works);
  if (!served) co_return served.error();
  auto process = [&](std::string cluster, Slot slot) {
    return detach_one(*hub_, *served, migration, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(*hub_, std::move(clusters), process);
}

}  // namespace hubferry::hubagent
