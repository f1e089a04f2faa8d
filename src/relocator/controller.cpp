#include "hubferry/relocator/controller.hpp"

#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "relocator/definition.hpp"

namespace hubferry::relocator {

namespace {

phase::ControllerOptions controller_options(const ControllerOptions& options) {
  phase::ControllerOptions made;
  made.name = "relocator";
  made.watch_namespace = options.watch_namespace;
  // One that waits for its turn has a machine too: how many work at once is decided by the slots.
  made.max_concurrent = 1'000'000;
  made.phase_source = phase::PhaseSource::derived;
  made.deletion = phase::Deletion::handle;
  made.survives_deletion = [](const Phase& phase) { return phase == phases::gone || phase == phases::finishing; };
  made.on_transition = options.on_transition;
  made.readiness = options.readiness;
  return made;
}

}  // namespace

struct Controller::State {
  State(kube::Api& source, hubs::Connect connect, const ControllerOptions& options, kube::Env given)
      : env{given.clock, given.random, given.metrics, given.log.named("relocator")},
        services{
            source, env, {source, std::move(connect), env}, Slots{options.at_once}, {source, options.instance, env}},
        controller(source, ocm::cluster_deployments, services, given, controller_options(options)) {
    declare(controller.definition);
    const auto no_keys = [](const Object&) { return std::vector<Key>{}; };
    services.relocators = &controller.watches(
        cluster_relocators, [this](const Object& one) { return concerned(one); },
        phase::WatchedKind{.ignore_status = true});
    services.caches = {&controller.watches(ocm::machine_pools, no_keys), &controller.watches(ocm::sync_sets, no_keys),
                       &controller.watches(ocm::sync_identity_providers, no_keys),
                       &controller.watches(ocm::selector_sync_sets, no_keys)};
    services.patch = [this](phase::KubeResource& resource, json::object changes) {
      return controller.patch(resource, std::move(changes));
    };
    services.reporter.follow(*services.relocators, [this](const std::function<void(const Object&)>& visit) {
      controller.for_each([&](const Deployment& deployment) { visit(deployment.object); });
    });
    controller.on_change = [this](const Deployment*, const Deployment*) { services.reporter.touch(); };
    controller.add_task([this] { return services.reporter.run(); });
    controller.before_start([this]() -> Awaitable<> {
      services.no_abort_before = async::later(env.clock.now(), longest_request);
      co_return;
    });
    controller.build();
  }

  /// Those that a relocator matches, and those that move under its name: they may have to return.
  std::vector<Key> concerned(const Object& relocator) {
    services.reporter.touch();
    std::vector<Key> keys;
    const auto spec = read_spec(relocator);
    controller.for_each([&](const Deployment& deployment) {
      const auto relocation = deployment.relocation();
      const bool moves = relocation.stage == Stage::outgoing && relocation.relocator == relocator.name();
      if (moves || (spec && spec->selector.matches(deployment.object))) keys.push_back(deployment.object.key());
    });
    return keys;
  }

  kube::Env env;
  Services services;
  phase::Controller<Services, Deployment> controller;
};

Controller::Controller(kube::Api& source, hubs::Connect connect, ControllerOptions options, kube::Env env)
    : state_(std::make_unique<State>(source, std::move(connect), options, std::move(env))) {}

Controller::~Controller() = default;

async::Awaitable<> Controller::run() {
  return state_->controller.run();
}

}  // namespace hubferry::relocator
