#include "hubferry/migration/controller.hpp"

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/hubagent/hub.hpp"
#include "hubferry/phase/controller.hpp"
#include "migration/definition.hpp"
#include "migration/upkeep.hpp"

namespace hubferry::migration {

struct Controller::State {
  State(kube::Api& global, hubs::Hubs& hubs, ControllerOptions options, kube::Env given)
      : api(global),
        env{given.clock, given.random, given.metrics, given.log.named("migration")},
        admission(options.max_concurrent),
        reporter(global, options.instance, env),
        upkeep(global, reporter, env),
        cut_overs(env.metrics),
        services{global, hubs, admission, reporter, cut_overs, options, env},
        controller(global, managed_cluster_migrations, services, given, controller_options(options)) {
    declare(controller.definition);
    controller.definition.put_phase = [this](Migration& migration, const Phase& phase) {
      migration.set_phase(phase);
      put_summary(migration, env.clock.wall_now());
    };
    controller.on_change = [this](const Migration* old, const Migration* now) { changed(old, now); };
    controller.add_task([this] { return reporter.run(); });
    controller.add_task([this] { return upkeep.run(); });
    controller.add_task([this] { return resume_after_recovery(); });
    controller.before_start([this] { return restore_claims(); });
    controller.build();
  }

  phase::ControllerOptions controller_options(const ControllerOptions& options) {
    phase::ControllerOptions made;
    // What was proven, and for which clusters, must not be forgotten.
    made.status_fields = {"selection", "cutOverTime", "lateDetachmentTime"};
    made.name = "migration";
    made.watch_namespace = options.watch_namespace;
    // A migration that waits in Pending has a machine too: how many work at once is decided by the admission.
    made.max_concurrent = 1'000'000;
    // A migration that is being deleted has to be undone first.
    made.deletion = phase::Deletion::handle;
    made.survives_deletion = [](const Phase& phase) { return survives_deletion(phase); };
    made.on_transition = [this, also = options.on_transition](const phase::Transition& transition) {
      reporter.moved(transition);
      if (also) also(transition);
    };
    made.readiness = options.readiness;
    made.fence = options.fence;
    return made;
  }

  void changed(const Migration* old, const Migration* now) {
    reporter.see(old, now);
    const bool replaced = old != nullptr && now != nullptr && old->object.uid() != now->object.uid();
    if (old != nullptr && (now == nullptr || replaced)) {
      admission.forget(std::string{old->object.uid()});
      services.unwritten_ledgers.erase(std::string{old->object.uid()});
      services.claimed_ledgers.erase(std::string{old->object.uid()});
      services.tried_secrets.erase(std::string{old->object.uid()});
      services.started.erase(std::string{old->object.uid()});
      services.open_credentials.erase(std::string{old->object.uid()});
    }
    if (now == nullptr) {
      reporter.forget(old->object.key());
      upkeep.forget(old->object.key());
    } else {
      admission.see(*now);
      upkeep.see(replaced ? nullptr : old, *now);
    }
  }

  /// What is pending because of a hub does not wait for its next round once a hub is back.
  Awaitable<> resume_after_recovery() {
    for (;;) {
      co_await services.hubs.troubles.recovered();
      controller.for_each([this](const Migration& migration) {
        if (migration.is_cleanup_pending()) controller.enqueue(migration.object.key());
      });
    }
  }

  /// Which clusters belong to the migrations that a predecessor began: not what their specs say by now.
  Awaitable<> restore_claims() {
    std::vector<Migration> active;
    controller.for_each([&](Migration migration) {
      if (is_active(migration.phase())) active.push_back(std::move(migration));
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
    services.began = env.clock.wall_now();
    services.settled = async::later(env.clock.now(), hubagent::longest_request);
    services.started.clear();
  }

  kube::Api& api;
  kube::Env env;
  Admission admission;
  Reporter reporter;
  Upkeep upkeep;
  CutOvers cut_overs;
  Services services;
  phase::Controller<Services, Migration> controller;
};

Controller::Controller(kube::Api& global, hubs::Hubs& hubs, ControllerOptions options, kube::Env env)
    : state_(std::make_unique<State>(global, hubs, std::move(options), std::move(env))) {}

Controller::~Controller() = default;

async::Awaitable<> Controller::run() {
  return state_->controller.run();
}

bool Controller::synced() const {
  return state_->controller.synced();
}

async::Awaitable<> Controller::wait_synced() {
  return state_->controller.wait_synced();
}

}  // namespace hubferry::migration
