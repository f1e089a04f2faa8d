#include "hubferry/ocm/resources.hpp"
#include "relocator/definition.hpp"

namespace hubferry::relocator {

namespace {

/// It must not move any more, or not yet: a move that has begun is undone.
ReconcileState stay(Context& context, Deployment& deployment, kube::ConditionStatus status, std::string_view reason,
                    std::string_view message) {
  if (deployment.relocation().stage == Stage::outgoing) return phase::go_to(phases::aborting);
  context->failures.erase(deployment.object.key());
  set_condition(context, deployment, status, reason, message);
  return phase::go_to(phases::idle);
}

}  // namespace

Awaitable<ReconcileState> match(Context& context, Deployment& deployment, const phase::State&) {
  const auto relocation = deployment.relocation();
  const bool moves = relocation.stage == Stage::outgoing;
  // A fatal error must not lead from a later phase to a second move.
  if (relocation.stage == Stage::complete || is_paused_by_user(deployment.object) ||
      is_moved_by_hive(deployment.object))
    co_return phase::go_to(phases::idle);
  if (deployment.object.is_being_deleted()) co_return phase::go_to(moves ? phases::aborting : phases::idle);
  if (kube::find_condition(deployment.object, names::condition) == nullptr && !moves) {
    set_condition(context, deployment, kube::ConditionStatus::unknown, reasons::initialized, "not looked at yet");
    co_return phase::not_done(phase::least_requeue_delay);
  }
  const auto found = matching_relocators(*context->relocators, deployment.object);
  using enum kube::ConditionStatus;
  if (found.empty()) {
    const auto unusable = unusable_relocators(*context->relocators);
    co_return stay(context, deployment, no, reasons::no_match,
                   "no ClusterRelocator matches" + (unusable.empty() ? std::string{} : ". " + unusable));
  }
  if (found.size() > 1)
    co_return stay(context, deployment, yes, reasons::multiple_matches,
                   "several ClusterRelocators match: " + names_of(found));
  if (moves && relocation.relocator != found.front().name) co_return phase::go_to(phases::aborting);
  co_return phase::done();
}

}  // namespace hubferry::relocator
