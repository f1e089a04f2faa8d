#include "hubferry/async/task_scope.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <utility>
#include <vector>

#include "hubferry/async/loops.hpp"
#include "hubferry/async/wait_list.hpp"

namespace hubferry::async {

class TaskScope::Child {
 public:
  asio::cancellation_signal signal;
  bool finished = false;
  std::uint32_t stop_request = 0;  // not 0: asked to stop on its own, not with the whole scope
};

struct TaskScope::State : std::enable_shared_from_this<State> {
  using ChildIterator = std::list<Child>::iterator;

  explicit State(Executor ex) : executor(std::move(ex)) {}

  void start(ChildIterator child, Awaitable<> task) {
    if (stopping || child->stop_request != 0) return on_finished(child, nullptr);
    auto on_end = [self = shared_from_this(), child](const std::exception_ptr& error) {
      self->on_finished(child, error);
    };
    asio::co_spawn(executor, std::move(task), asio::bind_cancellation_slot(child->signal.slot(), std::move(on_end)));
  }

  void on_finished(ChildIterator child, const std::exception_ptr& error) {
    --running;
    child->finished = true;
    const bool as_requested = child->stop_request != 0 && is_cancellation(error);
    std::erase(to_be_stopped, &*child);
    // While signals are being emitted the list must hold still; sweep() comes afterwards.
    if (emitting) {
      must_sweep = true;
    } else {
      children.erase(child);
    }
    if (error && !stopping && !as_requested) {
      first_error = error;
      stop();
    }
    if (running == 0) idle.wake_all();
  }

  void stop() {
    if (stopping) return;
    stopping = true;
    // In a turn of its own: the caller may be a child that has not suspended yet, and Asio 1.81 loses the completion
    // of a coroutine that is cancelled before its first suspension.
    if (running > 0) asio::post(executor, [self = shared_from_this()] { self->cancel_children(); });
  }

  void stop(Child& child) {
    if (stopping || child.stop_request != 0) return;
    child.stop_request = ++stop_requests;
    to_be_stopped.push_back(&child);
    // A turn for each, for the reason above: a common one might come before the child's first suspension.
    asio::post(executor, [self = shared_from_this(), request = stop_requests] { self->cancel_child(request); });
  }

  void cancel_child(std::uint32_t request) {
    const auto found = std::find_if(to_be_stopped.begin(), to_be_stopped.end(),
                                    [&](const Child* child) { return child->stop_request == request; });
    if (found == to_be_stopped.end()) return;  // it has ended meanwhile
    auto& child = **found;
    to_be_stopped.erase(found);
    emitting = true;
    child.signal.emit(asio::cancellation_type::terminal);
    sweep();
  }

  void cancel_children() {
    emitting = true;
    for (auto& child : children)
      if (!child.finished) child.signal.emit(asio::cancellation_type::terminal);
    sweep();
  }

  void sweep() {
    emitting = false;
    if (std::exchange(must_sweep, false)) children.remove_if([](const Child& child) { return child.finished; });
  }

  Executor executor;
  std::list<Child> children;
  std::vector<Child*> to_be_stopped;  // each in a turn to come; none has ended
  std::size_t running = 0;
  bool stopping = false;
  bool emitting = false;
  bool must_sweep = false;
  std::uint32_t stop_requests = 0;
  std::exception_ptr first_error;  // by time: the root cause, not what it set off
  WaitList idle;
};

TaskScope::TaskScope(Executor executor) : state_(std::make_shared<State>(std::move(executor))) {}

TaskScope::~TaskScope() {
  if (state_->running == 0 || loop_is_being_destroyed()) return;
  std::fprintf(stderr, "hubferry: a TaskScope was destroyed with %zu tasks running: join() it first\n",
               state_->running);
  std::abort();
}

TaskScope::Child* TaskScope::spawn(Awaitable<> task) {
  if (state_->stopping) return nullptr;
  const auto child = state_->children.emplace(state_->children.end());
  ++state_->running;
  asio::post(state_->executor,
             [state = state_, child, task = std::move(task)]() mutable { state->start(child, std::move(task)); });
  return &*child;
}

void TaskScope::stop(Child& child) {
  state_->stop(child);
}

void TaskScope::stop() {
  state_->stop();
}

Awaitable<> TaskScope::join() {
  const auto state = state_;
  // A cancelled coroutine throws at its next co_await; the children must be awaited all the same.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  bool cancelled = is_cancelled(co_await asio::this_coro::cancellation_state);
  if (cancelled) state->stop();
  while (state->running > 0) {
    try {
      co_await state->idle.wait();
    } catch (const boost::system::system_error&) {
      cancelled = true;
      state->stop();
    }
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (state->first_error) std::rethrow_exception(state->first_error);
  if (cancelled) throw_cancelled();
}

std::size_t TaskScope::running() const noexcept {
  return state_->running;
}

bool TaskScope::stopping() const noexcept {
  return state_->stopping;
}

const Executor& TaskScope::executor() const noexcept {
  return state_->executor;
}

Awaitable<> shielded(Awaitable<> body) {
  const auto executor = co_await asio::this_coro::executor;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  // The body's completion handler has no cancellation slot, so the caller's signal does not reach it.
  auto start = [&](auto handler) {
    asio::co_spawn(executor, std::move(body),
                   [handler = std::move(handler)](std::exception_ptr error) mutable { std::move(handler)(error); });
  };
  std::exception_ptr error;
  try {
    co_await asio::async_initiate<const asio::deferred_t, void(std::exception_ptr)>(start, asio::deferred);
  } catch (...) {
    error = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (error) std::rethrow_exception(error);
}

}  // namespace hubferry::async
