#include "hubagent/annotations.hpp"
#include "hubagent/arrival.hpp"
#include "hubagent/direct_hubs.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/known_clusters.hpp"
#include "hubagent/pause.hpp"
#include "hubagent/selection.hpp"
#include "hubagent/source_return.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

/// How a migration ends on the source: the clusters are deleted here (clean), or returned to this hub (roll_back).
namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

/// Whose finalizers are dropped from an ObservabilityAddon: those of anybody else stay.
constexpr std::string_view observability_domain = "observability.open-cluster-management.io";

/// A detached cluster cannot remove its add-ons itself, and they would block the deletion of its namespace.
Awaitable<Result<>> delete_observability(const Hub& hub, Object addon) {
  auto drop_finalizers = [](json::object& object) { return drop_finalizers_of(object, observability_domain); };
  auto rest = co_await delete_object(hub, ocm::observability_addons, std::move(addon));
  if (!rest) co_return rest.error();
  if (!*rest) co_return Result<>{};
  co_return co_await edit_if_exists(hub, ocm::observability_addons, **rest, drop_finalizers);
}

/// What was copied of the cluster and is still in its namespace: "Secret c1/c1-admin-kubeconfig"; empty: nothing.
Awaitable<Result<std::string>> find_leftover(const Hub& hub, const CarriedResources& kinds, std::string cluster) {
  for (const auto& kind : kinds) {
    if (!kind.resource.namespaced) continue;
    auto objects = co_await list(hub, kind.resource, cluster);
    if (!objects) co_return objects.error();
    for (const auto& object : *objects)
      if (is_selected(kind, cluster, object)) co_return described(kind.resource, object.key());
  }
  co_return std::string{};
}

/// Most hubs have begun to delete the namespace by then, or have done so: then nobody needs to look into it, or to
/// watch it.
constexpr auto usual_delay = std::chrono::milliseconds{500};
/// The same where the hub's shared watch will show it: to wait costs nothing then, and a hub with thousands of clusters
/// takes longer.
constexpr auto watched_delay = std::chrono::seconds{5};

enum class NamespaceEnd { gone, begun, kept, unknown };

/// What the hub's shared watch shows within that time. A namespace that it shows as gone is gone: it was there
/// before the cluster was deleted, and only a later state lacks it.
Awaitable<NamespaceEnd> watch_end(Hub& hub, Key key) {
  const auto spaces = hub.watches().namespaces.current();
  if (spaces == nullptr) {
    co_await hub.env().clock.sleep_for(usual_delay);
    co_return NamespaceEnd::unknown;
  }
  auto is_gone = [](const SeenNamespace* space) { return space == nullptr; };
  const auto deadline = hub.env().clock.now() + watched_delay;
  const auto gone =
      co_await async::before_deadline(hub.env().clock, deadline, spaces->wait_for(key, is_gone, async::never));
  if (gone) co_return NamespaceEnd::gone;
  const auto seen = spaces->get(key);
  co_return seen != nullptr && seen->deletion_time.empty() ? NamespaceEnd::kept : NamespaceEnd::begun;
}

/// Until the deadline; by the shared watch, if it runs.
Awaitable<bool> wait_until_gone_before(Hub& hub, MigrationRef migration, Key key, async::TimePoint deadline) {
  if (const auto spaces = hub.watches().namespaces.current()) {
    auto is_gone = [](const SeenNamespace* space) { return space == nullptr; };
    const auto gone =
        co_await async::before_deadline(hub.env().clock, deadline, spaces->wait_for(key, is_gone, async::never));
    if (gone) co_return true;
    // It may have stalled.
    auto rest = co_await get_if_exists(hub, kube::resources::namespaces, key);
    co_return rest && !*rest;
  }
  auto permit = co_await hub.small_watches().acquire(migration.uid);
  auto is_gone = [](const Object* object) { return object == nullptr; };
  co_return co_await kube::wait_for_object(hub.api(), kube::resources::namespaces, key, is_gone, deadline, hub.env());
}

/// The hub deletes the namespace after the cluster. Credentials must not stay behind in one that it keeps.
Awaitable<Result<>> wait_until_emptied(Hub& hub, MigrationRef migration, const CarriedResources& kinds,
                                       std::string cluster) {
  const Key key = cluster_scoped(cluster);
  auto end = co_await watch_end(hub, key);
  if (end == NamespaceEnd::unknown) {
    auto space = co_await get_if_exists(hub, kube::resources::namespaces, key);
    if (!space) co_return space.error();
    end = !*space ? NamespaceEnd::gone : (*space)->is_being_deleted() ? NamespaceEnd::begun : NamespaceEnd::kept;
  }
  if (end == NamespaceEnd::gone) co_return Result<>{};
  std::string leftover = "objects of the cluster";
  // While it is being deleted, our permissions in it may be gone before the rest.
  if (end == NamespaceEnd::kept) {
    auto found = co_await find_leftover(hub, kinds, cluster);
    if (found && found->empty()) co_return Result<>{};
    if (!found && !found.error().is(ErrorKind::forbidden)) co_return found.error();
    if (found) leftover = *found;
  }
  const Waits::Entry waiting{*hub.waits(), migration.uid, cluster,
                             "namespace on hub " + hub.name() + " is being deleted"};
  const auto deadline = hub.env().clock.now() + hub.options().busy_timeout;
  const bool gone = co_await wait_until_gone_before(hub, std::move(migration), key, deadline);
  if (gone) co_return Result<>{};
  co_return Error{FailureReason::error, "cluster " + cluster + " is deleted from hub " + hub.name() +
                                            ", but the hub keeps its namespace, which has " + leftover +
                                            ": delete what holds the namespace, then the namespace"};
}

/// How clusters are deleted here.
struct Deletion {
  Hub& hub;
  std::vector<PausingKind> kinds;  // served here; without ClusterDeployment
  bool has_deployments;            // ClusterDeployment is served
  CarriedResources carried;
  MigrationRef migration;
  SourceHub::ConfirmArrival confirm;
  SourceHub::OnDeletion on_deletion;
};

/// Proof of arrival is used at once, or obtained again.
constexpr auto proof_lifetime = std::chrono::seconds{10};

Error accepted_again(const Hub& hub, const std::string& cluster) {
  return {FailureReason::cluster_conflict,
          "hub " + hub.name() + " accepts cluster " + cluster +
              " (spec.hubAcceptsClient): somebody has accepted it again, so it was not deleted there"};
}

Error still_attached(const Hub& hub, const std::string& cluster) {
  return {FailureReason::cluster_attached,
          "hub " + hub.name() + " accepts cluster " + cluster + ", which could not be detached there yet"};
}

/// Why the cluster, as it was read, may not be deleted.
std::optional<Error> why_not_deletable(const Deletion& deletion, const std::string& cluster, const Object& object) {
  if (!is_claimed_by(deletion.migration, object)) return not_claimed(deletion.hub, cluster, object);
  if (is_accepted(object))
    return was_detached(deletion.migration, object.json()) ? accepted_again(deletion.hub, cluster)
                                                           : still_attached(deletion.hub, cluster);
  return std::nullopt;
}

/// What has to be seen to before the cluster is deleted, in its namespace.
struct Attached {
  std::vector<Object> deployments;
  std::vector<Object> addons;
  std::vector<std::pair<PausingKind, Object>> machines;

  [[nodiscard]] bool empty() const { return deployments.empty() && addons.empty() && machines.empty(); }
};

Awaitable<Result<Attached>> find_attached(const Deletion& deletion, std::string cluster) {
  std::vector<Resource> resources;
  for (const auto& kind : deletion.kinds) resources.push_back(kind.resource);
  resources.push_back(ocm::observability_addons);
  if (deletion.has_deployments) resources.push_back(ocm::cluster_deployments);
  auto lists = co_await list_each(deletion.hub, std::move(resources), std::move(cluster));
  for (const auto& listed : lists)
    if (!listed) co_return listed.error();
  Attached attached;
  if (deletion.has_deployments) attached.deployments = std::move(*lists.back());
  attached.addons = std::move(*lists[deletion.kinds.size()]);
  for (std::size_t i = 0; i < deletion.kinds.size(); ++i)
    for (auto& object : *lists[i]) attached.machines.emplace_back(deletion.kinds[i], std::move(object));
  co_return attached;
}

/// A ClusterDeployment that was not copied describes another cluster: it must not go with this one.
Result<> check_deployments(const Deletion& deletion, const std::string& cluster, const Attached& attached) {
  for (const auto& deployment : attached.deployments) {
    auto selects = [&](const CarriedKind& kind) {
      return kind.resource == ocm::cluster_deployments && is_selected(kind, cluster, deployment);
    };
    if (std::ranges::any_of(deletion.carried, selects)) continue;
    return Error{FailureReason::cluster_conflict,
                 described(ocm::cluster_deployments, deployment.key()) + " on hub " + deletion.hub.name() +
                     " was not copied, and would be deleted with the namespace: move or delete it first"};
  }
  return {};
}

/// What must be done before the cluster is deleted, and only for one that has arrived. Returns its ClusterDeployments,
/// which deprovision nothing any more.
Awaitable<Result<std::vector<Object>>> prepare_deletion(const Deletion& deletion, const Attached& attached) {
  for (const auto& addon : attached.addons) {
    auto observed = co_await delete_observability(deletion.hub, addon);
    if (!observed) co_return observed.error();
  }
  for (const auto& [kind, machine] : attached.machines) {
    auto prevented = co_await make_harmless(deletion.hub, kind, deletion.migration, machine, may_touch_any);
    if (!prevented) co_return prevented.error();
  }
  std::vector<Object> harmless;
  for (const auto& deployment : attached.deployments) {
    auto made = co_await make_harmless(deletion.hub, *find_pausing(ocm::cluster_deployments), deletion.migration,
                                       deployment, may_touch_any);
    if (!made) co_return made.error();
    if (*made) harmless.push_back(std::move(**made));
  }
  co_return harmless;
}

/// What the deletion of one cluster is decided on.
class Evidence {
 public:
  Evidence(const Deletion& deletion, std::string cluster) : deletion_(deletion), cluster_(std::move(cluster)) {}

  /// Whether the target has the cluster.
  Awaitable<Result<>> look_at_target() {
    auto confirmed = co_await deletion_.confirm(cluster_);
    proven_ = now();
    co_return confirmed;
  }
  Awaitable<Result<>> look_at_target_if_old() {
    if (is_fresh()) co_return Result<>{};
    co_return co_await look_at_target();
  }
  /// Whether this hub may delete it.
  Awaitable<Result<>> look_here() {
    auto found = co_await get_if_exists(deletion_.hub, ocm::managed_clusters, cluster_scoped(cluster_));
    if (!found) co_return found.error();
    seen_ = std::move(*found);
    if (seen_)
      if (auto error = why_not_deletable(deletion_, cluster_, *seen_)) co_return *error;
    co_return Result<>{};
  }
  /// The same as it was when it was compared, without a request: of use only where the next one is a deletion of that
  /// very version. False: nothing is known of it.
  bool recall() {
    seen_ = deletion_.hub.known_clusters().take_denied(cluster_);
    if (seen_ && why_not_deletable(deletion_, cluster_, *seen_)) seen_.reset();
    return seen_.has_value();
  }
  [[nodiscard]] bool is_marked() const {
    return seen_->annotation(annotations::deletion_begun) == deletion_.migration.uid;
  }
  /// Says on the cluster, as it was seen here, that not all of it will be here any more. As good as another look: it
  /// fails if anybody has changed the cluster since.
  Awaitable<kube::Result<Object>> mark() {
    json::object marked = seen_->json();
    set_annotation(marked, annotations::deletion_begun, deletion_.migration.uid);
    auto written = co_await deletion_.hub.api().update(ocm::managed_clusters, std::move(marked));
    if (written) seen_ = *written;
    co_return written;
  }
  [[nodiscard]] bool is_fresh() const { return now() - proven_ <= proof_lifetime; }
  /// As it was seen here; absent: it is deleted already.
  [[nodiscard]] const std::optional<Object>& seen() const { return seen_; }

 private:
  [[nodiscard]] async::TimePoint now() const { return deletion_.hub.env().clock.now(); }

  const Deletion& deletion_;
  std::string cluster_;
  async::TimePoint proven_{};
  std::optional<Object> seen_;
};

/// The attempt starts over, with a new proof.
kube::Error proof_outdated(const Hub& hub) {
  return {ErrorKind::retry_later, 0, "Timeout",
          "hub " + hub.name() + " answered too late: the proof that the target has the cluster was too old by then",
          std::nullopt};
}

/// One attempt, from the proof to the deletion. The proof comes first, then a look at this hub, and both before
/// anything is changed: a source that accepts the cluster again keeps all of it. Its ClusterDeployments are deleted
/// only after another look, on a proof that is still fresh, and in the version that deprovisions nothing. The deletion
/// is conditional on the version of the last look: had the cluster been accepted or claimed by others since, it would
/// fail. So where nothing else is changed, the version that was compared will do: it is the API server that looks.
Awaitable<kube::Result<std::optional<Object>>> attempt_deletion(const Deletion& deletion, std::string cluster,
                                                                std::optional<Error>& refused) {
  const std::optional<Object> nothing_left;
  Evidence evidence{deletion, cluster};
  auto confirmed = co_await evidence.look_at_target();
  const bool recalled = confirmed && evidence.recall();
  if (!recalled) {
    auto looked = co_await evidence.look_here();
    // One that was never detached is, once it is proven on the target.
    const bool never_detached = !looked && looked.error().reason() == FailureReason::cluster_attached;
    if (!looked && (confirmed || !never_detached)) refused = looked.error();
  }
  if (refused || !evidence.seen()) co_return nothing_left;
  if (!confirmed) refused = confirmed.error();
  if (refused) co_return nothing_left;
  if (!evidence.is_fresh()) co_return proof_outdated(deletion.hub);

  auto attached = co_await find_attached(deletion, cluster);
  if (!attached) refused = attached.error();
  if (refused) co_return nothing_left;
  if (recalled && !attached->empty()) {
    auto looked = co_await evidence.look_here();
    if (!looked) refused = looked.error();
    if (refused || !evidence.seen()) co_return nothing_left;
    if (!evidence.is_fresh()) co_return proof_outdated(deletion.hub);
  }
  if (auto checked = check_deployments(deletion, cluster, *attached); !checked) refused = checked.error();
  if (refused) co_return nothing_left;
  auto deployments = co_await prepare_deletion(deletion, *attached);
  if (!deployments) refused = deployments.error();
  if (refused) co_return nothing_left;
  for (const auto& deployment : *deployments) {
    confirmed = co_await evidence.look_at_target_if_old();
    if (confirmed && evidence.is_marked()) confirmed = co_await evidence.look_here();
    if (!confirmed) refused = confirmed.error();
    if (refused || !evidence.seen()) co_return nothing_left;
    if (!evidence.is_marked()) {
      // A rollback must not take the target's copy for one too many once this one is gone.
      auto marked = co_await evidence.mark();
      if (!marked) co_return marked.error();
    }
    if (!evidence.is_fresh()) co_return proof_outdated(deletion.hub);
    auto deleted = co_await delete_as_read(deletion.hub, ocm::cluster_deployments, deployment);
    if (deleted) continue;
    if (kube::is_transient(deleted.error().kind)) co_return deleted.error();
    refused = Error{deleted.error()}.in_context(
        "cannot delete " + described(ocm::cluster_deployments, deployment.key()) + " on hub " + deletion.hub.name());
    co_return nothing_left;
  }
  confirmed = co_await evidence.look_at_target_if_old();
  if (!confirmed) refused = confirmed.error();
  if (refused) co_return nothing_left;
  co_return co_await delete_as_read(deletion.hub, ocm::managed_clusters, *evidence.seen());
}

Awaitable<Result<>> clean_source_cluster(const Deletion& deletion, std::string cluster, Slot slot) {
  auto& hub = deletion.hub;
  std::optional<Object> rest;
  RetryBudget budget{hub};
  // It starts over, with a new proof, if the hub is busy or somebody has changed the ManagedCluster meanwhile.
  while (true) {
    std::optional<Error> refused;
    auto deleted = co_await attempt_deletion(deletion, cluster, refused);
    if (refused) co_return *refused;
    if (deleted) {
      rest = std::move(*deleted);
      break;
    }
    const bool again = co_await budget.wait_before_retry(deleted.error());
    if (!again)
      co_return Error{deleted.error()}.in_context(
          "cannot delete " + described(ocm::managed_clusters, cluster_scoped(cluster)) + " on hub " + hub.name());
  }
  slot.release();
  if (rest) {
    auto gone = co_await wait_until_deleted(hub, deletion.migration, *rest);
    if (!gone) co_return gone.error();
  }
  if (deletion.on_deletion) deletion.on_deletion(cluster);
  co_return co_await wait_until_emptied(hub, deletion.migration, deletion.carried, cluster);
}

/// Removes the claim and what came with it, and accepts the cluster again where it had been detached. One write.
bool drop_claim(json::object& object, const MigrationRef& migration, bool accept) {
  if (annotation_text(object, migrating_annotation) != migration.uid) return false;
  drop_annotation(object, migrating_annotation);
  if (annotation_text(object, disable_auto_import_annotation) == migration.uid)
    drop_annotation(object, disable_auto_import_annotation);
  const std::string before{annotation_text(object, annotations::klusterlet_config_before)};
  const auto config = annotation_text(object, klusterlet_config_annotation);
  if (config == migration.klusterlet_config(before) || config == migration.resting_config()) {
    if (before.empty())
      drop_annotation(object, klusterlet_config_annotation);
    else
      set_annotation(object, klusterlet_config_annotation, before);
  }
  drop_annotation(object, annotations::klusterlet_config_before);
  if (annotation_text(object, accepted_on_annotation) == migration.uid) drop_annotation(object, accepted_on_annotation);
  drop_annotation(object, annotations::returning);
  drop_annotation(object, annotations::detached_by);
  drop_annotation(object, annotations::deletion_begun);
  if (accept) kube::object_in(object, "spec")["hubAcceptsClient"] = true;
  return true;
}

Awaitable<Result<>> roll_back_source_cluster(Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                             Stage stage, std::string cluster, Slot slot, Heartbeats& heartbeats) {
  slot = co_await hub.settle(migration, cluster, std::move(slot));
  const bool was_detached = stage == Stage::registering;
  if (was_detached) {
    auto accepted = co_await accept_again(hub, migration, cluster);
    if (!accepted) co_return accepted.error();
    slot.release();
    auto own_slot = co_await hub.slot();
    auto returned = co_await wait_for_return(hub, migration, cluster, std::move(own_slot), heartbeats);
    if (!returned) co_return returned.error();
    slot = co_await hub.slot();
  }
  auto resumed = co_await resume_all(hub, std::move(kinds), migration, cluster);
  if (!resumed) co_return resumed.error();
  // Without a ManagedCluster there is nothing to undo.
  auto found = co_await get_if_exists(hub, ocm::managed_clusters, cluster_scoped(cluster));
  if (!found) co_return found.error();
  if (!*found) co_return Result<>{};
  auto mutate = [&](json::object& object) { return drop_claim(object, migration, was_detached); };
  auto dropped = co_await edit_if_exists(hub, ocm::managed_clusters, **found, mutate);
  slot.release();
  co_return dropped;
}

}  // namespace

Awaitable<Result<Outcome>> DirectSourceHub::clean(MigrationRef migration, ClusterNames clusters, ConfirmArrival confirm,
                                                  OnDeletion on_deletion) {
  auto& hub = *hub_;
  auto synced = co_await wait_for_cluster_cache(hub);
  if (!synced) co_return synced.error();
  auto kinds = co_await served_pausing_kinds(hub);
  if (!kinds) co_return kinds.error();
  auto carried = co_await served_carried_kinds(hub);
  if (!carried) co_return carried.error();
  const auto is_deployment = [](const PausingKind& kind) { return kind.resource == ocm::cluster_deployments; };
  const bool has_deployments = std::erase_if(*kinds, is_deployment) > 0;
  const Deletion deletion{hub,
                          std::move(*kinds),
                          has_deployments,
                          std::move(*carried),
                          std::move(migration),
                          std::move(confirm),
                          std::move(on_deletion)};
  HubWatch<SeenNamespace>::Use use{hub.watches().namespaces, clusters.size()};
  co_await use.ready();
  auto process = [&](std::string cluster, Slot slot) {
    return clean_source_cluster(deletion, std::move(cluster), std::move(slot));
  };
  co_return co_await for_each_cluster_in_time(hub, std::move(clusters), process);
}

Awaitable<Result<Outcome>> DirectSourceHub::roll_back(MigrationRef migration, Stage stage, ClusterNames clusters) {
  auto& hub = *hub_;
  auto kinds = co_await served_pausing_kinds(hub);
  if (!kinds) co_return kinds.error();
  Result<Outcome> outcome{Outcome{}};
  Heartbeats heartbeats{hub};
  auto process = [&](std::string cluster, Slot slot) {
    return roll_back_source_cluster(hub, *kinds, migration, stage, std::move(cluster), std::move(slot), heartbeats);
  };
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    if (stage == Stage::registering) scope.spawn(heartbeats.run());
    outcome = co_await for_each_cluster(hub, std::move(clusters), process);
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
  co_return outcome;
}

}  // namespace hubferry::hubagent
