#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "relocator/definition.hpp"

namespace hubferry::relocator {

namespace {

/// Hive finalizes what has moved at once. A condition is worth a request only if there is time to read it.
constexpr auto finalized_within = std::chrono::seconds{30};

/// The name under which it moves: that of its annotation, or of the relocator that found it on the destination already.
std::string relocator_of(Context& context, const Deployment& deployment) {
  const auto relocation = deployment.relocation();
  if (relocation.stage != Stage::none) return relocation.relocator;
  const auto found = matching_relocators(*context->relocators, deployment.object);
  return found.size() == 1 ? found.front().name : std::string{};
}

/// Removes the annotations of an arrival under that name, and no others. `source`: confirms the arrival of a copy from
/// this hub, also if a controller of the destination has released it already.
Awaitable<kube::Result<Object>> release_there(kube::Api& destination, kube::Resource resource, Key key,
                                              std::string relocator, std::string source) {
  const kube::Mutation mutate = [&](json::object& object) {
    const auto relocation = relocation_of(object);
    auto& annotations = kube::object_in(kube::object_in(object, "metadata"), "annotations");
    const json::object before = annotations;
    if (relocation.stage == Stage::incoming && relocation.relocator == relocator)
      for (const auto& entry : annotations_for(Stage::none, relocator, false)) annotations.erase(entry.key());
    const auto* from = annotations.if_contains(names::relocated_from);
    if (!source.empty() && from != nullptr && *from == json::value(source)) annotations[names::confirmed] = "true";
    return annotations != before;
  };
  co_return co_await kube::edit(destination, std::move(resource), std::move(key), mutate);
}

/// Removes the annotations from the copies, where neither hubferry nor Hive's relocation controller runs to do it, and
/// confirms the arrival. Best effort: the deletion on the source does not wait for the destination.
Awaitable<> release_copies(Context& context, Deployment& deployment, std::string relocator) {
  const auto spec = find_relocator(*context->relocators, relocator);
  if (!spec) co_return;
  auto destination = co_await context->destinations.connect(spec->secret);
  if (!destination) co_return;
  const auto begun = deployment.object.annotation(names::relocating_to);
  if (!begun.empty() && begun != (*destination)->identity) co_return;
  auto source = co_await context->destinations.source_identity();
  if (!source) co_return;
  auto& there = *(*destination)->api;
  if (const auto zone = child_zone(deployment.object)) {
    auto released = co_await release_there(there, ocm::dns_zones, *zone, relocator, {});
    if (!released && released.error().kind != kube::ErrorKind::not_found)
      context.log().warn("releasing the copied DNSZone failed", {{"error", released.error().describe()}});
  }
  const Key key = deployment.object.key();
  if (!deployment.arrived.uid().empty()) {
    // As it was created, so that it need not be read: unless a controller of the destination was faster.
    auto annotations = annotations_for(Stage::none, relocator, false);
    annotations[names::confirmed] = "true";
    auto patch = annotation_patch(std::move(annotations));
    kube::object_in(patch, "metadata")["resourceVersion"] = deployment.arrived.resource_version();
    const auto released = co_await there.merge_patch(ocm::cluster_deployments, key, std::move(patch));
    if (released) co_return;
  }
  auto released = co_await release_there(there, ocm::cluster_deployments, key, relocator, *source);
  if (!released) context.log().warn("releasing the copy failed", {{"error", released.error().describe()}});
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

}  // namespace

Awaitable<ReconcileState> finish(Context& context, Deployment& deployment, const phase::State&) {
  const auto relocator = relocator_of(context, deployment);
  // The DNSZone first: once the ClusterDeployment says relocated, it may be deleted at any time, and the zone with it.
  auto zone = co_await annotate_zone(context, deployment, Stage::complete, relocator);
  if (!zone)
    co_return fail(context, deployment, {reasons::move_failed, "annotating its DNSZone: " + zone.error().describe()});
  if (auto undone = co_await annotate(context, deployment, Stage::complete, relocator)) co_return *undone;
  deployment.finished = true;
  co_await release_copies(context, deployment, relocator);
  // A failure is withdrawn now. Otherwise Deleting says so, if there is time to read it.
  if (!is_condition_false(deployment)) set_successful(context, deployment);
  co_return phase::done();
}

Awaitable<ReconcileState> remove_from_source(Context& context, Deployment& deployment, const phase::State&) {
  const auto relocator = deployment.relocation().relocator;
  if (!deployment.object.is_being_deleted()) {
    kube::Request request;
    request.verb = kube::Verb::remove;
    request.resource = ocm::cluster_deployments;
    request.key = deployment.object.key();
    request.propagation = kube::Propagation::background;
    request.precondition_uid = std::string{deployment.object.uid()};
    // If somebody removes the annotation meanwhile, the deletion would deprovision a cluster that lives elsewhere.
    request.precondition_resource_version = std::string{deployment.object.resource_version()};
    auto removed = co_await context->source.call(std::move(request));
    if (!removed && removed.error().kind == kube::ErrorKind::conflict) co_return retry({});
    if (!removed && !is_absent(removed.error(), deployment.object.name()))
      co_return fail(context, deployment,
                     {reasons::move_failed,
                      "the destination has it, but it cannot be deleted here: " + removed.error().describe()});
  }
  if (deployment.finished) {
    deployment.finished = false;
    context->failures.erase(deployment.object.key());
    context->reporter.relocated(deployment.object, relocator);
  }
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
