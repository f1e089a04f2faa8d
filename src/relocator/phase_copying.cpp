#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/hive.hpp"
#include "relocator/definition.hpp"

namespace hubferry::relocator {

Awaitable<ReconcileState> mark(Context& context, Deployment& deployment, const phase::State&) {
  const auto found = matching_relocators(*context->relocators, deployment.object);
  if (found.size() != 1) co_return retry({});
  const auto& relocator = found.front().name;
  const bool begins = deployment.relocation().stage == Stage::none;
  // The ClusterDeployment first: if the second write is lost, its annotation leads back here.
  // In one write with the hub that Checking has looked at: a successor that continues or aborts must look at it, too.
  const auto destination = begins ? deployment.destination : std::string{};
  // Another relocator may match by now, which leads elsewhere.
  if ((begins && destination.empty()) || deployment.relocator != relocator) co_return retry({});
  if (auto undone = co_await annotate(context, deployment, Stage::outgoing, relocator, destination)) co_return *undone;
  if (begins) context->reporter.begun(deployment.object, relocator);
  auto zone = co_await annotate_zone(context, deployment, Stage::outgoing, relocator);
  if (!zone)
    co_return fail(context, deployment, {reasons::move_failed, "annotating its DNSZone: " + zone.error().describe()});
  co_return phase::done();
}

namespace {

/// So often what has changed while it was copied is copied again: somebody may change it without end.
constexpr int most_rounds = 5;

/// All but the ClusterDeployment.
Awaitable<OrProblem<bool>> copy_dependents(Services& services, const Object& deployment, RelocatorSpec relocator,
                                           Copier& copier) {
  for (int round = 1; round <= most_rounds; ++round) {
    auto items = co_await take_inventory(services.source, services.caches, relocator, deployment);
    if (!items) co_return items.error();
    auto zone = co_await find_zone(services.source, deployment);
    if (!zone) co_return Problem{reasons::move_failed, "reading its DNSZone: " + zone.error().describe()};
    for (const auto& item : *items) {
      auto copied = co_await copier.copy(item);
      if (!copied) co_return copied.error();
    }
    if (*zone) {
      auto copied = co_await copier.copy_zone(**zone);
      if (!copied) co_return copied.error();
    }
    // Hive is paused, users are not: the destination would scale the cluster back to what it was.
    if (is_current(*items, services.caches, relocator, deployment)) break;
  }
  co_return true;
}

Awaitable<OrProblem<Object>> copy_everything(Services& services, Deployment& deployment, RelocatorSpec relocator) {
  auto destination = co_await services.destinations.connect(relocator.secret);
  if (!destination) co_return destination.error();
  if (const auto problem = repointed(**destination, deployment.object)) co_return *problem;
  auto identity = co_await services.destinations.source_identity();
  if (!identity) co_return identity.error();
  Copier copier{*destination, deployment.object, relocator.name, *identity};
  auto copied = co_await copy_dependents(services, deployment.object, relocator, copier);
  if (!copied) co_return copied.error();
  // If this machine is cancelled, because the ClusterDeployment is being deleted, its successor must know the outcome.
  services.unanswered_until[deployment.object.key()] = async::never;
  OrProblem<Object> created = Object{};
  auto create = [&]() -> Awaitable<> {
    created = co_await copier.create_deployment();
    services.unanswered_until[deployment.object.key()] = async::later(services.env.clock.now(), longest_request);
  };
  co_await async::shielded(create());
  if (created) services.unanswered_until.erase(deployment.object.key());
  co_return created;
}

}  // namespace

Awaitable<ReconcileState> copy_all(Context& context, Deployment& deployment, const phase::State&) {
  const auto relocator = find_relocator(*context->relocators, deployment.relocation().relocator);
  if (!relocator) co_return retry({});
  auto copied = co_await copy_everything(context.services(), deployment, *relocator);
  if (!copied) co_return fail(context, deployment, copied.error());
  deployment.arrived = *copied;
  co_return phase::done();
}

}  // namespace hubferry::relocator
