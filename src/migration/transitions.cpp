#include "migration/transitions.hpp"

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/edit.hpp"
#include "migration/pending.hpp"
#include "migration/wait_report.hpp"

namespace hubferry::migration {

namespace {

constexpr auto no = kube::ConditionStatus::no;

/// The resource is being deleted: stop here, undo what was done.
Awaitable<ReconcileState> stop_for_deletion(Step& step) {
  const std::string message = "the migration is being deleted";
  step.log().info("migration is being deleted, rolling back");
  if (const auto stage = stage_from(step.phase())) {
    step.report(no, reasons::cancelled, message);
    step.migration.set_rollback_stage(*stage);
    co_return step.jump_to(phases::rollbacking, "rolling back to " + step.source_name() + ": " + message);
  }
  co_return co_await reject(step, reasons::cancelled, message);
}

Awaitable<ReconcileState> end_after_exception(Step& step, std::string text) {
  if (survives_deletion(step.phase())) co_return postpone(step, text);
  if (stage_from(step.phase())) co_return fail_phase(step, reasons::error, text);
  co_return co_await reject(step, reasons::error, std::move(text));
}

/// Passes only cancellation on to the framework.
Awaitable<ReconcileState> guarded(Step& step, const std::function<Awaitable<ReconcileState>(Step&)>& function) {
  std::exception_ptr thrown;
  try {
    co_return co_await function(step);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (async::is_cancellation(thrown)) std::rethrow_exception(thrown);
  co_return co_await end_after_exception(step, async::describe(thrown));
}

}  // namespace

Handler step(phase::Metadata metadata, std::function<Awaitable<ReconcileState>(Step&)> function) {
  auto leaf = [function = std::move(function)](Context& context, Migration& migration,
                                               const phase::State&) -> Awaitable<ReconcileState> {
    if (!migration.entered(context.phase())) migration.enter(context.phase(), context.clock().wall_now());
    const auto began = *migration.entered(context.phase());
    Step here{context, migration};
    ReconcileState result;
    if (migration.is_being_deleted() && !survives_deletion(context.phase())) {
      result = co_await stop_for_deletion(here);
    } else {
      auto body = [&](async::TaskScope& scope) -> Awaitable<> {
        scope.spawn(report_waits(here));
        result = co_await guarded(here, function);
        scope.stop();
      };
      co_await async::with_scope(body);
      end_wait_report(here);
    }
    context->reporter.remember(migration, context.phase(), began);
    co_return result;
  };
  return Handler::leaf(std::move(metadata), std::move(leaf));
}

ReconcileState fail_phase(Step& step, std::string_view reason, const std::string& message) {
  step.report(no, reason, message);
  if (const auto stage = stage_from(step.phase())) {
    step.migration.set_rollback_stage(*stage);
    step.enter(step.error_successor(), "rolling back to " + step.source_name());
  }
  return phase::failed(message);
}

ReconcileState fail_phase(Step& step, const OperationError& error, const std::string& what_failed) {
  return fail_phase(step, error.reason(), what_failed.empty() ? error.message() : what_failed + ": " + error.message());
}

Awaitable<ReconcileState> reject(Step& step, std::string reason, std::string message) {
  step.report(no, reason, message);
  Ledger nothing_moved;
  auto result = co_await finish(step, nothing_moved, step.error_successor());
  if (!result.done) co_return result;
  result.next.clear();
  result.error = phase::Error{std::move(message)};
  co_return result;
}

Awaitable<kube::Result<kube::Object>> change_metadata(Step& step, kube::Mutation mutate) {
  return phase::edit_metadata(step->global, managed_cluster_migrations, step.migration, std::move(mutate));
}

bool put_own_finalizer(json::object& object) {
  if (!kube::string_at(object, {"metadata", "deletionTimestamp"}).empty()) return false;
  return kube::put_finalizer(object, names::finalizer);
}

bool drop_rollback_request(json::object& object) {
  if (kube::string_at(object, {"metadata", "annotations", names::request_annotation}).empty()) return false;
  return kube::object_in(kube::object_in(object, "metadata"), "annotations").erase(names::request_annotation) > 0;
}

Awaitable<ReconcileState> finish(Step& step, const Ledger& ledger, const Phase& ending) {
  auto& migration = step.migration;
  // The finalizer first: if the process dies before the last status write, only the rest is repeated.
  kube::Mutation drop = [](json::object& object) { return kube::drop_finalizer(object, names::finalizer); };
  auto freed = co_await change_metadata(step, std::move(drop));
  // Retried whatever the error: a migration that has ended with its finalizer on could never be deleted.
  if (!freed && freed.error().kind != kube::ErrorKind::not_found)
    co_return phase::failed(
        phase::Error::network("cannot remove the finalizer: " + OperationError{freed.error()}.message()));
  migration.set_completed(step.now());
  step->reporter.ends(migration, ledger, ending == phases::completed);
  co_return ending == step.successor() ? phase::done() : phase::go_to(ending);
}

Failures failures_of(const Step& step, const Outcome& outcome) {
  Failures failures;
  for (const auto& failed : outcome.failed)
    failures.insert_or_assign(failed.cluster,
                              Failure{step.phase(), std::string{to_string(failed.reason)}, failed.message});
  return failures;
}

}  // namespace hubferry::migration
