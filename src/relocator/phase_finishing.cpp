#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "relocator/definition.hpp"

namespace hubferry::relocator {

namespace {

/// Hive finalizes what has moved at once. A condition is worth a request only if there is time to read it.
constexpr auto finalized_within = std::chrono::seconds{30};
/// The end of a move, and that of the process, wait that long for the destination.
constexpr auto released_within = std::chrono::seconds{15};
/// Where Hive's own relocation controller runs, it deletes what has moved: that long it is given the chance to; and if
/// it does not, it is not waited for again that soon.
constexpr auto deleted_by_hive_within = std::chrono::seconds{2};
constexpr auto hive_deletes_nothing_for = std::chrono::minutes{10};

/// The name under which it moves: that of its annotation, or of the relocator that found it on the destination already.
std::string relocator_of(Context& context, const Deployment& deployment) {
  const auto relocation = deployment.relocation();
  if (relocation.stage != Stage::none) return relocation.relocator;
  const auto found = matching_relocators(*context->relocators, deployment.object);
  return found.size() == 1 ? found.front().name : std::string{};
}

/// The arrival of this ClusterDeployment on the destination.
Arrival arrival_of(const Deployment& deployment, const std::string& relocator) {
  // Without that annotation Checking has found it there.
  const std::string begun{deployment.object.annotation(names::relocating_to)};
  return {deployment.object.key(), relocator, begun.empty() ? deployment.destination : begun, deployment.arrived,
          child_zone(deployment.object).has_value()};
}

/// Removes the annotations from the copies, where neither hubferry nor Hive's relocation controller runs to do it, and
/// confirms the arrival. The deletion on the source does not wait for the destination: what was not possible in time is
/// retried beside it.
Awaitable<> release_copies_in_time(Context& context, Deployment& deployment, const std::string& relocator) {
  const auto deadline = async::later(context.clock().now(), released_within);
  const auto arrival = arrival_of(deployment, relocator);
  std::optional<Problem> problem =
      Problem{reasons::no_connection, "the destination did not answer within " +
                                          std::to_string(std::chrono::seconds{released_within}.count()) + " s"};
  auto releasing = [&]() -> Awaitable<> { problem = co_await release_copies(context.services(), arrival); };
  co_await async::before_deadline(context.clock(), deadline, releasing());
  if (!problem) {
    context->releases.done(arrival.deployment);
    co_return;
  }
  const auto message = "its copy on the destination is not released yet: " + problem->message;
  context->reporter.event(deployment.object, kube::EventType::warning, "ReleasePending", message);
  context->releases.add(arrival, problem->message);
}

bool is_condition_false(const Deployment& deployment) {
  const auto* present = kube::find_condition_in_status(deployment.status, names::condition);
  return present != nullptr && kube::string_at(*present, {"status"}) == "False";
}

void set_successful(Context& context, Deployment& deployment) {
  set_condition(context, deployment, kube::ConditionStatus::no, reasons::successful, "the destination has it");
}

/// Zero if its deletion has not been seen yet.
Duration time_since_deletion(Context& context, const Deployment& deployment) {
  if (!deployment.object.is_being_deleted()) return {};
  const auto since = async::parse_time(deployment.object.deletion_timestamp());
  return std::max<Duration>(std::chrono::duration_cast<Duration>(context.clock().wall_now() - since), {});
}

/// Gives Hive's own relocation controller, where it runs, the time to delete it: it does so anyway.
Awaitable<bool> is_deleted_by_hive(Context& context, Key key) {
  const auto now = context.clock().now();
  if (now < context->hive_deletes_nothing_before) co_return !context->reporter.awaits_deletion(key);
  const auto deadline = async::later(now, deleted_by_hive_within);
  const bool deleted = co_await context->reporter.wait_for_deletion(key, deadline);
  if (!deleted) context->hive_deletes_nothing_before = async::later(deadline, hive_deletes_nothing_for);
  co_return deleted;
}

Problem cannot_delete(const std::string& why) {
  return {reasons::move_failed, "the destination has it, but it cannot be deleted here: " + why};
}

/// Nullopt: done. Otherwise what the handler returns.
Awaitable<std::optional<ReconcileState>> delete_from_source(Context& context, Deployment& deployment) {
  kube::Request request;
  request.verb = kube::Verb::remove;
  request.resource = ocm::cluster_deployments;
  request.key = deployment.object.key();
  request.propagation = kube::Propagation::background;
  request.precondition_uid = std::string{deployment.object.uid()};
  // If somebody removes the annotation meanwhile, the deletion would deprovision a cluster that lives elsewhere.
  request.precondition_resource_version = std::string{deployment.object.resource_version()};
  auto removed = co_await context->source.call(std::move(request));
  if (removed || is_absent(removed.error(), deployment.object.name())) co_return std::nullopt;
  if (removed.error().kind == kube::ErrorKind::conflict) co_return retry({});
  co_return fail(context, deployment, cannot_delete(removed.error().describe()));
}

}  // namespace

Awaitable<ReconcileState> finish(Context& context, Deployment& deployment, const phase::State&) {
  const auto relocator = relocator_of(context, deployment);
  // The DNSZone first: once the ClusterDeployment says relocated, it may be deleted at any time, and the zone with it.
  auto zone = co_await annotate_zone(context, deployment, Stage::complete, relocator);
  if (!zone)
    co_return fail(context, deployment, {reasons::move_failed, "annotating its DNSZone: " + zone.error().describe()});
  context->reporter.finishing(deployment.object, relocator);
  context->releases.expect(arrival_of(deployment, relocator));
  // Once it says relocated, Hive finalizes it at any time, which cancels this machine: nobody would confirm the
  // arrival.
  std::optional<ReconcileState> undone;
  auto conclude = [&]() -> Awaitable<> {
    undone = co_await annotate(context, deployment, Stage::complete, relocator);
    if (!undone) co_await release_copies_in_time(context, deployment, relocator);
  };
  co_await async::shielded(conclude());
  if (undone) co_return *undone;
  // A failure is withdrawn now. Otherwise Deleting says so, if there is time to read it.
  if (!is_condition_false(deployment)) set_successful(context, deployment);
  co_return phase::done();
}

Awaitable<ReconcileState> remove_from_source(Context& context, Deployment& deployment, const phase::State&) {
  const Key key = deployment.object.key();
  deployment.slot.reset();  // the destination has nothing to do with the rest
  const bool deleted = deployment.object.is_being_deleted() || co_await is_deleted_by_hive(context, key);
  // The DNSZone goes with it, and the DNS records with a DNSZone that has lost its annotation since.
  const auto relocator = deployment.relocation().relocator;
  auto zone = co_await find_zone(context->source, deployment.object);
  if (!zone) co_return fail(context, deployment, cannot_delete("its DNSZone: " + zone.error().describe()));
  if (*zone && !is_annotated(**zone, Stage::complete, relocator)) {
    // Finishing annotates it again, unless a user has undone the relocation.
    auto lost = phase::Error::network("its DNSZone has lost the annotation of the relocation");
    if (!deleted) co_return retry(phase::Written::failed(std::move(lost)));
    auto annotated = co_await annotate_zone(context, deployment, Stage::complete, relocator);
    if (!annotated) co_return fail(context, deployment, cannot_delete("its DNSZone: " + annotated.error().describe()));
  }
  if (!deleted)
    if (auto undone = co_await delete_from_source(context, deployment)) co_return *undone;
  context->failures.erase(key);
  context->reporter.deleted(key);
  if (says_successful(deployment.status)) co_return phase::done();
  const auto left = finalized_within - time_since_deletion(context, deployment);
  if (left > Duration::zero()) co_return phase::not_done(std::min<Duration>(left, finalized_within));
  set_successful(context, deployment);
  co_return phase::done();
}

Awaitable<ReconcileState> release(Context& context, Deployment& deployment, const phase::State&) {
  const auto relocator = deployment.relocation().relocator;
  auto zone = co_await annotate_zone(context, deployment, Stage::none, relocator);
  if (!zone) {
    phase::Written failed;
    failed.error = phase::Error{zone.error()};
    co_return retry(failed);
  }
  if (auto undone = co_await annotate(context, deployment, Stage::none, relocator)) co_return *undone;
  context->reporter.event(deployment.object, kube::EventType::normal, "Arrived",
                          "arrived from another hub by ClusterRelocator " + relocator);
  co_return phase::done();
}

}  // namespace hubferry::relocator
