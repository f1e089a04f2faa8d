#include "hubferry/kube/event_recorder.hpp"

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/async/event.hpp"
#include "kube/control/event_correlator.hpp"

namespace hubferry::kube {

namespace {

/// Where events about cluster-scoped objects live: servers accept both namespaces, those before 1.21 only the second.
constexpr const char* usual_namespace = "default";
constexpr const char* system_namespace = "kube-system";
constexpr std::size_t longest_word = 128;  // of reason, action and reportingInstance
/// How late the last count of a series may be, beyond the series' window.
constexpr Duration sweep_period = std::chrono::minutes{1};
constexpr async::BackoffPolicy retry_policy{.first = std::chrono::seconds{1}, .most = std::chrono::seconds{30}};

}  // namespace

std::string_view truncate_utf8(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  // Bytes 10xxxxxx continue a sequence: it must go as a whole.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

ObjectReference reference_to(const Resource& resource, const Object& object) {
  return {resource.api_version(),    resource.kind,
          std::string{object.ns()},  std::string{object.name()},
          std::string{object.uid()}, std::string{object.resource_version()}};
}

struct EventRecorder::State {
  State(Api& server, EventRecorderOptions settings, Env environment)
      : api(server),
        options(std::move(settings)),
        env(std::move(environment)),
        correlator(options),
        sent(env.metrics.counter("event_recorder_sent_total", "Events created or updated")),
        dropped(env.metrics.counter_family("event_recorder_dropped_total", "Events dropped, by reason", {"reason"})) {
    options.instance = truncate_utf8(options.instance, longest_word);
    for (const auto* reason : {"full", "rate", "rejected", "unreachable"}) dropped.with({reason});
    env.log = env.log.named("events");
  }

  void enqueue(const EventCorrelator::SeriesId& id) {
    auto* series = correlator.find(id);
    if (series == nullptr || series->waiting) return;
    if (buffer.size() >= options.most_waiting) {
      dropped.with({"full"}).increment();
      if (series->written == 0) correlator.forget(id);
      return;
    }
    series->waiting = true;
    buffer.push_back(id);
    changed.notify();
  }

  void drop(const EventCorrelator::SeriesId& id, std::string_view reason, const Error& error) {
    dropped.with({reason}).increment();
    env.log.warn("event dropped", {{"reason", std::get<2>(id)}, {"error", error.describe()}});
    correlator.forget(id);
  }

  /// The buffer's first event, once. `copy` is what was decided on: the series may keep counting meanwhile.
  Awaitable<Result<Object>> write(EventSeries copy) {
    const bool cluster_scoped = copy.what.regarding.ns.empty();
    const std::string ns = cluster_scoped ? cluster_namespace : copy.what.regarding.ns;
    if (copy.written > 0) {
      const Key key{ns, copy.name};
      co_return co_await api.merge_patch(resources::events, key, to_series_patch(copy));
    }
    auto created = co_await api.create(resources::events, to_event(copy, options, ns));
    if (created || created.error().kind != ErrorKind::invalid || !cluster_scoped || ns == system_namespace)
      co_return created;
    auto moved = co_await api.create(resources::events, to_event(copy, options, system_namespace));
    if (!moved) co_return moved.error();
    cluster_namespace = system_namespace;
    co_return moved;
  }

  /// Writes one series, retrying while the server cannot take it. Leaves `waiting` to the caller.
  Awaitable<> send(EventCorrelator::SeriesId id) {
    async::Backoff backoff{retry_policy, env.clock, env.random};
    for (unsigned attempt = 1;; ++attempt) {
      const EventSeries copy = *correlator.find(id);
      auto answer = co_await write(copy);
      auto& series = *correlator.find(id);
      // AlreadyExists on a retry: our own first attempt succeeded, with the count at that time.
      const bool there = !answer && copy.written == 0 && answer.error().kind == ErrorKind::already_exists;
      if (answer || there) {
        series.written = there ? 1 : copy.count;
        sent.increment();
        co_return;
      }
      const Error error = answer.error();
      if (copy.written > 0 && error.kind == ErrorKind::not_found) {
        series.written = 0;  // expired on the server (events live an hour): create it again
        if (attempt < options.attempts) continue;
      }
      const bool may_succeed_later = may_recover(error.kind);
      if (!may_succeed_later || attempt >= options.attempts) {
        drop(id, may_succeed_later ? "unreachable" : "rejected", error);
        co_return;
      }
      if (error.retry_after) co_await env.clock.sleep_for(*error.retry_after);
      co_await backoff.pause();
    }
  }

  Api& api;
  EventRecorderOptions options;
  Env env;
  EventCorrelator correlator;
  std::string cluster_namespace = usual_namespace;
  std::deque<EventCorrelator::SeriesId> buffer;  // each is known to the correlator, and waiting
  async::Notify changed;
  async::WaitList idle;  // wait for an empty buffer
  obs::Counter sent;
  obs::Family<obs::Counter>& dropped;
};

EventRecorder::EventRecorder(Api& api, EventRecorderOptions options, Env env)
    : state_(std::make_unique<State>(api, std::move(options), std::move(env))) {}

EventRecorder::~EventRecorder() = default;

std::size_t EventRecorder::waiting() const {
  return state_->buffer.size();
}

void EventRecorder::event(const ObjectReference& regarding, EventType type, std::string_view reason,
                          std::string_view action, std::string_view note) {
  Occurrence occurrence{regarding, type, std::string{truncate_utf8(reason, longest_word)},
                        std::string{truncate_utf8(action, longest_word)},
                        std::string{truncate_utf8(note, longest_note)}};
  auto& env = state_->env;
  const auto outcome = state_->correlator.take(std::move(occurrence), env.clock.now(), env.clock.wall_now());
  switch (outcome.verdict) {
    case EventCorrelator::Verdict::write:
      state_->enqueue(outcome.id);
      break;
    case EventCorrelator::Verdict::counted:
      break;
    case EventCorrelator::Verdict::rate_limited:
      state_->dropped.with({"rate"}).increment();
      break;
    case EventCorrelator::Verdict::full:
      state_->dropped.with({"full"}).increment();
      break;
  }
}

Awaitable<> EventRecorder::run() {
  auto& state = *state_;
  while (true) {
    while (!state.buffer.empty()) {
      const auto id = state.buffer.front();
      co_await state.send(id);
      state.buffer.pop_front();
      if (auto* series = state.correlator.find(id)) series->waiting = false;
    }
    state.idle.wake_all();
    for (const auto& id : state.correlator.sweep(state.env.clock.now())) state.enqueue(id);
    if (!state.buffer.empty()) continue;
    // Without series there is nothing to sweep, and no reason to wake up.
    const auto sweep_at =
        state.correlator.entries() == 0 ? async::never : async::later(state.env.clock.now(), sweep_period);
    co_await async::before_deadline(state.env.clock, sweep_at, state.changed.wait());
  }
}

Awaitable<> EventRecorder::flushed() {
  while (!state_->buffer.empty()) co_await state_->idle.wait();
}

}  // namespace hubferry::kube
