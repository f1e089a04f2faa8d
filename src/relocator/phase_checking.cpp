#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "relocator/definition.hpp"

namespace hubferry::relocator {

namespace {

constexpr auto hive_relocates_valid_for = std::chrono::seconds{30};

/// A hub that does not serve the kind has none.
bool is_not_served(const kube::Error& error) {
  return error.kind == kube::ErrorKind::not_found || error.kind == kube::ErrorKind::unsupported;
}

/// The ClusterRelocate of Hive that matches it; empty: none does.
std::string matching_relocate(const std::vector<Object>& relocates, const Object& deployment) {
  for (const auto& relocate : relocates) {
    const auto* selector = relocate.find({"spec", "clusterDeploymentSelector"});
    if (selector == nullptr || !selector->is_object()) continue;
    const auto parsed = kube::LabelSelector::from_json(selector->get_object());
    if (parsed && parsed->matches(deployment)) return std::string{relocate.name()};
  }
  return {};
}

/// That of the source.
Awaitable<kube::Result<std::string>> competing_relocate(Services& services, const Object& deployment) {
  const auto now = services.env.clock.now();
  if (!services.hive_relocates_read || now >= async::later(*services.hive_relocates_read, hive_relocates_valid_for)) {
    const kube::ListOptions all;
    auto listed = co_await services.source.list_all(ocm::cluster_relocates, all);
    if (!listed && !is_not_served(listed.error())) co_return listed.error();
    services.hive_relocates = listed ? std::move(*listed) : std::vector<Object>{};
    services.hive_relocates_read = now;
  }
  co_return matching_relocate(services.hive_relocates, deployment);
}

/// A warning, not a failure: what they applied stays on the cluster, and nobody manages it any more.
Awaitable<> warn_of_missing_sync_sets(Context& context, Deployment& deployment,
                                      std::shared_ptr<Destination> destination) {
  auto missing = co_await missing_sync_sets(context.services(), deployment.object, destination);
  if (!missing)
    context.log().warn("listing the SelectorSyncSets of the destination failed",
                       {{"error", missing.error().describe()}});
  if (!missing || missing->empty()) co_return;
  std::string names;
  for (const auto& name : *missing) names += (names.empty() ? "" : ", ") + name;
  const auto message = "SelectorSyncSets that match on this hub are missing on the destination: " + names;
  context->reporter.event(deployment.object, kube::EventType::warning, reasons::sync_sets_missing, message);
  set_condition(context, deployment, kube::ConditionStatus::no, reasons::sync_sets_missing, message);
}

}  // namespace

std::optional<Problem> deployment_problem(const Object& deployment) {
  if (is_annotated_true(deployment, ocm::names::hive_protected_delete_annotation))
    return Problem{reasons::protected_delete,
                   std::string{"it has the annotation "} + ocm::names::hive_protected_delete_annotation +
                       ", so that it could not be deleted from this hub: remove the annotation",
                   true};
  const auto* installed = deployment.find({"spec", "installed"});
  // While it is paused, Hive does not stop an installation that runs, and the destination would start a second one.
  if (installed == nullptr || !installed->is_bool() || !installed->get_bool())
    return Problem{reasons::not_installed, "the cluster is not installed: it is moved once it is", true};
  if (!deployment.annotation(names::relocated_from).empty() && deployment.annotation(names::confirmed) != "true")
    return Problem{
        reasons::unconfirmed,
        "the hub that it came from has not confirmed yet that it has finished the relocation to this hub. If "
        "that hub does not have it any more, set the annotation " +
            std::string{names::confirmed} + " to \"true\"",
        true};
  return std::nullopt;
}

Awaitable<std::optional<Problem>> source_problem(Services& services, const Object& deployment) {
  if (auto problem = deployment_problem(deployment)) co_return problem;
  auto competing = co_await competing_relocate(services, deployment);
  if (!competing)
    co_return Problem{reasons::hive_relocate, "cannot list Hive's ClusterRelocates: " + competing.error().describe()};
  if (!competing->empty())
    co_return Problem{reasons::hive_relocate, "Hive's own ClusterRelocate " + *competing + " matches it, too", true};
  co_return std::nullopt;
}

std::optional<Problem> onward_problem(const Destination& destination, const Object& deployment) {
  const auto& relocates = destination.hive_relocates;
  if (!relocates && (is_not_served(relocates.error()) || relocates.error().kind == kube::ErrorKind::forbidden))
    return std::nullopt;
  if (!relocates)
    return Problem{reasons::no_connection,
                   "cannot list Hive's ClusterRelocates of the destination: " + relocates.error().describe()};
  const auto onward = matching_relocate(*relocates, deployment);
  if (onward.empty()) return std::nullopt;
  return Problem{
      reasons::hive_relocate,
      "Hive's own ClusterRelocate " + onward + " of the destination would move it on before its arrival is confirmed",
      true};
}

std::optional<Problem> repointed(const Destination& destination, const Object& deployment) {
  const auto relocation = relocation_of(deployment);
  const auto begun = deployment.annotation(names::relocating_to);
  if (relocation.stage != Stage::outgoing || begun == destination.identity) return std::nullopt;
  return Problem{reasons::abort_blocked,
                 "it began to move to the hub \"" + std::string{begun} +
                     "\" (uid of kube-system), which may have it, but "
                     "ClusterRelocator " +
                     relocation.relocator + " leads to the hub \"" + destination.identity +
                     "\" now. Let it lead to the former again; or, if that does not have the cluster, remove the "
                     "annotations of the relocation"};
}

std::optional<Problem> destination_problem(const Look& look, const Destination& destination, const Object& deployment) {
  switch (look.holding) {
    case Holding::same_hub:
      return Problem{reasons::same_hub, look.message, true};
    case Holding::leaving:
      return Problem{reasons::move_failed, look.message};
    case Holding::other:
    case Holding::unclear:
      return Problem{reasons::mismatch, look.message, true};
    case Holding::absent:
    case Holding::ours:
      break;
  }
  const auto came_from = deployment.annotation(names::relocated_from);
  if (look.holding == Holding::ours || came_from.empty() || came_from != destination.identity) return std::nullopt;
  return Problem{reasons::return_refused,
                 std::string{"it was relocated from that hub to this one. To move it back, remove the annotation "} +
                     names::relocated_from,
                 true};
}

Awaitable<kube::Result<std::vector<std::string>>> missing_sync_sets(Services& services, Object deployment,
                                                                    std::shared_ptr<Destination> destination) {
  auto wanted = matching_sync_sets(*services.caches.selector_sync_sets, deployment);
  if (wanted.empty()) co_return wanted;
  auto present = co_await services.destinations.selector_sync_sets(destination);
  if (!present) co_return present.error();
  std::erase_if(wanted, [&](const std::string& name) { return present->contains(name); });
  co_return wanted;
}

Awaitable<ReconcileState> check(Context& context, Deployment& deployment, const phase::State&) {
  auto found = matching_relocators(*context->relocators, deployment.object);
  if (found.size() != 1) co_return phase::go_to(phases::matching);
  const auto relocator = std::move(found.front());
  const bool begins = deployment.relocation().stage == Stage::none;
  if (begins)
    if (const auto problem = deployment_problem(deployment.object)) co_return fail(context, deployment, *problem);

  // Slots are counted by hub: several Secrets may lead to one.
  auto destination = co_await context->destinations.connect(relocator.secret);
  if (!destination) co_return fail(context, deployment, destination.error());
  const auto hub = (*destination)->identity;
  // After a write conflict it has one already: waiting for another, it could wait for itself.
  if (deployment.slot == nullptr || deployment.slot->destination() != hub) {
    deployment.slot.reset();
    deployment.slot = co_await context->slots.acquire(hub, relocator.name);
  }
  // It may have waited for long. That the ClusterDeployment itself has changed is found out by the next write.
  found = matching_relocators(*context->relocators, deployment.object);
  if (found.size() != 1 || found.front().name != relocator.name || found.front().secret != relocator.secret)
    co_return phase::go_to(phases::matching);
  // Needs a request: those that wait for their turn share the answer.
  if (begins)
    if (const auto problem = co_await source_problem(context.services(), deployment.object))
      co_return fail(context, deployment, *problem);

  destination = co_await context->destinations.connect(relocator.secret);
  if (!destination) co_return fail(context, deployment, destination.error());
  if ((*destination)->identity != hub) co_return phase::go_to(phases::matching);
  if (const auto problem = repointed(**destination, deployment.object)) co_return fail(context, deployment, *problem);
  auto identity = co_await context->destinations.source_identity();
  if (!identity) co_return fail(context, deployment, identity.error());
  deployment.destination = (*destination)->identity;
  deployment.relocator = relocator.name;
  auto look = co_await prepare_and_look(**destination, deployment.object, *identity);
  if (!look) co_return fail(context, deployment, look.error());
  if (look->holding == Holding::ours) co_return phase::go_to(phases::finishing);
  if (const auto problem = destination_problem(*look, **destination, deployment.object))
    co_return fail(context, deployment, *problem);
  if (begins)
    if (const auto problem = onward_problem(**destination, deployment.object))
      co_return fail(context, deployment, *problem);

  if (begins) co_await warn_of_missing_sync_sets(context, deployment, *destination);
  co_return phase::done();
}

}  // namespace hubferry::relocator
