#include "migration/step.hpp"

#include "migration/status_report.hpp"

namespace hubferry::migration {

namespace {

TimeBudget time_of(Context& context, const Migration& migration) {
  const auto& phase = context.phase();
  const auto timeout = phase_timeout(migration.spec(), phase);
  const auto entered = migration.entered(phase).value_or(context.clock().wall_now());
  // If the time ran out while there was no manager, nobody has tried.
  if (!survives_deletion(phase)) return {context.clock(), entered, timeout, entered < context->began};
  return {context.clock(), std::max(entered, context->began), timeout, true};
}

// However short the phase's timeout is: longer than an operation waits for one cluster before that cluster fails
// (writes that settle, a deletion, the end of a namespace; see hubagent::HubOptions). Otherwise one that is stuck would
// hide the results of its whole batch, round after round.
constexpr Duration shortest_hub_attempt = std::chrono::seconds{200};

}  // namespace

Step::Step(Context& context, Migration& of)
    : migration(of),
      context_(context),
      log_(context.log().with("phase", context.phase()).with("step", context.handler())),
      time_(time_of(context, of)) {}

void Step::report(kube::ConditionStatus status, std::string_view reason, std::string_view message) {
  report(condition_of(phase()), status, reason, message);
}

void Step::report(std::string_view condition, kube::ConditionStatus status, std::string_view reason,
                  std::string_view message) {
  set_condition(migration, condition, status, reason, message, now());
}

void Step::enter(const Phase& next, std::string_view what_happens_now) {
  constexpr auto no = kube::ConditionStatus::no;
  migration.enter(next, now());
  // Conditions are in the order in which they are first set: verification comes before the cleanup.
  if (next == phases::cleaning) report(conditions::verified, no, reasons::waiting, what_happens_now);
  report(condition_of(next), no, reasons::waiting, what_happens_now);
}

ReconcileState Step::advance(std::string_view what_happens_now) {
  enter(successor(), what_happens_now);
  return phase::done();
}

ReconcileState Step::jump_to(const Phase& next, std::string_view what_happens_now) {
  enter(next, what_happens_now);
  return phase::go_to(next);
}

Duration Step::attempt_timeout() const {
  return std::max(time_.attempt_timeout(), shortest_hub_attempt);
}

Awaitable<> Step::save() {
  return context_.save();
}

}  // namespace hubferry::migration
