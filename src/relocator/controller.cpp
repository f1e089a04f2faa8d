#include "hubferry/relocator/controller.hpp"

#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "relocator/definition.hpp"

/// The wiring: everything beside the definition and its handlers. A test counts its lines.
namespace hubferry::relocator {

namespace {

phase::ControllerOptions controller_options(const ControllerOptions& options) {
  return {
      .name = "relocator",
      .watch_namespace = options.watch_namespace,
      // One that waits for its turn has a machine too: how many work at once is decided by the slots.
      .max_concurrent = 1'000'000,
      .deletion = phase::Deletion::handle,
      .phase_source = phase::PhaseSource::derived,
      .survives_deletion = [](const Phase& phase) { return phase != phases::matching && phase != phases::releasing; },
      .on_transition = options.on_transition,
      .readiness = options.readiness};
}

}  // namespace

struct Controller::State {
  State(kube::Api& source, hubs::Connect connect, const ControllerOptions& options, const kube::Env& env)
      : services(source, std::move(connect), options, env),
        controller(source, ocm::cluster_deployments, services, env, controller_options(options)) {
    declare(controller.definition);
    const auto relocator_changed = [this](const Object& relocator) {
      services.reporter.touch();
      services.releases.look_for_forgotten(std::string{relocator.name()});
      return services.concerned(relocator);
    };
    services.relocators = &controller.watches(cluster_relocators, relocator_changed, {.ignore_status = true});
    services.caches = {&controller.watches(ocm::machine_pools, {}), &controller.watches(ocm::sync_sets, {}),
                       &controller.watches(ocm::sync_identity_providers, {}),
                       &controller.watches(ocm::selector_sync_sets, {})};
    services.controller = &controller;
    services.deployments = [this](const std::function<void(const Object&)>& visit) {
      controller.for_each([&](const Deployment& deployment) { visit(deployment.object); });
    };
    services.reporter.follow(*services.relocators, services.deployments);
    controller.on_change = [this](const Deployment* old, const Deployment* now) { services.observe(old, now); };
    controller.add_task([this] { return services.reporter.run(); });
    controller.add_task([this] { return services.releases.run(); });
    controller.before_start([this] { return services.begin(); });
    controller.build();
  }

  Services services;
  phase::Controller<Services, Deployment> controller;
};

Controller::Controller(kube::Api& source, hubs::Connect connect, ControllerOptions options, kube::Env env)
    : state_(std::make_unique<State>(source, std::move(connect), options, env)) {}

Controller::~Controller() = default;

async::Awaitable<> Controller::run() {
  return state_->controller.run();
}

}  // namespace hubferry::relocator
