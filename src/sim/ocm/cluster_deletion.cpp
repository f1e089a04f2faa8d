#include <array>

#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/agent_permissions.hpp"
#include "sim/ocm/ensure.hpp"
#include "sim/ocm/hub_controller.hpp"

namespace hubferry::sim {

namespace {

namespace resources = kube::resources;

/// The import controller keeps the namespace of a cluster that is gone while it holds one of these.
const std::array<const kube::Resource*, 2> kept_for{&ocm::cluster_deployments, &ocm::managed_cluster_addons};
constexpr std::chrono::seconds look_again{5};

/// Deletes what the hub created for a ManagedCluster that is being deleted, then removes its finalizer. The namespace
/// is deleted after the cluster.
class Deletion final : public HubController {
 public:
  explicit Deletion(HubContext& hub) : HubController(hub, "deletion") {
    follow(hub.clusters, [this](const Key& key, const auto& old, const auto& now) {
      if (now == nullptr || (now->is_being_deleted() && (old == nullptr || !old->is_being_deleted()))) queue_.add(key);
    });
    follow(hub.namespaces, [this](const Key& key, const auto& old, const auto& now) {
      if (old == nullptr && now != nullptr) queue_.add(key);
    });
  }

 private:
  Awaitable<Done> reconcile(Key key) override {
    const auto cluster = hub_.clusters.get(key);
    if (cluster == nullptr) co_return co_await delete_namespace(std::move(key));
    if (!cluster->is_being_deleted() || !kube::has_finalizer(*cluster, cleanup_finalizer)) co_return Done{};
    const auto& name = key.name;
    auto worked = co_await delete_works(*cluster);
    if (!worked) co_return worked.error();
    const Key bootstrap{{}, import_names::bootstrap_binding(name)};
    auto unbound = co_await ensure_gone(hub_.api, resources::cluster_role_bindings, bootstrap);
    if (!unbound) co_return unbound.error();
    const Key role{{}, agent_permissions::role_name(name)};
    auto bound = co_await ensure_gone(hub_.api, resources::cluster_role_bindings, role);
    if (!bound) co_return bound.error();
    auto allowed = co_await ensure_gone(hub_.api, resources::cluster_roles, role);
    if (!allowed) co_return allowed.error();
    auto removed = co_await kube::remove_finalizer(hub_.api, ocm::managed_clusters, key, cleanup_finalizer);
    if (!removed) co_return removed.error();
    co_return Done{};
  }

  /// The agent deletes what its works deployed. The import controller does not wait for one that is denied or not
  /// Available: then the works go, and what they deployed stays.
  Awaitable<Done> delete_works(Object cluster) {
    const std::string name{cluster.name()};
    const bool agent_gone = !is_accepted(cluster) || !kube::is_condition_true(cluster, ocm::names::available);
    const bool forced = agent_gone && hub_.options.import_controller != ImportController::none;
    const auto works = hub_.works.lookup("namespace", name);
    for (const auto& work : works) {
      if (forced) {
        auto freed = co_await kube::remove_finalizer(hub_.api, ocm::manifest_works, work->key(),
                                                     ocm::names::work_cleanup_finalizer);
        if (!freed) co_return freed.error();
      }
      auto gone = co_await ensure_gone(hub_.api, ocm::manifest_works, work->key());
      if (!gone) co_return gone.error();
    }
    if (works.empty()) co_return Done{};
    co_return kube::Error{kube::ErrorKind::retry_later, 0, {}, "works of " + name + " are left", std::nullopt};
  }

  Awaitable<Done> delete_namespace(Key key) {
    const auto& name = key.name;
    auto space = co_await hub_.api.get(resources::namespaces, key);
    if (!space && space.error().kind == kube::ErrorKind::not_found) co_return Done{};
    if (!space) co_return space.error();
    // A namespace without the label existed before the cluster, and is not ours.
    if (space->label(ocm::names::cluster_name_label) != name) co_return Done{};
    auto cluster = co_await hub_.api.get(ocm::managed_clusters, key);
    if (cluster) co_return Done{};
    if (cluster.error().kind != kube::ErrorKind::not_found) co_return cluster.error();
    if (!space->is_being_deleted()) {
      auto kept = co_await is_kept(name);
      if (!kept) co_return kept.error();
      if (*kept) {
        queue_.add_after(key, look_again);
        co_return Done{};
      }
    }
    // No agent is left to process works: their permission must not block the deletion of the namespace.
    const Key work{name, agent_permissions::work_binding_name(name)};
    auto unblocked =
        co_await kube::remove_finalizer(hub_.api, resources::role_bindings, work, agent_permissions::work_finalizer);
    if (!unblocked) co_return unblocked.error();
    auto gone = co_await ensure_gone(hub_.api, resources::namespaces, key);
    if (!gone) co_return gone.error();
    // With backoff until it is gone: the acceptance, which saw the cluster before its deletion, may have created the
    // RoleBinding after it was looked for above.
    co_return kube::Error{
        kube::ErrorKind::retry_later, 0, {}, "namespace " + name + " is still being deleted", std::nullopt};
  }

  Awaitable<kube::Result<bool>> is_kept(std::string name) {
    for (const auto* kind : kept_for) {
      kube::ListOptions inside;
      inside.ns = name;
      auto found = co_await hub_.api.list_all(*kind, inside);
      if (found && !found->empty()) co_return true;
      const bool served = found || (found.error().kind != kube::ErrorKind::not_found &&
                                    found.error().kind != kube::ErrorKind::unsupported);
      if (!found && served) co_return found.error();
    }
    co_return false;
  }
};

}  // namespace

std::unique_ptr<HubController> make_deletion(HubContext& hub) {
  return std::make_unique<Deletion>(hub);
}

}  // namespace hubferry::sim
