#pragma once

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/phase/handler.hpp"
#include "migration/admission.hpp"
#include "migration/reporter.hpp"
#include "migration/status_text.hpp"

namespace hubferry::migration {

using async::Awaitable;
using async::TimePoint;
using phase::ReconcileState;

/// What the handlers of all migrations share.
struct Services {
  kube::Api& global;
  hubs::Hubs& hubs;
  phase::KubeStore& store;
  Admission& admission;
  Reporter& reporter;
  ControllerOptions options;
  kube::Env env;
  WallTime began{};  // when this manager took over
};

using Context = phase::Context<Services>;
using Handler = phase::Handler<Services, Migration>;

/// One step of a phase at work: the migration, and how much time the phase has left.
/// Lifetime: that of the handler's run.
class Step {
 public:
  Step(Context& context, Migration& migration);

  Migration& migration;

  Services* operator->() const { return &context_.services(); }
  [[nodiscard]] const Phase& phase() const { return context_.phase(); }
  [[nodiscard]] const std::string& name() const { return context_.handler(); }
  /// Where the definition leads from this phase: when it is done, and when it has failed.
  [[nodiscard]] const Phase& successor() const { return context_.successor(); }
  [[nodiscard]] const Phase& error_successor() const { return context_.error_successor(); }
  [[nodiscard]] const obs::Logger& log() const { return log_; }
  [[nodiscard]] async::Clock& clock() const { return context_.clock(); }
  [[nodiscard]] WallTime now() const { return context_.clock().wall_now(); }

  /// When the phase has to be over. A third of its time is what an order has before it is given again.
  /// What brings things to their end has its time from when this manager took over: while there was none, nobody
  /// tried.
  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  [[nodiscard]] Duration timeout() const { return timeout_; }
  [[nodiscard]] Duration answer_time() const { return timeout_ / 3; }
  [[nodiscard]] Duration least_time() const { return std::min<Duration>(answer_time(), std::chrono::seconds{10}); }
  [[nodiscard]] bool time_is_up() const { return context_.clock().now() >= deadline_; }
  /// Rollbacking and Cleaning: every order is given, if only once and briefly, also where the time is up.
  [[nodiscard]] bool brings_to_an_end() const;
  /// The same step with less time.
  [[nodiscard]] Step until(TimePoint sooner) const;
  /// The same step with a part of the time that is left.
  [[nodiscard]] Step share(double part) const;
  /// The same step without a deadline: for what must be on record before anything else happens.
  [[nodiscard]] Step for_as_long_as_it_takes() const;

  /// "hub 'hub1'": how messages call the two.
  [[nodiscard]] std::string source_name() const { return "hub '" + migration.from() + "'"; }
  [[nodiscard]] std::string target_name() const { return "hub '" + migration.to() + "'"; }
  [[nodiscard]] kube::Result<std::shared_ptr<hubagent::SourceHub>> source() const;
  [[nodiscard]] kube::Result<std::shared_ptr<hubagent::TargetHub>> target() const;

  /// Sets the condition by which this phase reports, or another.
  void report(kube::ConditionStatus status, std::string_view reason, std::string_view message);
  void report(std::string_view condition, kube::ConditionStatus status, std::string_view reason,
              std::string_view message);
  /// Starts the clock of the next phase, and says in its condition what happens now.
  void enter(const Phase& next, std::string_view what_happens_now);
  /// Ends the phase: continues to its successor.
  ReconcileState advance(std::string_view what_happens_now);
  /// Ends the phase: continues to one that the definition declares as a forced transition.
  ReconcileState jump_to(const Phase& next, std::string_view what_happens_now);

  /// Writes the status now instead of at the end of the step: before long waits, and progress within them. A write that
  /// does not succeed is made up for by the next one.
  Awaitable<> save();

 private:
  [[nodiscard]] WallTime begun(const Migration& of) const;

  Context& context_;
  obs::Logger log_;
  Duration timeout_;
  TimePoint deadline_;
};

/// A leaf of a phase. Before its function runs, it sees to it that a migration that is being deleted turns back, that
/// the phase has a clock, and that what is thrown ends the phase as any failure does.
Handler step(phase::Metadata metadata, std::function<Awaitable<ReconcileState>(Step&)> function);

/// Ends the phase as failed: what was touched is rolled back. Clusters that failed are told of by events.
ReconcileState fail_stage(Step& step, std::string_view reason, const std::string& message);

/// Ends a migration that has not touched anything yet.
Awaitable<ReconcileState> reject(Step& step, std::string reason, std::string message);

/// The last step of a migration: frees the resource, for which nothing is left to undo, and tells the world.
Awaitable<ReconcileState> finish(Step& step, const Ledger& ledger, const Phase& ending);

/// In Rollbacking and Cleaning nothing stops the rest: the problem is noted, and the step is done.
ReconcileState note_and_go_on(Step& step, std::string_view sentence);

/// The migration's lists; rebuilt from what is known where somebody took them away. Like the status itself they are
/// waited for as long as it takes: without them nothing can go on. Where something is to be undone, that holds for
/// errors that need a person too: the condition says what is waited for.
Awaitable<kube::Result<Ledger>> load_ledger(Step& step);
/// Writes the lists, for as long as it takes, and puts the counts into the status.
Awaitable<kube::Result<>> keep_ledger(Step& step, const Ledger& ledger);
/// The same for a change, here and on the server: for steps that work side by side.
Awaitable<kube::Result<>> amend_ledger(Step& step, Ledger& ledger, LedgerChange change);

/// A sentence without the request's details: for conditions and events.
std::string sentence_of(const kube::Error& error);
/// "Timeout" for an order that was not answered in time, else the word that fits an error of that kind.
std::string reason_of(const kube::Error& error);
/// May the same order succeed later?
bool may_pass(const kube::Error& error);
kube::Error no_answer(Duration within, const std::optional<kube::Error>& last);

/// Gives an order until it is answered: once more when a third of the phase's time has passed without an answer, and,
/// after a pause, where an error may pass. Until the phase's deadline (see brings_to_an_end()); then `Timeout`.
/// `order` is called for each attempt.
template <typename Order>
std::invoke_result_t<Order&> ask(Step& step, Order order) {
  using Answer = typename std::invoke_result_t<Order&>::value_type;
  async::Backoff backoff{
      {.first = std::chrono::milliseconds{500}, .most = std::chrono::seconds{15}}, step.clock(), step->env.random};
  std::optional<kube::Error> last;
  const auto least = step.brings_to_an_end() ? async::later(step.clock().now(), step.least_time()) : TimePoint{};
  while (!step.time_is_up() || step.clock().now() < least) {
    const auto within = std::min(step.deadline(), async::later(step.clock().now(), step.answer_time()));
    const auto until = std::max(within, least);
    std::exception_ptr thrown;
    try {
      Answer answer = co_await async::with_deadline(step.clock(), until, order());
      if (answer || !may_pass(answer.error())) co_return answer;
      last = answer.error();
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown && !async::is_timeout(thrown)) std::rethrow_exception(thrown);
    if (step.clock().now() >= until) {
      step.log().warn("no answer: asking again");
      continue;
    }
    step.log().info("asking again soon", {{"error", last ? last->describe() : "timeout"}});
    const auto pause_end = std::min(std::max(step.deadline(), least), async::later(step.clock().now(), backoff.next()));
    co_await step.clock().sleep_until(pause_end);
  }
  co_return no_answer(step.timeout(), last);
}

}  // namespace hubferry::migration
