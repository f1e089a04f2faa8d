#include "hubferry/kube/edit.hpp"
#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// Nothing is begun that could not be undone: from here on a deleted migration waits for us.
Awaitable<ReconcileState> hold(Step& step) {
  auto& migration = step.migration;
  if (kube::has_finalizer(migration.object, names::finalizer)) co_return phase::done();
  auto held =
      co_await kube::add_finalizer(step->global, managed_cluster_migrations, migration.object.key(), names::finalizer);
  if (!held) co_return phase::failed(phase::Error{held.error()});
  // Deleted, or replaced by another one of that name, in this very moment: look at it afresh.
  if (held->uid() != migration.object.uid() || held->is_being_deleted())
    co_return phase::not_done(std::chrono::seconds{1});
  migration.object = *held;
  co_return phase::done();
}

/// Waits for others that have one of its clusters, or the same helper objects, or for a free place. Woken by their end.
Awaitable<ReconcileState> wait_for_turn(Step& step) {
  auto& migration = step.migration;
  const std::string uid{migration.object.uid()};
  while (auto obstacle = step->admission.obstacle(uid)) {
    if (condition_message(migration, conditions::started) == *obstacle) {
      co_await step->admission.changed();
      continue;
    }
    step.report(ConditionStatus::no, "Waiting", *obstacle);
    step.log().info("the migration waits", {{"reason", *obstacle}});
    co_await step.save();
  }
  step->admission.begin(uid);
  migration.pin_hubs();
  if (!migration.time("startTime")) migration.set_time("startTime", step.now());
  step.report(ConditionStatus::yes, "InstanceStarted",
              "the migration from " + step.source_name() + " to " + step.target_name() + " has started");
  co_return step.advance("checking the hubs and the clusters");
}

}  // namespace

Handler pending_phase() {
  return Handler::serial(
      {.description = "wait for its turn", .view = phase::View::checklist},
      {step({.name = "hold", .description = "hold on to the resource until all is undone or done"}, hold),
       step({.name = "turn", .description = "wait for others with the same clusters or hubs"}, wait_for_turn)});
}

}  // namespace hubferry::migration
