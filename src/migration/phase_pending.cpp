#include "hubferry/kube/edit.hpp"
#include "migration/definition.hpp"

namespace hubferry::migration {

namespace {

using kube::ConditionStatus;

/// Nothing begins that could not be undone: from here on the deletion of the migration waits for us.
Awaitable<ReconcileState> add_finalizer(Step& step) {
  auto& migration = step.migration;
  if (kube::has_finalizer(migration.object, names::finalizer)) co_return phase::done();
  auto held = co_await change_metadata(step, put_own_finalizer);
  // Replaced by another one of that name, or deleted, at this very moment: read it again.
  if (!held && held.error().kind == kube::ErrorKind::not_found) co_return phase::not_done(std::chrono::seconds{1});
  if (!held) co_return phase::failed(phase::Error{held.error()});
  if (held->is_being_deleted()) co_return phase::not_done(std::chrono::seconds{1});
  co_return phase::done();
}

/// Waits for migrations that have one of the clusters or objects of the same name, and for a free slot. Woken when one
/// of them ends.
Awaitable<ReconcileState> wait_for_admission(Step& step) {
  auto& migration = step.migration;
  const std::string uid{migration.object.uid()};
  while (auto obstacle = step->admission.obstacle(uid)) {
    if (condition_message(migration, conditions::started) == *obstacle) {
      co_await step->admission.changed(uid, *obstacle);
      continue;
    }
    step.report(ConditionStatus::no, reasons::waiting, *obstacle);
    step.log().info("migration is waiting", {{"reason", *obstacle}});
    co_await step.save();
  }
  step->admission.begin(uid);
  migration.pin_hubs();
  if (!migration.started()) {
    migration.set_started(step.now());
    step->started.insert(uid);
  }
  step.report(ConditionStatus::yes, "InstanceStarted",
              "the migration from " + step.source_name() + " to " + step.target_name() + " has started");
  co_return step.advance("validating the hubs and the clusters");
}

}  // namespace

Handler pending_phase() {
  return Handler::serial(
      {.description = "wait for other migrations", .view = phase::View::checklist},
      {step({.name = "hold", .description = "add the finalizer"}, add_finalizer),
       step({.name = "turn", .description = "wait for migrations with the same clusters or hubs, and for a free slot"},
            wait_for_admission)});
}

}  // namespace hubferry::migration
