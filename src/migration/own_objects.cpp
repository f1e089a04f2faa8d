#include "migration/own_objects.hpp"

#include "migration/attempts.hpp"
#include "migration/credential.hpp"

namespace hubferry::migration {

Awaitable<> delete_source_objects(Step& step, Pending& pending) {
  auto remove = [&](hubagent::SourceHub& hub) { return hub.delete_migration_objects(step.migration.ref()); };
  auto removed = co_await attempt_on_source(step, remove);
  if (!removed) pending.add_objects(step.migration.from(), operation_failed(step.source_name(), removed.error()));
}

Awaitable<> delete_own_objects(Step& step, Pending& pending) {
  const auto credential = step.migration.credential();
  if (!credential) co_return;
  co_await wait_for_previous_writes(step);
  co_await delete_source_objects(step, pending);
  auto remove = [&](hubagent::TargetHub& hub) {
    return hub.delete_migration_objects(step.migration.ref(), credential->identity);
  };
  auto removed = co_await attempt_on_target(step, remove);
  if (!removed) pending.add_objects(step.migration.to(), operation_failed(step.target_name(), removed.error()));
  auto deleted = co_await delete_credential(step, *credential);
  if (!deleted) pending.add_objects(global_hub_name, operation_failed("the global hub", deleted.error()));
}

Awaitable<ReconcileState> delete_own_objects_or_postpone(Step& step) {
  Pending pending{step.migration};
  co_await delete_own_objects(step, pending);
  if (!pending.empty()) co_return postpone(step, pending.message());
  if (!pending.given_up().empty()) {
    auto ledger = co_await load_ledger(step);
    if (!ledger) co_return postpone(step, ledger.error().message());
    LedgerChange record = [&](Ledger& lists) {
      lists.left_behind.insert(pending.given_up().begin(), pending.given_up().end());
    };
    auto saved = co_await amend_ledger(step, *ledger, record);
    if (!saved) co_return postpone(step, saved.error().message());
  }
  clear_problem(step);
  co_return phase::done();
}

}  // namespace hubferry::migration
