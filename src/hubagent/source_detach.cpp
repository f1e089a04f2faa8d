#include "hubagent/annotations.hpp"
#include "hubagent/arrival.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/seen_clusters.hpp"
#include "hubagent/source_return.hpp"
#include "hubagent/works.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

/// After this the cluster fails with the reason, and is tried again: less than what a migration gives an operation, a
/// third of its stage's timeout, or the reason would be lost with the operation.
constexpr auto delivery_timeout = std::chrono::seconds{30};

enum class Delivery {
  absent,     // the work does not have our Secret
  withheld,   // the agent must not apply it
  written,    // the work has it, and the agent has not applied it yet
  rewritten,  // the same, and the work was written once more since: the import controller does not rest
  applied,
};

/// Whether the cluster's agent has received the target's bootstrap kubeconfig, by versions of its klusterlet work.
/// Without a work it arrives some other way. The agent need not have applied the current version: one that had our
/// Secret is enough, as all since then had it.
class TargetBootstrap {
 public:
  explicit TargetBootstrap(MigrationRef migration) : migration_(std::move(migration)) {}

  Delivery look(const KlusterletWork* work) {
    if (work == nullptr) return Delivery::applied;
    const bool has_secret = work->brings_secret(migration_.bootstrap_secret());
    if (!has_secret || !work->delivers()) {
      first_version_.reset();
      return has_secret ? Delivery::withheld : Delivery::absent;
    }
    if (!first_version_) first_version_ = work->generation();
    if (work->is_applied_since(*first_version_)) return Delivery::applied;
    return work->generation() > *first_version_ ? Delivery::rewritten : Delivery::written;
  }

 private:
  MigrationRef migration_;
  std::optional<std::int64_t> first_version_;  // that had our Secret
};

bool is_resting(const MigrationRef& migration, const json::object& cluster) {
  return annotation_text(cluster, ocm::names::klusterlet_config_annotation) == migration.resting_config();
}

/// Lets the import controller rest on this cluster, or deliver again. If the annotation is not ours any more, it stays.
Awaitable<Result<>> set_resting(Hub& hub, MigrationRef migration, std::string cluster, bool resting) {
  auto change = [&](json::object& object) {
    if (!is_claimed_by(migration, Object{object})) return false;
    const std::string before{annotation_text(object, annotations::klusterlet_config_before)};
    const auto delivering = migration.klusterlet_config(before);
    const auto from = resting ? delivering : migration.resting_config();
    if (annotation_text(object, ocm::names::klusterlet_config_annotation) != from) return false;
    return set_annotation(object, ocm::names::klusterlet_config_annotation,
                          resting ? migration.resting_config() : delivering);
  };
  auto slot = co_await hub.slot();
  auto changed = co_await edit_cluster(hub, cluster, change);
  slot.release();
  if (!changed && changed.error().is(ErrorKind::not_found)) co_return no_such_cluster(hub, cluster);
  if (!changed) co_return changed.error();
  co_return Result<>{};
}

/// Waits until the agent has applied the target's bootstrap kubeconfig.
///
/// With several hubs in force the import controllers that we know never rest: each reconcile writes a new token of the
/// hub itself into the work, up to five times a second. The agent applies each version, but its report of one that has
/// been replaced is refused, for minutes or for ever. So once the work has our Secret, the import controller is given a
/// reason to leave it as it is.
Awaitable<Result<>> follow_delivery(Hub& hub, MigrationRef migration, std::string cluster, bool resting,
                                    bool can_rest) {
  TargetBootstrap bootstrap{migration};
  auto delivery = Delivery::absent;
  auto needs_attention = [&](const KlusterletWork* work) {
    delivery = bootstrap.look(work);
    return delivery == Delivery::applied || (delivery == Delivery::rewritten && can_rest && !resting) ||
           (delivery == Delivery::absent && resting);
  };
  while (true) {
    auto waited = co_await wait_for_klusterlet_work(hub, migration, cluster, needs_attention);
    if (!waited) co_return waited.error();
    if (delivery == Delivery::applied) co_return Result<>{};
    resting = !resting;
    auto changed = co_await set_resting(hub, migration, cluster, resting);
    if (!changed) co_return changed.error();
  }
}

/// Waits until the agent has the target's bootstrap kubeconfig: once detached, it no longer reads from this hub.
Awaitable<Result<>> wait_for_target_bootstrap(Hub& hub, MigrationRef migration, std::string cluster, bool resting,
                                              bool can_rest) {
  auto& clock = hub.env().clock;
  const Waits::Entry waiting{
      *hub.waits(), migration.uid, cluster,
      "agent has not applied the ManifestWork with the target's bootstrap kubeconfig (the condition "
      "Applied of its ManifestWork CLUSTER-klusterlet says why)"};
  auto waited = co_await async::before_deadline(clock, clock.now() + delivery_timeout,
                                                follow_delivery(hub, migration, cluster, resting, can_rest));
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

/// How this hub gives its agents bootstrap kubeconfigs.
struct Works {
  bool served = false;    // if not, nothing is waited for
  bool can_rest = false;  // the import controller can be kept from writing them
};

/// Denies the cluster here, and keeps the hub's controllers from accepting or importing it again.
bool set_detached(json::object& object, const MigrationRef& migration) {
  auto& accepts = kube::object_in(object, "spec")["hubAcceptsClient"];
  if (accepts == false) return false;
  accepts = false;
  keep_denied(object, migration);
  set_annotation(object, annotations::detached_by, migration.uid);
  // From here on the import controller must not import the cluster again, with credentials that it may hold. If the
  // user had disabled that, it stays disabled afterwards.
  if (annotation_in(object, ocm::names::disable_auto_import_annotation) == nullptr)
    set_annotation(object, ocm::names::disable_auto_import_annotation, migration.uid);
  drop_annotation(object, annotations::returning);
  return true;
}

/// One operation.
struct Detachment {
  Hub& hub;
  Works works;
  MigrationRef migration;
  SourceHub::OnDetach on_detach;
};

/// By one patch of the version that the watch shows: if somebody has changed it since, it is read.
Awaitable<Result<>> write_detached(const Detachment& detachment, std::string cluster) {
  const auto& [hub, works, migration, on_detach] = detachment;
  auto detach = [&](json::object& object) {
    if (!is_claimed_by(migration, Object{object})) return false;
    return set_detached(object, migration);
  };
  auto detached = co_await edit_cluster(hub, cluster, detach);
  if (!detached && detached.error().is(ErrorKind::not_found)) co_return no_such_cluster(hub, cluster);
  if (!detached) co_return detached.error();
  if (!is_claimed_by(migration, *detached)) co_return not_claimed(hub, cluster, *detached);
  co_return Result<>{};
}

/// One that nobody has claimed, and that was here before that time.
bool is_unclaimed_since(const json::object& cluster, async::WallTime here_before) {
  if (!annotation_text(cluster, ocm::names::migrating_annotation).empty()) return false;
  if (!kube::string_at(cluster, {"metadata", "deletionTimestamp"}).empty()) return false;
  try {
    return async::parse_time(kube::string_at(cluster, {"metadata", "creationTimestamp"})) < here_before;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

/// Claims a cluster again that this hub has released, and detaches it, by one write.
Awaitable<Result<>> detach_released(Hub& hub, MigrationRef migration, std::string cluster, async::WallTime here_before,
                                    Slot slot) {
  auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return no_such_cluster(hub, cluster);
  auto take_back = [&](json::object& object) {
    if (!is_claimed_by(migration, Object{object}) && !is_unclaimed_since(object, here_before)) return false;
    const bool claimed = set_annotation(object, ocm::names::migrating_annotation, migration.uid);
    return set_detached(object, migration) || claimed;
  };
  auto detached = co_await edit(hub, ocm::managed_clusters, **found, take_back);
  slot.release();
  if (!detached && detached.error().is(ErrorKind::not_found)) co_return no_such_cluster(hub, cluster);
  if (!detached) co_return detached.error();
  if (!is_claimed_by(migration, *detached)) co_return not_claimed(hub, cluster, *detached);
  co_return Result<>{};
}

Awaitable<Result<>> detach_one(const Detachment& detachment, std::string cluster, Slot slot) {
  const auto& [hub, works, migration, on_detach] = detachment;
  auto found = seen_cluster(hub, cluster);
  if (!found || !is_claimed_by(migration, *found) || is_detached(*found)) {
    auto read = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
    if (!read) co_return read.error();
    if (!*read) co_return no_such_cluster(hub, cluster);
    found = std::move(*read);
  }
  if (!is_claimed_by(migration, *found)) co_return not_claimed(hub, cluster, *found);
  if (is_detached(*found)) {
    if (on_detach.after) on_detach.after(cluster, true);
    co_return Result<>{};
  }
  const bool resting = is_resting(migration, found->json());
  const bool returning = is_returning(*found);
  // It may wait for long, beside thousands of others.
  found.reset();
  // Others use it while this one waits. The write needs none: from here on the caller limits what is done at once.
  if (works.served || on_detach.before) slot.release();
  // One that a rollback accepted again was detached before, so its agent has had the bootstrap kubeconfig.
  if (works.served && !returning) {
    auto waited = co_await wait_for_target_bootstrap(hub, migration, cluster, resting, works.can_rest);
    if (!waited) co_return waited.error();
  }
  if (on_detach.before) {
    auto permitted = co_await on_detach.before(cluster);
    if (!permitted) co_return permitted.error();
  }
  if (works.served && !on_detach.before) slot = co_await hub.slot();
  auto written = co_await write_detached(detachment, cluster);
  if (on_detach.after) on_detach.after(cluster, written.has_value());
  co_return written;
}

}  // namespace

Awaitable<Result<Outcome>> DirectSourceHub::detach(MigrationRef migration, ClusterNames clusters, OnDetach on_detach) {
  auto served = co_await serves(*hub_, ocm::manifest_works);
  if (!served) co_return served.error();
  Works works{.served = *served};
  if (works.served) {
    auto config = co_await get_if_exists(*hub_, ocm::klusterlet_configs, cluster_scoped(migration.resting_config()));
    if (!config) co_return config.error();
    // A server that drops the format would not keep anything from being written.
    works.can_rest =
        *config && is_ours(migration, **config) && (*config)->find({"spec", "multipleHubsConfig"}) != nullptr;
  }
  auto& watch = hub_->watches().klusterlet_works;
  HubWatch<KlusterletWork>::Use use{watch, works.served ? clusters.size() : 0};
  co_await use.ready();
  const Detachment detachment{*hub_, works, std::move(migration), std::move(on_detach)};
  auto process = [&](std::string cluster, Slot slot) {
    return detach_one(detachment, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(*hub_, std::move(clusters), process);
}

Awaitable<Result<Outcome>> DirectSourceHub::detach_arrived(MigrationRef migration, ClusterNames clusters,
                                                           std::optional<async::WallTime> here_before) {
  const Detachment detachment{*hub_, Works{}, std::move(migration), {}};
  auto process = [&](std::string cluster, Slot slot) {
    if (here_before)
      return detach_released(*hub_, detachment.migration, std::move(cluster), *here_before, std::move(slot));
    return detach_one(detachment, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster(*hub_, std::move(clusters), process);
}

}  // namespace hubferry::hubagent
