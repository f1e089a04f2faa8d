#pragma once

#include "migration/ledger_store.hpp"
#include "migration/retry.hpp"
#include "migration/status_report.hpp"

/// How a step ends: with its phase continued, left, failed or ended. Steps return what these functions return.
namespace hubferry::migration {

using hubagent::Outcome;

/// A leaf of a phase. Before `function` runs, it makes sure that a migration that is being deleted rolls back and that
/// the start of the phase is recorded. An exception other than cancellation ends the phase as any failure does.
Handler step(phase::Metadata metadata, std::function<Awaitable<ReconcileState>(Step&)> function);

/// Ends the phase as failed: what was done is rolled back.
ReconcileState fail_phase(Step& step, std::string_view reason, const std::string& message);
/// "<what failed>: <the error's message>", with the error's reason.
ReconcileState fail_phase(Step& step, const OperationError& error, const std::string& what_failed = {});

/// Ends a migration that has not changed anything yet.
Awaitable<ReconcileState> reject(Step& step, std::string reason, std::string message);

/// phase::edit_metadata() of the migration.
Awaitable<kube::Result<kube::Object>> change_metadata(Step& step, kube::Mutation mutate);
/// A Mutation. No effect on an object that is being deleted: the server would refuse it.
bool put_own_finalizer(json::object& object);
/// A Mutation: removes the annotation that requests a rollback.
bool drop_rollback_request(json::object& object);

/// Ends the migration: removes the finalizer, since nothing is left to undo, and counts the result.
Awaitable<ReconcileState> finish(Step& step, const Ledger& ledger, const Phase& ending);

/// An Outcome's failures, as of this step's phase.
Failures failures_of(const Step& step, const Outcome& outcome);

}  // namespace hubferry::migration
