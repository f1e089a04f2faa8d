#include "hubferry/phase/machine.hpp"

#include <boost/asio/this_coro.hpp>

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/semaphore.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/phase/decision.hpp"
#include "phase/run_handler.hpp"

namespace hubferry::phase {

/// One reconcile in progress.
struct MachineCore::Step final : ReconcileRun {
  Step(MachineCore& of, Key of_key, obs::Logger logger)
      : ReconcileRun(of.definition_, of.env_, *of.handler_metrics_, of.services_, std::move(of_key), std::move(logger)),
        machine(of) {}

  Awaitable<> save() override { return machine.save(*this); }

  MachineCore& machine;
  bool phase_unwritten = false;  // the initial phase, so far only in memory
  State last;                    // before the run
  ReconcileState result;         // of the run
  Decision decision;
  Reconciled reconciled;
  bool resumed = false;                      // in this reconcile
  bool claimed = false;                      // by this process, in the status
  bool over = false;                         // reconciled is the answer
  std::unique_ptr<async::Semaphore> saving;  // once a handler has called save(): one write at a time
};

namespace {

std::string_view to_label(Written::Outcome outcome) {
  switch (outcome) {
    case Written::Outcome::written:
      return "written";
    case Written::Outcome::conflict:
      return "conflict";
    case Written::Outcome::ambiguous:
      return "ambiguous";
    case Written::Outcome::gone:
      return "gone";
    case Written::Outcome::failed:
      return "failed";
  }
  return "failed";
}

Awaitable<> do_nothing() {
  co_return;
}

/// Turns what a definition's function throws into its error, except for our own cancellation. An "operation aborted"
/// from elsewhere is an error like any other: passed on, it would look like the cancellation of this machine.
template <typename T>
Awaitable<Result<T>> caught(Awaitable<Result<T>> call) {
  std::exception_ptr thrown;
  try {
    co_return co_await std::move(call);
  } catch (...) {
    thrown = std::current_exception();
  }
  const auto cancellation = co_await async::asio::this_coro::cancellation_state;
  if (async::is_cancelled(cancellation) && async::is_cancellation(thrown)) std::rethrow_exception(thrown);
  co_return Error::from_exception(thrown);
}

Awaitable<Written> caught(Awaitable<Written> call) {
  std::exception_ptr thrown;
  try {
    co_return co_await std::move(call);
  } catch (...) {
    thrown = std::current_exception();
  }
  const auto cancellation = co_await async::asio::this_coro::cancellation_state;
  if (async::is_cancelled(cancellation) && async::is_cancellation(thrown)) std::rethrow_exception(thrown);
  // It may have been applied before the exception.
  co_return Written::ambiguous(Error::from_exception(thrown));
}

}  // namespace

MachineCore::MachineCore(DefinitionBase& definition, void* services, kube::Env env, MachineOptions options)
    : definition_(definition),
      services_(services),
      env_(std::move(env)),
      options_(std::move(options)),
      transitions_(env_.metrics.counter_family("hubferry_phase_transitions_total",
                                               "Transitions of phase machines, by the phase that was entered.",
                                               {"machine", "phase"})),
      writes_(env_.metrics.counter_family("hubferry_phase_status_writes_total",
                                          "Status writes of phase machines, by result.", {"machine", "result"})),
      handler_metrics_(std::make_unique<HandlerMetrics>(definition_, options_.name, env_.metrics)) {
  for (const auto& phase : definition_.tables().in_order()) transitions_.with({options_.name, phase});
  for (const auto outcome : {Written::Outcome::written, Written::Outcome::conflict, Written::Outcome::ambiguous,
                             Written::Outcome::gone, Written::Outcome::failed})
    writes_.with({options_.name, to_label(outcome)});
}

MachineCore::~MachineCore() = default;

Awaitable<Reconciled> MachineCore::reconcile(Key key) {
  auto log = env_.log.with("machine", options_.name).with("resource", to_string(key));
  Step step{*this, std::move(key), std::move(log)};
  const auto finish = [&](Reconciled::Outcome outcome) {
    step.reconciled.outcome = outcome;
    step.reconciled.phase = step.phase;
    return std::move(step.reconciled);
  };

  auto fetched = co_await caught(definition_.erased_fetch(services_, step.key, false));
  if (!fetched) {
    step.reconciled.error = std::move(fetched).error();
    co_return finish(Reconciled::Outcome::failed);
  }
  step.resource = std::move(*fetched);
  if (step.resource == nullptr) co_return finish(Reconciled::Outcome::gone);

  for (;;) {
    step.phase = definition_.erased_phase(step.resource.get());
    if (step.phase.empty()) {
      step.phase = definition_.tables().initial;
      definition_.erased_set_phase(step.resource.get(), step.phase);
      step.phase_unwritten = true;
    }
    const bool ended = definition_.tables().is_terminal(step.phase);
    auto resumed = ended ? definition_.erased_resumption(step.resource.get()) : std::optional<Phase>{};
    if (ended && !resumed) co_return finish(Reconciled::Outcome::terminal);
    if (!step.claimed) {
      co_await claim(step);
      if (step.over) co_return std::move(step.reconciled);
      continue;
    }
    if (ended) {
      if (step.resumed) {
        // It has ended again and still asks for more: not at once.
        step.reconciled.after = definition_.requeue_delay();
        co_return finish(Reconciled::Outcome::again);
      }
      co_await resume(step, std::move(*resumed));
      if (step.over) co_return std::move(step.reconciled);
      continue;
    }
    if (step.reconciled.runs == options_.runs_at_once) co_return finish(Reconciled::Outcome::again);

    step.last = definition_.erased_state(step.resource.get(), step.phase);
    // A handler may wait for hours: free what is left of the previous phase.
    step.result = ReconcileState{};
    step.decision = Decision{};
    const HandlerRun run{step};
    co_await run_root(step, run);
    if (step.result.failed) {
      step.log.warn("handler failed",
                    {{"phase", step.phase}, {"error", step.result.error->message}, {"fatal", step.result.fatal}});
    }
    ++step.reconciled.runs;
    step.decision = decide(definition_, step.last, step.result);
    co_await write(step);
    if (step.over) co_return std::move(step.reconciled);
    // A zero delay is a checkpoint: continue at once.
    if (step.decision.moved || step.decision.again == async::Duration::zero()) continue;
    step.reconciled.after = step.decision.again;
    co_return finish(Reconciled::Outcome::again);
  }
}

// Not a coroutine: a machine that waits in its handler would keep one more frame.
Awaitable<> MachineCore::run_root(Step& step, const HandlerRun& run) {
  step.result.phase = step.phase;
  const auto* handler = definition_.handler_for(step.phase);
  if (handler != nullptr) return run_handler(run, *handler, step.last, step.result);
  step.result.handler = step.phase;
  step.result.start_time = step.result.end_time = env_.clock.wall_now();
  mark_unworkable(step.result, "phase '" + step.phase + "' has no handler");
  return do_nothing();
}

void MachineCore::report_transition(const Step& step) {
  step.log.info("phase changed",
                {{"from", step.phase}, {"to", step.decision.phase}, {"transition", to_string(step.decision.edge)}});
  transitions_.with({options_.name, step.decision.phase}).increment();
  if (options_.on_transition)
    options_.on_transition({step.key, step.phase, step.decision.phase, step.decision.state, step.decision.edge});
}

/// Records in the status that this process works on the resource, which may be read again for that.
Awaitable<> MachineCore::claim(Step& step) {
  async::Backoff backoff{{}, env_.clock, env_.random};
  for (;;) {
    const auto written = co_await caught(definition_.erased_claim(services_, step.resource.get()));
    step.claimed = written.outcome == Written::Outcome::written;
    if (step.claimed) co_return;
    record_write(step, written);
    if (step.over) co_return;
    co_await pause_after(written, backoff);
    auto fresh = co_await read_fresh(step);
    if (step.over) co_return;
    step.resource = std::move(fresh);
    step.phase_unwritten = false;
  }
}

/// Writes the transition from a terminal phase back to work. On a write conflict the caller looks at the
/// resource again.
Awaitable<> MachineCore::resume(Step& step, Phase to) {
  const auto fail = [&](Error error) {
    step.reconciled.outcome = Reconciled::Outcome::failed;
    step.reconciled.phase = step.phase;
    step.reconciled.error = std::move(error);
    step.over = true;
  };
  if (!definition_.tables().declares(step.phase, to, EdgeKind::resume)) {
    fail(Error{"phase '" + step.phase + "' cannot be resumed in phase '" + to +
               "': the definition does not declare it"});
    co_return;
  }
  step.resumed = true;
  step.last = definition_.erased_state(step.resource.get(), step.phase);
  step.result = ReconcileState{};
  step.decision = {step.last, to, true, EdgeKind::resume, {}};
  async::Backoff backoff{{}, env_.clock, env_.random};
  for (;;) {
    void* const resource = step.resource.get();
    definition_.erased_prepare_resumption(services_, resource, to, env_.clock.wall_now());
    definition_.erased_set_phase(resource, to);
    definition_.erased_set_state(resource, to, entered_state(to));
    const auto written = co_await caught(definition_.erased_persist(services_, step.resource.get()));
    record_write(step, written);
    if (written.outcome == Written::Outcome::written) {
      report_transition(step);
      co_return;
    }
    if (step.over) co_return;
    co_await pause_after(written, backoff);
    auto fresh = co_await read_fresh(step);
    if (step.over) co_return;
    const bool happened = written.outcome == Written::Outcome::ambiguous && definition_.erased_phase(fresh.get()) == to;
    step.resource = std::move(fresh);
    if (happened) report_transition(step);
    if (definition_.erased_phase(step.resource.get()) != step.phase ||
        definition_.erased_resumption(step.resource.get()) != to)
      co_return;
  }
}

/// The State of a phase that is entered: empty, or the start of its timeout.
State MachineCore::entered_state(const Phase& phase) const {
  State state;
  const auto* handler = definition_.handler_for(phase);
  if (handler != nullptr && handler->metadata.timeout > async::Duration::zero())
    state.extra[entered_time_field] = async::format_time(env_.clock.wall_now());
  return state;
}

/// Context::save(). Handlers keep a reference to the resource, so it is changed in place; and they keep changing it
/// while the write is in flight, so a copy is written. It says which step runs: people look at it for hours.
Awaitable<> MachineCore::save(Step& step) {
  if (!step.saving) step.saving = std::make_unique<async::Semaphore>(1);
  const auto permit = co_await step.saving->acquire();
  void* const resource = step.resource.get();
  for (int attempt = 0; attempt < 2; ++attempt) {
    definition_.erased_set_state(
        resource, step.phase,
        with_begun(definition_.handler_for(step.phase), definition_.erased_state(resource, step.phase), step.result,
                   definition_.component_limit()));
    const auto copy = definition_.erased_copy(resource);
    const auto written = co_await caught(definition_.erased_persist(services_, copy.get()));
    ++step.reconciled.writes;
    writes_.with({options_.name, to_label(written.outcome)}).increment();
    if (written.outcome == Written::Outcome::written) {
      definition_.erased_carry_over(copy.get(), resource);
      definition_.erased_assign(resource, copy.get());
      step.phase_unwritten = false;
      co_return;
    }
    if (written.outcome != Written::Outcome::conflict) co_return;
    auto fetched = co_await caught(definition_.erased_fetch(services_, step.key, true));
    if (!fetched || *fetched == nullptr || !definition_.erased_is_same(fetched->get(), resource)) co_return;
    void* const fresh = fetched->get();
    // Another leader's: the handler's result will find out as well, and end this run.
    if (!definition_.erased_is_claimed(fresh)) co_return;
    definition_.erased_carry_over(fresh, resource);
    if (definition_.erased_phase(fresh).empty()) definition_.erased_set_phase(fresh, step.phase);
    definition_.erased_assign(resource, fresh);
  }
}

/// Counts and logs a status write. Sets step.over if there is nothing left to write to.
void MachineCore::record_write(Step& step, const Written& written) {
  ++step.reconciled.writes;
  writes_.with({options_.name, to_label(written.outcome)}).increment();
  switch (written.outcome) {
    case Written::Outcome::written:
    case Written::Outcome::conflict:
      break;
    case Written::Outcome::gone:
      step.over = true;
      break;
    case Written::Outcome::ambiguous:
      step.log.warn("status write got no answer, reading the resource again", {{"error", written.error.message}});
      break;
    case Written::Outcome::failed:
      step.log.warn("status write failed", {{"error", written.error.message}});
      if (written.error.kind == ErrorKind::network) break;
      step.reconciled.outcome = Reconciled::Outcome::failed;
      step.reconciled.phase = step.phase;
      step.reconciled.error = written.error;
      step.over = true;
      break;
  }
}

/// The first conflict is answered at once; further ones back off.
Awaitable<> MachineCore::pause_after(const Written& written, async::Backoff& backoff) {
  if (written.outcome == Written::Outcome::failed || backoff.failures() > 0) {
    co_await backoff.pause();
  } else {
    backoff.next();
  }
}

/// Writes the status if it has changed, and retries until the write succeeds or the resource is gone.
Awaitable<> MachineCore::write(Step& step) {
  async::Backoff backoff{{}, env_.clock, env_.random};
  State known = step.last;                 // what the resource says
  std::optional<Decision> without_answer;  // a transition that may have been written
  for (;;) {
    void* const resource = step.resource.get();
    if (without_answer && step.decision.phase == without_answer->phase && known == without_answer->state &&
        definition_.erased_phase(resource) == without_answer->phase && without_answer->phase != step.phase) {
      // No other write would have exactly the times of our State: it was ours that came through.
      report_transition(step);
      without_answer.reset();
    }
    const bool to_another = step.decision.phase != definition_.erased_phase(resource);
    const bool restarts = step.decision.moved && (to_another || step.decision.phase == step.phase);
    const bool changed = restarts || step.phase_unwritten || step.result.updated || !(step.decision.state == known) ||
                         definition_.erased_is_modified(resource);
    if (!changed) co_return;
    definition_.erased_set_state(resource, step.phase, step.decision.state);
    if (restarts) {
      definition_.erased_set_phase(resource, step.decision.phase);
      // A phase that is entered starts afresh, also for the second time.
      definition_.erased_set_state(resource, step.decision.phase, entered_state(step.decision.phase));
    }
    const auto written = co_await caught(definition_.erased_persist(services_, step.resource.get()));
    record_write(step, written);
    if (written.outcome == Written::Outcome::written) {
      step.phase_unwritten = false;
      if (restarts) report_transition(step);
      co_return;
    }
    if (step.over) co_return;
    if (written.outcome == Written::Outcome::ambiguous && restarts) without_answer = step.decision;
    co_await pause_after(written, backoff);
    co_await read_again(step);
    if (step.over) co_return;
    known = definition_.erased_state(step.resource.get(), step.phase);
  }
}

/// Reads the resource from the server, with retries. Sets step.over if it is gone, or another object.
Awaitable<DefinitionBase::ErasedResource> MachineCore::read_fresh(Step& step) {
  async::Backoff backoff{{}, env_.clock, env_.random};
  for (;;) {
    auto fetched = co_await caught(definition_.erased_fetch(services_, step.key, true));
    if (!fetched) {
      step.log.warn("reading the resource failed, retrying", {{"error", fetched.error().message}});
      co_await backoff.pause();
      continue;
    }
    auto fresh = std::move(*fetched);
    if (fresh == nullptr || !definition_.erased_is_same(fresh.get(), step.resource.get())) {
      step.reconciled = {};
      // A new object of the same name is another machine.
      if (fresh != nullptr) step.reconciled.outcome = Reconciled::Outcome::again;
      step.over = true;
    } else if (step.claimed && !definition_.erased_is_claimed(fresh.get())) {
      // Another leader has worked on it: what we have done does not count. The next reconcile claims it, or cannot.
      step.log.warn("another leader has written the status, dropping the results of this run");
      step.reconciled = {};
      step.reconciled.outcome = Reconciled::Outcome::again;
      step.over = true;
    }
    co_return fresh;
  }
}

/// Combines the results at hand with what the resource says now.
Awaitable<> MachineCore::read_again(Step& step) {
  auto fresh = co_await read_fresh(step);
  if (step.over) co_return;
  definition_.erased_carry_over(fresh.get(), step.resource.get());
  Phase fresh_phase = definition_.erased_phase(fresh.get());
  step.phase_unwritten = fresh_phase.empty();
  if (fresh_phase.empty()) {
    fresh_phase = definition_.tables().initial;
    definition_.erased_set_phase(fresh.get(), fresh_phase);
  }
  const State fresh_state = definition_.erased_state(fresh.get(), step.phase);
  step.decision = decide_again(definition_, step.last, step.result, fresh_phase, fresh_state);
  step.resource = std::move(fresh);
}

}  // namespace hubferry::phase
