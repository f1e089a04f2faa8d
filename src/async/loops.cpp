#include "hubferry/async/loops.hpp"

#include <pthread.h>

#include <algorithm>
#include <string>

namespace hubferry::async {

namespace {
thread_local int loops_being_destroyed = 0;
}

LoopDestruction::LoopDestruction() {
  ++loops_being_destroyed;
}

LoopDestruction::~LoopDestruction() {
  --loops_being_destroyed;
}

bool loop_is_being_destroyed() noexcept {
  return loops_being_destroyed > 0;
}

struct LoopPool::Loop {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> keep_alive = asio::make_work_guard(context);
  std::thread thread;
};

LoopPool::LoopPool(std::size_t threads) {
  for (std::size_t i = 0; i < std::max<std::size_t>(threads, 1); ++i) {
    auto& loop = loops_.emplace_back(std::make_unique<Loop>());
    loop->thread = std::thread([context = &loop->context, i] {
      pthread_setname_np(pthread_self(), ("loop-" + std::to_string(i)).c_str());
      context->run();
    });
  }
}

void LoopPool::stop() {
  for (auto& loop : loops_) loop->context.stop();
  for (auto& loop : loops_) {
    if (loop->thread.joinable()) loop->thread.join();
  }
}

LoopPool::~LoopPool() {
  stop();
  LoopDestruction mark;
  loops_.clear();
}

Executor LoopPool::next() {
  return loops_[turn_++ % loops_.size()]->context.get_executor();
}

}  // namespace hubferry::async
