#include "hubagent/annotations.hpp"
#include "hubagent/arrival.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/source_return.hpp"
#include "hubagent/works.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

bool has_bootstrap_secret(const Object& work, const MigrationRef& migration) {
  const auto* manifests = work.find({"spec", "workload", "manifests"});
  const auto is_bootstrap_secret = [&](const json::value& manifest) {
    return manifest.is_object() && kube::string_at(manifest.get_object(), {"kind"}) == "Secret" &&
           kube::string_at(manifest.get_object(), {"metadata", "name"}) == migration.bootstrap_secret();
  };
  return manifests != nullptr && manifests->is_array() &&
         std::ranges::any_of(manifests->get_array(), is_bootstrap_secret);
}

/// Whether the cluster's agent has received the target's bootstrap kubeconfig, by versions of its klusterlet work.
/// Without a work it arrives some other way. With several hubs in force the import controller writes a new token into
/// the work once or twice a second, so that the agent may never have applied the current version: one that had our
/// Secret is enough, as all since then had it.
class TargetBootstrap {
 public:
  explicit TargetBootstrap(MigrationRef migration) : migration_(std::move(migration)) {}

  bool is_applied(const Object* work) {
    if (work == nullptr) return true;
    if (!has_bootstrap_secret(*work, migration_) || !delivers(*work)) {
      first_version_.reset();
      return false;
    }
    if (!first_version_) first_version_ = work->generation();
    return is_applied_since(*work, *first_version_);
  }

 private:
  MigrationRef migration_;
  std::optional<std::int64_t> first_version_;  // that had our Secret
};

/// Waits until the agent has the target's bootstrap kubeconfig: once detached, it no longer reads from this hub.
Awaitable<Result<>> wait_for_target_bootstrap(Hub& hub, MigrationRef migration, std::string cluster) {
  TargetBootstrap bootstrap{migration};
  auto has_bootstrap = [&bootstrap](const Object* work) { return bootstrap.is_applied(work); };
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
