#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
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

/// True if the annotations of an arrival under that name were there; they are removed, and no others. `source`:
/// confirms the arrival of a copy from this hub, also if a controller of the destination has released it already.
bool release_object(json::object& object, const std::string& relocator, const std::string& source) {
  const auto relocation = relocation_of(object);
  auto& annotations = kube::object_in(kube::object_in(object, "metadata"), "annotations");
  const bool arrives = relocation.stage == Stage::incoming && relocation.relocator == relocator;
  if (arrives)
    for (const auto& entry : annotations_for(Stage::none, relocator, false)) annotations.erase(entry.key());
  const auto* from = annotations.if_contains(names::relocated_from);
  if (!source.empty() && from != nullptr && *from == json::value(source)) annotations[names::confirmed] = "true";
  return arrives;
}

Awaitable<kube::Result<bool>> release_there(kube::Api& destination, kube::Resource resource, Key key,
                                            std::string relocator, std::string source) {
  bool arrived = false;
  const kube::Mutation mutate = [&](json::object& object) {
    const json::object before = object;
    arrived = release_object(object, relocator, source);
    return object != before;
  };
  auto edited = co_await kube::edit(destination, std::move(resource), std::move(key), mutate);
  if (!edited) co_return edited.error();
  co_return arrived;
}

/// Releases the copy and confirms its arrival in one request, whatever Hive has written to it since it was created:
/// conditional on what it says of its arrival, not on its version. `released`: it is expected to be released already.
json::array arrival_patch(const Object& copy, const std::string& relocator, const std::string& source, bool released) {
  json::array patch;
  const auto add = [&](const char* operation, std::string path, std::optional<std::string> value) {
    json::object entry{{"op", operation}, {"path", path}};
    if (value) entry["value"] = *value;
    patch.push_back(std::move(entry));
  };
  const auto path_of = [](std::string_view annotation) {
    std::string path = "/metadata/annotations/";
    for (const char c : annotation) path += c == '/' ? std::string{"~1"} : std::string{c};
    return path;
  };
  add("test", "/metadata/uid", std::string{copy.uid()});
  if (released) {
    add("test", path_of(names::relocated_from), source);
  } else {
    add("test", path_of(names::relocating), relocator);
    add("test", path_of(names::role), names::incoming);
    // Hive may have removed its own annotation already, and what is not there cannot be removed.
    add("add", path_of(ocm::names::hive_relocate_annotation), "");
    for (const auto* annotation : {names::relocating, names::role, ocm::names::hive_relocate_annotation})
      add("remove", path_of(annotation), std::nullopt);
  }
  add("add", path_of(names::confirmed), "true");
  return patch;
}

Awaitable<> release_copy(Context& context, Destination& destination, const Deployment& deployment,
                         std::string relocator, std::string source) {
  const Key key = deployment.object.key();
  if (!deployment.arrived.uid().empty()) {
    auto patch = arrival_patch(deployment.arrived, relocator, source, destination.releases_copies);
    const auto released = co_await destination.api->json_patch(ocm::cluster_deployments, key, std::move(patch));
    if (released && relocation_of(*released).stage != Stage::incoming) co_return;
  }
  const auto arrived = co_await release_there(*destination.api, ocm::cluster_deployments, key, relocator, source);
  if (arrived) {
    destination.releases_copies = !*arrived;
  } else {
    context.log().warn("releasing the copy failed", {{"error", arrived.error().describe()}});
  }
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
  if (const auto zone = child_zone(deployment.object)) {
    auto released = co_await release_there(*(*destination)->api, ocm::dns_zones, *zone, relocator, {});
    if (!released && released.error().kind != kube::ErrorKind::not_found)
      context.log().warn("releasing the copied DNSZone failed", {{"error", released.error().describe()}});
  }
  co_await release_copy(context, **destination, deployment, relocator, *source);
}

Awaitable<> release_copies_in_time(Context& context, Deployment& deployment, const std::string& relocator) {
  const auto deadline = async::later(context.clock().now(), released_within);
  auto releasing = release_copies(context, deployment, relocator);
  const bool ended = co_await async::before_deadline(context.clock(), deadline, std::move(releasing));
  if (!ended)
    context.log().warn("releasing the copies timed out", {{"resource", kube::to_string(deployment.object.key())}});
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

}  // namespace

Awaitable<ReconcileState> finish(Context& context, Deployment& deployment, const phase::State&) {
  const auto relocator = relocator_of(context, deployment);
  // The DNSZone first: once the ClusterDeployment says relocated, it may be deleted at any time, and the zone with it.
  auto zone = co_await annotate_zone(context, deployment, Stage::complete, relocator);
  if (!zone)
    co_return fail(context, deployment, {reasons::move_failed, "annotating its DNSZone: " + zone.error().describe()});
  context->reporter.finishing(deployment.object, relocator);
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
  if (!deleted) {
    kube::Request request;
    request.verb = kube::Verb::remove;
    request.resource = ocm::cluster_deployments;
    request.key = key;
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
