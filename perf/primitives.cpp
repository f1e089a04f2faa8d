// What the runtime itself costs: tasks, timers, waiting, crossing from one loop to another.
#include <boost/asio/io_context.hpp>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/async/loops.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "report.hpp"

namespace {

using namespace hubferry::async;
using hubferry::perf::Report;
using hubferry::perf::Stopwatch;

constexpr int rounds = 200'000;

Awaitable<> nothing() {
  co_return;
}

void spawn_and_join(Report& report) {
  VirtualLoop loop;
  auto body = []() -> Awaitable<> {
    for (int i = 0; i < rounds / 100; ++i) {
      TaskScope scope{co_await asio::this_coro::executor};
      for (int child = 0; child < 100; ++child) scope.spawn(nothing());
      co_await scope.join();
    }
  };
  Stopwatch watch;
  loop.run(body());
  report.line("spawn and join of a task", watch.seconds() / rounds * 1e9, "ns");
}

void virtual_timers(Report& report) {
  VirtualLoop loop;
  auto body = [&]() -> Awaitable<> {
    for (int i = 0; i < rounds; ++i) co_await loop.clock().sleep_for(1s);
  };
  Stopwatch watch;
  loop.run(body());
  report.line("a sleep on virtual time", watch.seconds() / rounds * 1e9, "ns");
}

void real_timers(Report& report) {
  asio::io_context context{1};
  RealClock clock;
  constexpr int tasks = 20'000;
  auto body = [&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    for (int i = 0; i < tasks; ++i) scope.spawn(clock.sleep_for(std::chrono::microseconds(i % 1000)));
    co_await scope.join();
  };
  asio::co_spawn(context, body(), [](std::exception_ptr) {});
  Stopwatch watch;
  context.run();
  report.line("a task that sleeps on real time, 20,000 at once", watch.cpu() / tasks * 1e9, "ns CPU");
}

void deadlines(Report& report) {
  VirtualLoop loop;
  auto body = [&]() -> Awaitable<> {
    for (int i = 0; i < rounds / 4; ++i) co_await with_deadline(loop.clock(), later(loop.clock().now(), 1h), nothing());
  };
  Stopwatch watch;
  loop.run(body());
  report.line("with_deadline around a quick task", watch.seconds() / (rounds / 4) * 1e9, "ns");
}

void crossing(Report& report) {
  LoopPool pool{1};
  asio::io_context home{1};
  const Executor other = pool.next();
  constexpr int calls = rounds / 4;
  auto body = [&]() -> Awaitable<> {
    for (int i = 0; i < calls; ++i) co_await run_on(other, nothing);
  };
  asio::co_spawn(home, body(), [](std::exception_ptr) {});
  Stopwatch watch;
  home.run();
  report.line("a call on another loop, and back, one at a time", watch.seconds() / calls * 1e9, "ns");

  auto many = [&]() -> Awaitable<> {
    for (int i = 0; i < calls / 100; ++i) {
      TaskScope scope{co_await asio::this_coro::executor};
      for (int child = 0; child < 100; ++child) scope.spawn(run_on(other, nothing));
      co_await scope.join();
    }
  };
  home.restart();
  asio::co_spawn(home, many(), [](std::exception_ptr) {});
  Stopwatch watch_many;
  home.run();
  report.line("a call on another loop, 100 in flight", watch_many.seconds() / calls * 1e9, "ns");
}

void waiting_memory(Report& report) {
  constexpr int tasks = 100'000;
  VirtualLoop loop;
  Event event;
  auto body = [&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    const double before = hubferry::perf::allocated_bytes();
    for (int i = 0; i < tasks; ++i) scope.spawn(event.wait());
    co_await loop.clock().sleep_for(1s);
    report.line("memory of a waiting task, its own frame included",
                (hubferry::perf::allocated_bytes() - before) / tasks, "bytes", "under 1024 + its own frame (208)");
    Stopwatch watch;
    event.set();
    co_await scope.join();
    report.line("waking and ending a waiting task", watch.seconds() / tasks * 1e9, "ns");
  };
  loop.run(body());
}

void cancelling(Report& report) {
  constexpr int tasks = 50'000;
  VirtualLoop loop;
  Event event;
  auto body = [&]() -> Awaitable<> {
    TaskScope scope{co_await asio::this_coro::executor};
    for (int i = 0; i < tasks; ++i) scope.spawn(event.wait());
    co_await loop.clock().sleep_for(1s);
    Stopwatch watch;
    scope.stop();
    co_await scope.join();
    report.line("cancelling a waiting task", watch.seconds() / tasks * 1e9, "ns");
  };
  loop.run(body());
}

}  // namespace

int main(int argc, char** argv) {
  Report report{"primitives", argc, argv};
  spawn_and_join(report);
  virtual_timers(report);
  real_timers(report);
  deadlines(report);
  crossing(report);
  waiting_memory(report);
  cancelling(report);
}
