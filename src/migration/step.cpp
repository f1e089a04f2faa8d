#include "migration/step.hpp"

#include "hubferry/kube/edit.hpp"
#include "migration/timeouts.hpp"

namespace hubferry::migration {

namespace {

constexpr auto no = kube::ConditionStatus::no;

bool is_undone_by_rollback(const Phase& phase) {
  return stage_from(phase).has_value();
}

/// The resource is being deleted: stop here, undo what was done.
Awaitable<ReconcileState> turn_back(Step& step) {
  const std::string message = "the migration is being deleted";
  step.log().info("the migration is being deleted: turning back");
  if (is_undone_by_rollback(step.phase())) {
    step.report(no, "Cancelled", message);
    step.migration.set_rollback_stage(*stage_from(step.phase()));
    co_return step.jump_to(phases::rollbacking, "bringing the clusters back to " + step.source_name() + ": " + message);
  }
  co_return co_await reject(step, "Cancelled", message);
}

Awaitable<ReconcileState> end_badly(Step& step, std::string text) {
  if (survives_deletion(step.phase())) co_return note_and_go_on(step, text);
  if (is_undone_by_rollback(step.phase())) co_return fail_stage(step, "Error", text);
  co_return co_await reject(step, "Error", text);
}

/// Passes on to the framework only what it should see: cancellation.
Awaitable<ReconcileState> guarded(Step& step, const std::function<Awaitable<ReconcileState>(Step&)>& function) {
  std::exception_ptr thrown;
  try {
    co_return co_await function(step);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (async::is_cancellation(thrown)) std::rethrow_exception(thrown);
  co_return co_await end_badly(step, async::describe(thrown));
}

}  // namespace

Step::Step(Context& context, Migration& of)
    : migration(of),
      context_(context),
      log_(context.log().with("phase", context.phase()).with("step", context.handler())),
      timeout_(stage_timeout(of, context.phase())),
      deadline_(stage_deadline(begun(of), timeout_, context.clock())) {}

WallTime Step::begun(const Migration& of) const {
  const auto entered = of.entered(phase()).value_or(now());
  return brings_to_an_end() ? std::max(entered, context_->began) : entered;
}

bool Step::brings_to_an_end() const {
  return survives_deletion(phase());
}

Step Step::until(TimePoint sooner) const {
  Step shorter{*this};
  shorter.deadline_ = std::min(deadline_, sooner);
  return shorter;
}

Step Step::share(double part) const {
  const auto left = std::max(Duration::zero(), Duration{deadline_ - clock().now()});
  return until(clock().now() + std::chrono::duration_cast<Duration>(left * part));
}

Step Step::for_as_long_as_it_takes() const {
  Step longer{*this};
  longer.deadline_ = async::never;
  return longer;
}

kube::Result<std::shared_ptr<hubagent::SourceHub>> Step::source() const {
  return context_->hubs.source(migration.from());
}

kube::Result<std::shared_ptr<hubagent::TargetHub>> Step::target() const {
  return context_->hubs.target(migration.to());
}

void Step::report(kube::ConditionStatus status, std::string_view reason, std::string_view message) {
  report(condition_of(phase()), status, reason, message);
}

void Step::report(std::string_view condition, kube::ConditionStatus status, std::string_view reason,
                  std::string_view message) {
  set_condition(migration, condition, status, reason, message, now());
}

Awaitable<> Step::save() {
  auto& store = context_->store;
  auto written = co_await store.persist(migration);
  if (written.outcome != phase::Written::Outcome::conflict) co_return;
  // Somebody else wrote: our changes go on top of theirs.
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

Handler step(phase::Metadata metadata, std::function<Awaitable<ReconcileState>(Step&)> function) {
  auto leaf = [function = std::move(function)](Context& context, Migration& migration,
                                               const phase::State&) -> Awaitable<ReconcileState> {
    if (!migration.entered(context.phase())) migration.enter(context.phase(), context.clock().wall_now());
    const auto began = *migration.entered(context.phase());
    Step here{context, migration};
    ReconcileState result;
    if (migration.is_being_deleted() && !survives_deletion(context.phase())) {
      result = co_await turn_back(here);
    } else {
      result = co_await guarded(here, function);
    }
    context->reporter.remember(migration, context.phase(), began);
    co_return result;
  };
  return Handler::leaf(std::move(metadata), std::move(leaf));
}

void Step::enter(const Phase& next, std::string_view what_happens_now) {
  migration.enter(next, now());
  // Conditions stand in the order in which they come about: the proof comes before the cleanup.
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

ReconcileState fail_stage(Step& step, std::string_view reason, const std::string& message) {
  step.report(no, reason, message);
  const auto stage = stage_from(step.phase());
  if (stage) {
    step.migration.set_rollback_stage(*stage);
    step.enter(step.error_successor(), "bringing the clusters back to " + step.source_name());
  }
  return phase::failed(message);
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

ReconcileState note_and_go_on(Step& step, std::string_view sentence) {
  const bool rolls_back = step.phase() == phases::rollbacking;
  step.log().warn("going on without this step's success", {{"problem", sentence}});
  step.migration.note_problem(rolls_back ? "rollback" : "cleanup", step.name(), sentence);
  return phase::done();
}

Awaitable<ReconcileState> finish(Step& step, const Ledger& ledger, const Phase& ending) {
  auto& migration = step.migration;
  // First the finalizer: should the process die before the last status write, the rest is only told once more.
  auto freed = co_await kube::remove_finalizer(step->global, managed_cluster_migrations, migration.object.key(),
                                               names::finalizer);
  // Tried again whatever the error: a migration that has ended with its finalizer on could never be deleted.
  if (!freed && freed.error().kind != kube::ErrorKind::not_found)
    co_return phase::failed(phase::Error::network("cannot remove the finalizer: " + sentence_of(freed.error())));
  if (freed && freed->uid() == migration.object.uid()) migration.object = *freed;
  migration.set_time("completionTime", step.now());
  step->reporter.ended(migration, ledger, ending == phases::completed);
  co_return ending == step.successor() ? phase::done() : phase::go_to(ending);
}

namespace {

/// An order about the lists, for as long as it takes.
template <typename Order>
std::invoke_result_t<Order&> ask_for_lists(Step& step, Order order) {
  Step patient = step.for_as_long_as_it_takes();
  async::Backoff backoff{
      {.first = std::chrono::seconds{1}, .most = std::chrono::minutes{1}}, step.clock(), step->env.random};
  auto answer = co_await ask(patient, order);
  while (!answer && step.brings_to_an_end()) {
    step.report(no, reason_of(answer.error()),
                "this waits until its lists of clusters can be used: " + sentence_of(answer.error()));
    co_await step.save();
    co_await backoff.pause();
    answer = co_await ask(patient, order);
  }
  co_return answer;
}

}  // namespace

Awaitable<kube::Result<Ledger>> load_ledger(Step& step) {
  auto read_it = [&step] { return read_ledger(step->global, step.migration); };
  auto read = co_await ask_for_lists(step, read_it);
  if (!read) co_return read.error();
  if (*read && !(**read).all.empty()) co_return std::move(**read);
  step.log().warn("the lists of clusters are missing: rebuilding them", {});
  Ledger ledger = *read ? std::move(**read) : Ledger{};
  if (auto listed = step.migration.listed_clusters()) {
    ledger.all = std::move(*listed);
    co_return ledger;
  }
  auto resolve = [&step]() -> Awaitable<kube::Result<ClusterNames>> {
    auto source = step.source();
    if (!source) co_return source.error();
    const auto& hub = *source;
    co_return co_await hub->resolve_placement(step.migration.placement().value_or(std::string{}));
  };
  auto resolved = co_await ask(step, resolve);
  if (!resolved) co_return resolved.error();
  ledger.all = std::move(*resolved);
  co_return ledger;
}

Awaitable<kube::Result<>> keep_ledger(Step& step, const Ledger& ledger) {
  put_counts(step.migration, ledger, is_active(step.phase()) && step.phase() != phases::validating);
  auto write = [&] { return write_ledger(step->global, step.migration, ledger); };
  co_return co_await ask_for_lists(step, write);
}

Awaitable<kube::Result<>> amend_ledger(Step& step, Ledger& ledger, LedgerChange change) {
  change(ledger);
  auto write = [&] { return change_ledger(step->global, step.migration, ledger, change); };
  co_return co_await ask_for_lists(step, write);
}

std::string sentence_of(const kube::Error& error) {
  return error.message.empty() ? error.describe() : error.message;
}

std::string reason_of(const kube::Error& error) {
  if (error.reason == "Timeout" || error.reason == "ConfigMapConflict") return error.reason;
  return "Error";
}

bool may_pass(const kube::Error& error) {
  switch (error.kind) {
    case kube::ErrorKind::conflict:
      return error.reason != "ConfigMapConflict";
    case kube::ErrorKind::gone:
    case kube::ErrorKind::unauthorized:
    case kube::ErrorKind::retry_later:
    case kube::ErrorKind::unreachable:
    case kube::ErrorKind::ambiguous:
    case kube::ErrorKind::bad_response:
      return true;
    case kube::ErrorKind::not_found:
    case kube::ErrorKind::already_exists:
    case kube::ErrorKind::invalid:
    case kube::ErrorKind::forbidden:
    case kube::ErrorKind::unsupported:
      return false;
  }
  return false;
}

kube::Error no_answer(Duration within, const std::optional<kube::Error>& last) {
  kube::Error error;
  error.kind = kube::ErrorKind::unreachable;
  error.reason = "Timeout";
  error.message = "no answer within " + async::format_duration(within);
  if (last) error.message += "; the last error was: " + sentence_of(*last);
  return error;
}

}  // namespace hubferry::migration
