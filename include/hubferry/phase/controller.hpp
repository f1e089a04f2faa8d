#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/obs/health.hpp"
#include "hubferry/phase/kube_store.hpp"
#include "hubferry/phase/machine.hpp"

namespace hubferry::kube {
template <typename T>
class Cache;
}

namespace hubferry::phase {

/// What happens to a machine whose resource is being deleted.
enum class Deletion {
  ignore,  // the resource counts as gone: its machine is cancelled
  handle,  // its machine is cancelled where it waits and reconciles again; handlers look at object.is_being_deleted()
};

/// Where a machine's phase and the States of its handlers are kept.
enum class PhaseSource {
  status,  // status.phase and status.state: for kinds of our own
  /// Nowhere: for kinds of another system, whose status has no such fields. phase() of the resource type derives the
  /// phase from what the object says (its annotations); handlers begin with an empty State in every reconcile.
  derived,
};

struct ControllerOptions {
  std::string name;                  // in logs, metrics and the work queue
  std::string watch_namespace = {};  // empty: all
  /// Machines at once. One that waits inside a handler counts, and costs only memory.
  std::size_t max_concurrent = 1000;
  Deletion deletion = Deletion::ignore;
  PhaseSource phase_source = PhaseSource::status;
  /// Fields of the status, besides the phase, without which decisions would be wrong: while the kind's definition
  /// prunes one of them, as an older one does, the controller is not ready.
  std::vector<std::string> status_fields{};
  /// Deletion::handle: the phases that are not cancelled, because they bring the work to its end anyway.
  std::function<bool(const Phase&)> survives_deletion = {};
  /// See MachineOptions.
  std::function<void(const Transition&)> on_transition = {};
  /// The fence of the leader that runs it, usually its LeaderElector: see KubeStoreOptions. May be null; outlives the
  /// controller.
  kube::Fence* fence = nullptr;
  /// Fails, with the reason, from the start of run() until all caches are synced. May be null; outlives the controller.
  obs::CheckState* readiness = nullptr;
};

/// Which objects of another kind reconcile ours, and which of their changes.
struct WatchedKind {
  std::string label_selector = {};
  /// A change of the status only (metadata.generation, labels and annotations are as before) reconciles nothing.
  bool ignore_status = false;
};

/// A controller without the types of services and resource: cache, work queue, status store, machine and driver of one
/// kind of custom resource, wired up. See Controller.
class ControllerCore {
 public:
  /// The keys of our resources that an object of another kind concerns.
  using Mapping = std::function<std::vector<Key>(const kube::Object&)>;

  ControllerCore(const ControllerCore&) = delete;
  ControllerCore& operator=(const ControllerCore&) = delete;
  virtual ~ControllerCore();

  // To be called before build().

  /// Reconciles the owner when an object of this kind changes that one of our resources owns (ownerReferences).
  /// Returns the cache of that kind, for handlers to read: it may be behind, and is synced before the first machine.
  const kube::Cache<kube::Object>& owns(kube::Resource kind);
  const kube::Cache<kube::Object>& owns(kube::Resource kind, std::string label_selector);
  /// Reconciles the resources that `keys_of` names when an object of this kind changes.
  const kube::Cache<kube::Object>& watches(kube::Resource kind, Mapping keys_of);
  const kube::Cache<kube::Object>& watches(kube::Resource kind, Mapping keys_of, std::string label_selector);
  const kube::Cache<kube::Object>& watches(kube::Resource kind, Mapping keys_of, WatchedKind which);
  /// Runs beside the controller, from its start to its end.
  void add_task(std::function<Awaitable<>()> task);
  /// Runs when the caches are synced, before the first machine: restores what a predecessor left.
  void before_start(std::function<Awaitable<>()> restore);

  /// Fills in the definition's defaults and builds the machine. Throws DefinitionError. run() does it if nobody has.
  void build();

  /// Works until cancelled; then nothing is left running, and everything that a successor needs is in the API. For the
  /// leader only: losing the lead must cancel it. A kind whose status cannot be used (no status subresource, or a
  /// schema that prunes status.state) is reported, and waited for until that is repaired.
  Awaitable<> run();

  /// True once all its caches are.
  [[nodiscard]] bool synced() const;
  Awaitable<> wait_synced();
  /// Why it cannot work yet; nullopt: it can.
  [[nodiscard]] std::optional<std::string> not_ready() const;
  [[nodiscard]] const std::string& name() const;
  /// Reconciles this resource soon.
  void enqueue(Key key);
  /// For handlers: changes the resource outside of its status, by a merge patch. See KubeStore::patch().
  Awaitable<Written> patch(KubeResource& resource, json::object changes);

 protected:
  ControllerCore(kube::Api& api, kube::Resource kind, kube::Env env, ControllerOptions options);

  /// The definition, with its resources kept in `store`, normalized.
  virtual DefinitionBase& make_definition(KubeStore& store) = 0;
  virtual void* services() = 0;
  /// Old is null for a new object, now for a deleted one.
  virtual void changed(const kube::Object* old, const kube::Object* now) = 0;
  [[nodiscard]] virtual Phase phase_of(const kube::Object& object) const = 0;
  /// False for an ended machine that nothing asks to resume.
  [[nodiscard]] virtual bool wants_to_run(const kube::Object& object) const = 0;

  void for_each_cached(const std::function<void(const kube::Object&)>& visit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A controller: watches one kind of custom resource and runs a phase machine for each object.
///
///   phase::Controller<Services, Backup> controller{api, backups, services, env, {.name = "backup"}};
///   define(controller.definition);                  // phases, transitions, handlers
///   controller.owns(kube::resources::config_maps);  // and other kinds whose changes matter
///   co_await controller.run();
///
/// A change of the resource reconciles it at once. The echo of the machine's own status write does not: it would bypass
/// the delay after which a handler wants to be entered again.
/// `Resource` is KubeResource, or derived from it and made from one.
/// Lifetime: api, services and the references in env outlive it. Executor: one loop.
template <typename Services, std::derived_from<KubeResource> Resource>
class Controller : public ControllerCore {
 public:
  Controller(kube::Api& api, kube::Resource kind, Services& services, kube::Env env, ControllerOptions options)
      : ControllerCore(api, std::move(kind), std::move(env), std::move(options)), services_(services) {}

  /// To be filled before build(), without fetch and persist, which are the controller's.
  DefaultDefinition<Services, Resource> definition;
  /// Sees every change of a resource, old and new, before it is reconciled. Must not block. Set before run().
  std::function<void(const Resource* old, const Resource* now)> on_change = {};

  /// The resources as the cache has them.
  void for_each(const std::function<void(Resource)>& visit) const {
    for_each_cached([&](const kube::Object& object) { visit(view(object)); });
  }

 private:
  static Resource view(const kube::Object& object) { return Resource(KubeResource{object}); }

  DefinitionBase& make_definition(KubeStore& store) override {
    keep_in(definition, store);
    definition.normalize();
    return definition;
  }
  void* services() override { return &services_; }
  void changed(const kube::Object* old, const kube::Object* now) override {
    if (!on_change) return;
    const auto before = old != nullptr ? std::optional{view(*old)} : std::nullopt;
    const auto after = now != nullptr ? std::optional{view(*now)} : std::nullopt;
    on_change(before ? &*before : nullptr, after ? &*after : nullptr);
  }
  [[nodiscard]] Phase phase_of(const kube::Object& object) const override { return view(object).phase(); }
  [[nodiscard]] bool wants_to_run(const kube::Object& object) const override {
    const auto resource = view(object);
    return !definition.tables().is_terminal(resource.phase()) || definition.resumption(resource).has_value();
  }

  Services& services_;
};

}  // namespace hubferry::phase
