#include "migration/step.hpp"

#include "migration/status_report.hpp"

namespace hubferry::migration {

namespace {

TimeBudget time_of(Context& context, const Migration& migration) {
  const auto& phase = context.phase();
  const auto timeout = phase_timeout(migration.spec(), phase);
  const auto entered = migration.entered(phase).value_or(context.clock().wall_now());
  if (!survives_deletion(phase)) return {context.clock(), entered, timeout, false};
  return {context.clock(), std::max(entered, context->began), timeout, true};
}

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
  if (next == phases::cleaning) report(conditions::verified, no, "Waiting", what_happens_now);
  report(condition_of(next), no, "Waiting", what_happens_now);
}

ReconcileState Step::advance(std::string_view what_happens_now) {
  enter(successor(), what_happens_now);
  return phase::done();
}

ReconcileState Step::jump_to(const Phase& next, std::string_view what_happens_now) {
  enter(next, what_happens_now);
  return phase::go_to(next);
}

Awaitable<> Step::save() {
  auto& store = context_->store;
  auto written = co_await store.persist(migration);
  if (written.outcome != phase::Written::Outcome::conflict) co_return;
  // Somebody else wrote: re-apply our changes to the latest version.
  auto fresh = co_await store.fetch_fresh(migration.object.key());
  if (!fresh || !*fresh || (**fresh).object.uid() != migration.object.uid()) co_return;
  const auto* before = migration.object.find({"status"});
  static const json::object nothing;
  const auto changes =
      phase::merge_diff(before != nullptr && before->is_object() ? before->get_object() : nothing, migration.status);
  auto& merged = static_cast<phase::KubeResource&>(migration);
  merged = std::move(**fresh);
  phase::merge_apply(merged.status, changes);
  co_await store.persist(migration);
}

}  // namespace hubferry::migration
