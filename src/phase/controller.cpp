#include "hubferry/phase/controller.hpp"

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/work_queue.hpp"
#include "hubferry/phase/driver.hpp"
#include "phase/kind_check.hpp"
#include "phase/own_writes.hpp"

namespace hubferry::phase {

namespace {

using ObjectCache = kube::Cache<kube::Object>;

/// A kind whose changes reconcile resources of ours.
struct MappedKind {
  kube::Resource kind;
  ControllerCore::Mapping keys_of;
  bool ignore_status = false;
  std::unique_ptr<ObjectCache> cache;
  kube::CacheSubscription subscription = {};
};

/// The keys of a work queue; and when a machine comes to rest, what happened to its resource meanwhile is judged.
class JudgedKeys final : public KeySource {
 public:
  JudgedKeys(kube::WorkQueue& queue, OwnWrites& own) : queue_(queue), own_(own) {}

  Awaitable<std::optional<Key>> get() override {
    auto key = co_await queue_.get();
    if (key) own_.begin(*key);
    co_return key;
  }
  void done(const Key& key) override {
    if (own_.finish(key)) queue_.add(key);
    queue_.done(key);
  }
  void add(Key key) override { queue_.add(std::move(key)); }
  void add_after(Key key, async::Duration delay) override { queue_.add_after(std::move(key), delay); }
  void add_rate_limited(Key key) override { queue_.add_rate_limited(std::move(key)); }
  void forget(const Key& key) override { queue_.forget(key); }

 private:
  kube::WorkQueue& queue_;
  OwnWrites& own_;
};

/// True if only the status differs.
bool differ_in_status_only(const kube::Object& old, const kube::Object& now) {
  const auto same = [&](std::string_view field) {
    const auto* before = old.find({"metadata", field});
    const auto* after = now.find({"metadata", field});
    return before == nullptr ? after == nullptr : after != nullptr && *before == *after;
  };
  return old.generation() != 0 && same("generation") && same("labels") && same("annotations") &&
         same("deletionTimestamp");
}

/// The owners of that kind.
std::vector<Key> owners_of(const kube::Object& object, const kube::Resource& kind) {
  std::vector<Key> keys;
  const auto* references = object.find({"metadata", "ownerReferences"});
  if (references == nullptr || !references->is_array()) return keys;
  for (const auto& reference : references->get_array()) {
    if (!reference.is_object()) continue;
    const auto& owner = reference.get_object();
    const auto api_version = kube::string_at(owner, {"apiVersion"});
    // Another version of the same kind is the same object.
    if (kube::string_at(owner, {"kind"}) != kind.kind || api_version.substr(0, api_version.find('/')) != kind.group)
      continue;
    keys.emplace_back(kind.namespaced ? std::string{object.ns()} : std::string{},
                      std::string{kube::string_at(owner, {"name"})});
  }
  return keys;
}

kube::CacheOptions cache_options(const std::string& ns, std::string label_selector) {
  kube::CacheOptions options;
  options.ns = ns;
  options.label_selector = std::move(label_selector);
  return options;
}

}  // namespace

struct ControllerCore::State {
  State(ControllerCore& of, kube::Api& server, kube::Resource of_kind, kube::Env given, ControllerOptions given_options)
      : owner(of),
        api(server),
        kind(std::move(of_kind)),
        options(std::move(given_options)),
        env{given.clock, given.random, given.metrics, given.log.named(options.name)},
        cache(server, kind, cache_options(options.watch_namespace, {}), kube::object_decoder(), env),
        store(server, kind, store_options()),
        queue({.name = options.name, .controller = {}}, env) {}

  KubeStoreOptions store_options() {
    KubeStoreOptions stored;
    stored.cached = [this](const Key& key) -> std::optional<kube::Object> {
      const auto found = cache.get(key);
      return found == nullptr ? std::nullopt : std::optional{*found};
    };
    stored.skip_deleted = options.deletion == Deletion::ignore;
    stored.fence = options.fence;
    stored.on_written = [this](const Key& key, std::string_view version) { own.written(key, version); };
    stored.on_read = [this](const Key& key, std::string_view version) { own.read(key, version); };
    return stored;
  }

  void build() {
    if (driver) return;
    auto& definition = owner.make_definition(store);
    MachineOptions machine_options;
    machine_options.name = options.name;
    machine_options.on_transition = options.on_transition;
    machine.emplace(definition, owner.services(), env, std::move(machine_options));
    DriverOptions driver_options;
    driver_options.max_concurrent = options.max_concurrent;
    driver.emplace(*machine, keys, driver_options);
  }

  [[nodiscard]] bool is_cancelled_by_deletion(const kube::Object& object) const {
    if (options.deletion == Deletion::ignore || !options.survives_deletion) return true;
    return !options.survives_deletion(owner.phase_of(object));
  }

  void changed(const Key& key, const ObjectCache::Pointer& old, const ObjectCache::Pointer& now) {
    owner.changed(old.get(), now.get());
    if (now == nullptr) {
      store.forget(key);
      own.forget(key);
      driver->cancel(key);
      return;
    }
    const bool newly_deleted = now->is_being_deleted() && (old == nullptr || !old->is_being_deleted());
    if (newly_deleted && is_cancelled_by_deletion(*now)) driver->cancel(key);
    if (own.event(key, now->resource_version()) && owner.wants_to_run(*now)) queue.add(key);
  }

  void mapped_changed(const MappedKind& mapped, const ObjectCache::Pointer& object) {
    if (object == nullptr || !mapped.keys_of) return;
    for (auto& key : mapped.keys_of(*object)) queue.add(std::move(key));
  }

  void set_problem(std::string reason) {
    problem = std::move(reason);
    if (options.readiness != nullptr) options.readiness->fail(*problem);
  }

  /// Waits until the kind's status can be used. What cannot be checked is assumed to be fine.
  Awaitable<> wait_for_usable_kind() {
    const Key key{{}, kind.display_name()};
    async::Backoff backoff{{.first = std::chrono::seconds{1}, .most = std::chrono::minutes{1}}, env.clock, env.random};
    for (;;) {
      auto definition = co_await api.get(kube::resources::custom_resource_definitions, key);
      if (!definition && !kube::is_transient(definition.error().kind)) {
        env.log.info("custom resource definition not checked", {{"error", definition.error().describe()}});
        co_return;
      }
      if (definition) {
        auto found = status_problem(*definition, kind, options.phase_source, options.status_fields);
        if (!found) co_return;
        env.log.error("custom resource cannot be used", {{"problem", *found}});
        set_problem(std::move(*found));
      } else {
        env.log.warn("reading the custom resource definition failed, retrying",
                     {{"error", definition.error().describe()}});
      }
      co_await backoff.pause();
    }
  }

  Awaitable<> sync(async::TaskScope& scope) {
    set_problem(kind.display_name() + ": cache not synced yet");
    scope.spawn(cache.run());
    for (auto& mapped : kinds) scope.spawn(mapped->cache->run());
    co_await cache.wait_synced();
    for (auto& mapped : kinds) {
      set_problem(mapped->kind.display_name() + ": cache not synced yet");
      co_await mapped->cache->wait_synced();
    }
    problem.reset();
    if (options.readiness != nullptr) options.readiness->pass();
    env.log.info(options.name + " cache synced", {{"objects", cache.size()}});
  }

  Awaitable<> work(async::TaskScope& scope) {
    set_problem(kind.display_name() + ": custom resource definition not checked yet");
    co_await wait_for_usable_kind();
    for (const auto& task : tasks) scope.spawn(task());
    scope.spawn(queue.run());
    co_await sync(scope);
    const auto follow = [this](const Key& key, const ObjectCache::Pointer& old, const ObjectCache::Pointer& now) {
      changed(key, old, now);
    };
    const auto subscription = cache.subscribe(follow, kube::Replay::existing);
    for (auto& mapped : kinds) {
      const auto follow_mapped = [this, &mapped](const Key&, const ObjectCache::Pointer& old,
                                                 const ObjectCache::Pointer& now) {
        if (mapped->ignore_status && old != nullptr && now != nullptr && differ_in_status_only(*old, *now)) return;
        mapped_changed(*mapped, old);
        mapped_changed(*mapped, now);
      };
      mapped->subscription = mapped->cache->subscribe(follow_mapped);
    }
    for (const auto& restore : restores) co_await restore();
    co_await driver->run();
  }

  ControllerCore& owner;
  kube::Api& api;
  kube::Resource kind;
  ControllerOptions options;
  kube::Env env;
  ObjectCache cache;
  OwnWrites own;
  KubeStore store;
  kube::WorkQueue queue;
  JudgedKeys keys{queue, own};
  std::vector<std::unique_ptr<MappedKind>> kinds;
  std::vector<std::function<Awaitable<>()>> tasks;
  std::vector<std::function<Awaitable<>()>> restores;
  std::optional<MachineCore> machine;
  std::optional<Driver> driver;
  std::optional<std::string> problem = "not started yet";
};

ControllerCore::ControllerCore(kube::Api& api, kube::Resource kind, kube::Env env, ControllerOptions options)
    : state_(std::make_unique<State>(*this, api, std::move(kind), std::move(env), std::move(options))) {}

ControllerCore::~ControllerCore() = default;

const kube::Cache<kube::Object>& ControllerCore::owns(kube::Resource kind) {
  return owns(std::move(kind), {});
}

const kube::Cache<kube::Object>& ControllerCore::owns(kube::Resource kind, std::string label_selector) {
  const auto owners = [this](const kube::Object& object) { return owners_of(object, state_->kind); };
  return watches(std::move(kind), owners, std::move(label_selector));
}

const kube::Cache<kube::Object>& ControllerCore::watches(kube::Resource kind, Mapping keys_of) {
  return watches(std::move(kind), std::move(keys_of), WatchedKind{});
}

const kube::Cache<kube::Object>& ControllerCore::watches(kube::Resource kind, Mapping keys_of,
                                                         std::string label_selector) {
  return watches(std::move(kind), std::move(keys_of), WatchedKind{std::move(label_selector)});
}

const kube::Cache<kube::Object>& ControllerCore::watches(kube::Resource kind, Mapping keys_of, WatchedKind which) {
  auto cache = std::make_unique<ObjectCache>(
      state_->api, kind, cache_options(state_->options.watch_namespace, std::move(which.label_selector)),
      kube::object_decoder(), state_->env);
  state_->kinds.push_back(std::make_unique<MappedKind>(
      MappedKind{std::move(kind), std::move(keys_of), which.ignore_status, std::move(cache)}));
  return *state_->kinds.back()->cache;
}

void ControllerCore::add_task(std::function<Awaitable<>()> task) {
  state_->tasks.push_back(std::move(task));
}

void ControllerCore::before_start(std::function<Awaitable<>()> restore) {
  state_->restores.push_back(std::move(restore));
}

void ControllerCore::build() {
  state_->build();
}

Awaitable<> ControllerCore::run() {
  build();
  auto body = [this](async::TaskScope& scope) { return state_->work(scope); };
  co_await async::with_scope(body);
}

bool ControllerCore::synced() const {
  for (const auto& mapped : state_->kinds)
    if (!mapped->cache->synced()) return false;
  return state_->cache.synced();
}

Awaitable<> ControllerCore::wait_synced() {
  co_await state_->cache.wait_synced();
  for (auto& mapped : state_->kinds) co_await mapped->cache->wait_synced();
}

std::optional<std::string> ControllerCore::not_ready() const {
  return state_->problem;
}

const std::string& ControllerCore::name() const {
  return state_->options.name;
}

void ControllerCore::enqueue(Key key) {
  state_->queue.add(std::move(key));
}

Awaitable<Written> ControllerCore::patch(KubeResource& resource, json::object changes) {
  return state_->store.patch(resource, std::move(changes));
}

void ControllerCore::for_each_cached(const std::function<void(const kube::Object&)>& visit) const {
  state_->cache.for_each([&](const Key&, const ObjectCache::Pointer& object) { visit(*object); });
}

}  // namespace hubferry::phase
