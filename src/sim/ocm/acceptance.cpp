#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/agent_permissions.hpp"
#include "sim/ocm/ensure.hpp"
#include "sim/ocm/hub_controller.hpp"

namespace hubferry::sim {

namespace {

namespace resources = kube::resources;

std::string_view accepted_status(const Object& cluster) {
  const auto* condition = kube::find_condition(cluster, ocm::names::accepted);
  return condition != nullptr ? kube::string_at(*condition, {"status"}) : std::string_view{};
}

/// True if the difference concerns this controller. The status that agents write every minute does not.
bool acceptance_differs(const Object& old, const Object& now) {
  const auto same = [&](std::initializer_list<std::string_view> path) {
    const auto* before = old.find(path);
    const auto* after = now.find(path);
    return before == nullptr || after == nullptr ? before == after : *before == *after;
  };
  return is_accepted(old) != is_accepted(now) || accepted_status(old) != accepted_status(now) ||
         !same({"metadata", "finalizers"}) || !same({"metadata", "deletionTimestamp"}) || !same({"metadata", "uid"});
}

kube::Condition accepted_condition(kube::ConditionStatus status, const char* reason, std::string message) {
  return {ocm::names::accepted, status, reason, std::move(message), 0};
}

/// Accepts and denies clusters: namespace, permissions, and the condition HubAcceptedManagedCluster.
class Acceptance final : public HubController {
 public:
  explicit Acceptance(HubContext& hub) : HubController(hub, "acceptance") {
    follow(hub.clusters, [this](const Key& key, const auto& old, const auto& now) {
      if (now != nullptr && (old == nullptr || acceptance_differs(*old, *now))) queue_.add(key);
    });
    // A deleted namespace is created again; a denial waits until the last work is deleted.
    follow(hub.namespaces, [this](const Key& key, const auto&, const auto& now) {
      if (now == nullptr || now->is_being_deleted()) queue_.add(key);
    });
    follow(hub.works, [this](const Key& key, const auto&, const auto& now) {
      if (now == nullptr && !hub_.has_works(key.ns)) queue_.add(cluster_key(key.ns));
    });
    // Automatic acceptance may have been switched on.
    follow(hub.managers, [this](const Key&, const auto&, const auto&) {
      if (!approves_automatically(hub_)) return;
      hub_.clusters.for_each([&](const Key& key, const auto& cluster) {
        if (!is_accepted(*cluster)) queue_.add(key);
      });
    });
  }

 private:
  Awaitable<Done> reconcile(Key key) override {
    const auto cluster = hub_.clusters.get(key);
    if (cluster == nullptr || cluster->is_being_deleted()) co_return Done{};
    if (is_accepted(*cluster)) {
      auto done = co_await accept(*cluster);
      co_return done;
    }
    // Only once: a cluster that was accepted before and is not now was denied by an administrator.
    // As the real one: also a cluster that an administrator has denied before.
    const bool is_new = cluster->annotation(ocm::names::accepted_on_annotation).empty();
    if (is_new && approves_automatically(hub_)) {
      auto done = co_await accept_automatically(*cluster);
      co_return done;
    }
    if (accepted_status(*cluster).empty() || accepted_status(*cluster) == "False") co_return Done{};
    auto done = co_await deny(*cluster);
    co_return done;
  }

  Awaitable<Done> accept_automatically(Object cluster) {
    const auto time = async::format_time(hub_.env.clock.wall_now());
    kube::Mutation mutate = [time](json::object& object) {
      auto& annotations = kube::object_in(kube::object_in(object, "metadata"), "annotations");
      if (annotations.contains(ocm::names::accepted_on_annotation)) return false;
      annotations[ocm::names::accepted_on_annotation] = time;
      kube::object_in(object, "spec")["hubAcceptsClient"] = true;
      return true;
    };
    kube::EditOptions how;
    auto written = co_await kube::edit(hub_.api, ocm::managed_clusters, cluster, std::move(mutate), how);
    if (!written && written.error().kind != kube::ErrorKind::not_found) co_return written.error();
    co_return Done{};
  }

  Awaitable<Done> accept(Object cluster) {
    const bool was_accepted = accepted_status(cluster) == "True";
    const std::string name{cluster.name()};
    auto done = co_await prepare(cluster);
    if (!done) {
      // Transient errors are not reported in the condition.
      const bool permanent =
          done.error().kind == kube::ErrorKind::forbidden || done.error().kind == kube::ErrorKind::invalid;
      if (permanent) {
        auto condition = accepted_condition(kube::ConditionStatus::no, "Error", done.error().message);
        co_await hub_.set_condition(cluster, condition);
      }
      co_return done.error();
    }
    if (was_accepted) co_return Done{};
    auto condition =
        accepted_condition(kube::ConditionStatus::yes, "HubClusterAdminAccepted", "Accepted by hub cluster admin");
    const auto current = hub_.clusters.get(cluster_key(name));
    if (current != nullptr) cluster = *current;
    auto reported = co_await hub_.set_condition(cluster, condition);
    if (reported)
      hub_.record_event(cluster, kube::EventType::normal, "ManagedClusterAccepted",
                        "managed cluster " + name + " is accepted by hub cluster admin");
    co_return reported;
  }

  /// Creates everything that an accepted cluster needs on its hub.
  Awaitable<Done> prepare(Object cluster) {
    const std::string name{cluster.name()};
    if (!kube::has_finalizer(cluster, cleanup_finalizer)) {
      auto held = co_await kube::add_finalizer(hub_.api, ocm::managed_clusters, cluster_key(name), cleanup_finalizer);
      if (!held) co_return held.error();
      if (held->is_being_deleted()) co_return Done{};
    }
    json::object space{
        {"metadata", json::object{{"name", name}, {"labels", json::object{{ocm::names::cluster_name_label, name}}}}}};
    auto made = co_await ensure(hub_.api, resources::namespaces, std::move(space));
    if (!made) co_return made.error();
    if (made->object.is_being_deleted()) {
      auto unblocked = co_await unblock_work_binding(name);  // it would block the deletion of the namespace
      if (!unblocked) co_return unblocked.error();
      co_return still_deleting("namespace " + name);
    }
    auto role = co_await ensure(hub_.api, resources::cluster_roles, agent_permissions::accepted_role(name));
    if (!role) co_return role.error();
    auto bound = co_await ensure(hub_.api, resources::cluster_role_bindings, agent_permissions::role_binding(name));
    if (!bound) co_return bound.error();
    auto registration =
        co_await ensure(hub_.api, resources::role_bindings, agent_permissions::registration_binding(name));
    if (!registration) co_return registration.error();
    auto work = co_await ensure(hub_.api, resources::role_bindings, agent_permissions::work_binding(name));
    if (!work) co_return work.error();
    if (!work->object.is_being_deleted()) co_return Done{};
    // Denied before, and kept by its works: delete it, and create it again.
    auto unblocked = co_await unblock_work_binding(name);
    if (!unblocked) co_return unblocked.error();
    co_return still_deleting("the old RoleBinding for works");
  }

  Awaitable<Done> deny(Object cluster) {
    const std::string name{cluster.name()};
    auto role = co_await ensure(hub_.api, resources::cluster_roles, agent_permissions::denied_role(name));
    if (!role) co_return role.error();
    const Key registration_key{name, agent_permissions::registration_binding_name(name)};
    auto registration = co_await ensure_gone(hub_.api, resources::role_bindings, registration_key);
    if (!registration) co_return registration.error();
    const Key work_key{name, agent_permissions::work_binding_name(name)};
    auto work = co_await ensure_gone(hub_.api, resources::role_bindings, work_key);
    if (!work) co_return work.error();
    if (hub_.has_works(name)) co_return Done{};  // reconciled again when the last one is deleted
    auto unblocked = co_await unblock_work_binding(name);
    if (!unblocked) co_return unblocked.error();
    auto condition =
        accepted_condition(kube::ConditionStatus::no, "HubClusterAdminDenied", "Denied by hub cluster admin");
    auto reported = co_await hub_.set_condition(cluster, condition);
    if (reported)
      hub_.record_event(cluster, kube::EventType::normal, "ManagedClusterDenied",
                        "managed cluster " + name + " is denied by hub cluster admin");
    co_return reported;
  }

  Awaitable<Done> unblock_work_binding(std::string name) {
    Key key{name, agent_permissions::work_binding_name(name)};
    auto unblocked =
        co_await kube::remove_finalizer(hub_.api, resources::role_bindings, key, agent_permissions::work_finalizer);
    if (!unblocked) co_return unblocked.error();
    co_return Done{};
  }

  static kube::Error still_deleting(const std::string& what) {
    return {kube::ErrorKind::retry_later, 0, {}, what + " is still being deleted", std::nullopt};
  }
};

}  // namespace

std::unique_ptr<HubController> make_acceptance(HubContext& hub) {
  return std::make_unique<Acceptance>(hub);
}

}  // namespace hubferry::sim
