#include "hubferry/migration/controller.hpp"

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/work_queue.hpp"
#include "hubferry/phase/driver.hpp"
#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

using Pointer = kube::Cache<kube::Object>::Pointer;

std::optional<Migration> view_of(const Pointer& object) {
  if (object == nullptr) return std::nullopt;
  return Migration{phase::KubeResource{*object}};
}

const Migration* address(const std::optional<Migration>& migration) {
  return migration ? &*migration : nullptr;
}

}  // namespace

struct Controller::State {
  State(kube::Api& global, hubs::Hubs& hubs, ControllerOptions options, kube::Env given)
      : api(global),
        env{given.clock, given.random, given.metrics, given.log.named("migration")},
        cache(global, managed_cluster_migrations, cache_options(options), kube::object_decoder(), env),
        store(global, managed_cluster_migrations, store_options()),
        admission(options.max_concurrent),
        reporter(global, options.instance, env),
        services{global, hubs, store, admission, reporter, options, env},
        queue({.name = "migration", .controller = {}}, env) {
    define(definition, store);
    phase::MachineOptions machine_options;
    machine_options.name = "migration";
    machine_options.on_transition = [this](const phase::Transition& transition) { reporter.moved(transition); };
    machine.emplace(definition, services, env, std::move(machine_options));
    phase::DriverOptions driver_options;
    // Whoever waits in Pending has a machine too: how many work at once is the admission's business.
    driver_options.max_concurrent = 1'000'000;
    driver.emplace(*machine, keys, driver_options);
  }

  static kube::CacheOptions cache_options(const ControllerOptions& options) {
    kube::CacheOptions cached;
    cached.ns = options.watch_namespace;
    return cached;
  }

  phase::KubeStoreOptions store_options() {
    phase::KubeStoreOptions store_options;
    store_options.cached = [this](const kube::Key& key) -> std::optional<kube::Object> {
      const auto found = cache.get(key);
      return found == nullptr ? std::nullopt : std::optional{*found};
    };
    // A migration that is being deleted has to be undone first.
    store_options.skip_deleted = false;
    return store_options;
  }

  void changed(const kube::Key& key, const Pointer& old_object, const Pointer& new_object) {
    const auto old = view_of(old_object);
    const auto now = view_of(new_object);
    reporter.see(address(old), address(now));
    if (!now) {
      store.forget(key);
      reporter.forget(key);
      if (old) admission.forget(std::string{old->object.uid()});
      driver->cancel(key);
      return;
    }
    if (old && old->object.uid() != now->object.uid()) admission.forget(std::string{old->object.uid()});
    admission.see(*now);
    const bool newly_deleted = now->is_being_deleted() && (!old || !old->is_being_deleted());
    const auto phase = now->phase();
    // What is being brought to its end goes on; everything else stops where it is, and turns back.
    if (newly_deleted && !survives_deletion(phase)) driver->cancel(key);
    if (!is_terminal(phase) || now->asks_for_rollback() || now->is_held_back()) queue.add(key);
  }

  /// Which clusters belong to the migrations that a predecessor began: not what their specs say by now.
  Awaitable<> restore_claims() {
    std::vector<Migration> active;
    cache.for_each([&](const kube::Key&, const Pointer& object) {
      auto migration = view_of(object);
      if (is_active(migration->phase())) active.push_back(std::move(*migration));
    });
    async::Backoff backoff{{}, env.clock, env.random};
    for (const auto& migration : active) {
      auto ledger = co_await read_ledger(api, migration);
      while (!ledger && ledger.error().may_recover()) {
        co_await backoff.pause();
        ledger = co_await read_ledger(api, migration);
      }
      if (ledger && *ledger && !(**ledger).all.empty())
        admission.restore(std::string{migration.object.uid()}, (**ledger).all);
    }
  }

  Awaitable<> work(async::TaskScope& scope) {
    scope.spawn(cache.run());
    scope.spawn(reporter.run());
    scope.spawn(queue.run());
    co_await cache.wait_synced();
    const auto follow = [this](const kube::Key& key, const Pointer& old, const Pointer& now) {
      changed(key, old, now);
    };
    const auto subscription = cache.subscribe(follow, kube::Replay::existing);
    co_await restore_claims();
    services.began = env.clock.wall_now();
    co_await driver->run();
  }

  kube::Api& api;
  kube::Env env;
  kube::Cache<kube::Object> cache;
  phase::KubeStore store;
  Admission admission;
  Reporter reporter;
  Services services;
  kube::WorkQueue queue;
  phase::WorkQueueSource keys{queue};
  Definition definition;
  std::optional<phase::Machine<Services, Migration>> machine;
  std::optional<phase::Driver> driver;
};

Controller::Controller(kube::Api& global, hubs::Hubs& hubs, ControllerOptions options, kube::Env env)
    : state_(std::make_unique<State>(global, hubs, std::move(options), std::move(env))) {}

Controller::~Controller() = default;

async::Awaitable<> Controller::run() {
  auto body = [this](async::TaskScope& scope) { return state_->work(scope); };
  co_await async::with_scope(body);
}

bool Controller::synced() const {
  return state_->cache.synced();
}

async::Awaitable<> Controller::wait_synced() {
  return state_->cache.wait_synced();
}

const phase::DefinitionBase& Controller::definition() const {
  return state_->definition;
}

}  // namespace hubferry::migration
