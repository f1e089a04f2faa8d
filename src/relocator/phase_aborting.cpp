#include "relocator/definition.hpp"

namespace hubferry::relocator {

namespace {

/// For the metric.
std::string_view reason_of(Context& context, const Deployment& deployment) {
  if (deployment.object.is_being_deleted()) return "deleted";
  const auto found = matching_relocators(*context->relocators, deployment.object);
  if (found.empty()) return "no_match";
  return found.size() == 1 ? "new_match" : "multiple_matches";
}

Problem blocked(const std::string& why) {
  return {reasons::abort_blocked,
          "the relocation should be aborted, but nobody knows whether the destination has the cluster: " + why};
}

/// What the destination has, through the relocator under which the move began.
Awaitable<OrProblem<Look>> look_through(Context& context, const Object& deployment, std::string relocator) {
  const auto spec = find_relocator(*context->relocators, relocator);
  if (!spec) co_return blocked(spec.error().message);
  auto destination = co_await context->destinations.connect(spec->secret);
  if (!destination) co_return blocked(destination.error().message);
  if (const auto problem = repointed(**destination, deployment)) co_return *problem;
  auto identity = co_await context->destinations.source_identity();
  if (!identity) co_return blocked(identity.error().message);
  auto look = co_await look_at(**destination, deployment, *identity);
  if (!look) co_return blocked(look.error().describe());
  // Its address may lead elsewhere by now, and what is absent there proves nothing.
  auto same = co_await context->destinations.is_still_there(*destination);
  if (!same) co_return blocked(same.error().message);
  if (!*same) co_return blocked("another hub answers at the address of the destination");
  co_return *look;
}

}  // namespace

Awaitable<ReconcileState> abort_move(Context& context, Deployment& deployment, const phase::State&) {
  const auto relocator = deployment.relocation().relocator;
  const auto look = co_await look_through(context, deployment.object, relocator);
  if (!look) co_return fail(context, deployment, look.error());
  if (look->holding == Holding::ours) co_return phase::go_to(phases::finishing);
  if (look->holding == Holding::leaving || look->holding == Holding::unclear)
    co_return fail(context, deployment, blocked(look->message));

  auto certain = context->no_abort_before;
  const auto unanswered = context->unanswered_until.find(deployment.object.key());
  if (unanswered != context->unanswered_until.end()) certain = std::max(certain, unanswered->second);
  if (context.clock().now() < certain) co_return phase::not_done(certain - context.clock().now());
  context->unanswered_until.erase(deployment.object.key());

  const auto reason = reason_of(context, deployment);
  auto zone = co_await annotate_zone(context, deployment, Stage::none, relocator);
  if (!zone)
    co_return fail(context, deployment, {reasons::abort_blocked, "annotating its DNSZone: " + zone.error().describe()});
  if (auto undone = co_await annotate(context, deployment, Stage::none, relocator)) co_return *undone;
  context->reporter.aborted(deployment.object, relocator, reason);
  co_return phase::done();
}

}  // namespace hubferry::relocator
