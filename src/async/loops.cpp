#include "hubferry/async/loops.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace hubferry::async {

namespace {

thread_local int loops_being_destroyed = 0;

/// The threads that post across loops, each with a counter that is odd while it does.
class PostingThreads {
 public:
  class Self {
   public:
    Self() { instance().add(this); }
    Self(const Self&) = delete;
    Self& operator=(const Self&) = delete;
    ~Self() { instance().remove(this); }

    void begin() { posts_.store(posts_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
    void end() { posts_.store(posts_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

   private:
    friend class PostingThreads;
    std::atomic<std::uint64_t> posts_ = 0;
  };

  static Self& self() {
    thread_local Self self;
    return self;
  }

  static PostingThreads& instance() {
    // Never destroyed: threads may end after main() has.
    static auto* const threads = new PostingThreads;
    return *threads;
  }

  /// Returns when every post that was under way has ended. Posts that begin meanwhile are to other loops: nobody may
  /// post to a loop that is about to be destroyed.
  void wait_for_posts_under_way() {
    const auto* const own = &self();
    const std::lock_guard lock{mutex_};
    for (const auto* thread : threads_) {
      const auto seen = thread->posts_.load(std::memory_order_acquire);
      if (thread == own || seen % 2 == 0) continue;
      while (thread->posts_.load(std::memory_order_acquire) == seen) std::this_thread::yield();
    }
  }

 private:
  void add(const Self* thread) {
    const std::lock_guard lock{mutex_};
    threads_.insert(thread);
  }
  void remove(const Self* thread) {
    const std::lock_guard lock{mutex_};
    threads_.erase(thread);
  }

  std::mutex mutex_;
  std::set<const Self*> threads_;
};

}  // namespace

CrossLoopPost::CrossLoopPost() {
  PostingThreads::self().begin();
}

CrossLoopPost::~CrossLoopPost() {
  PostingThreads::self().end();
}

LoopDestruction::LoopDestruction() {
  PostingThreads::instance().wait_for_posts_under_way();
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

LoopPool::~LoopPool() {
  for (auto& loop : loops_) loop->context.stop();
  for (auto& loop : loops_) loop->thread.join();
  LoopDestruction mark;
  loops_.clear();
}

Executor LoopPool::next() {
  return loops_[turn_++ % loops_.size()]->context.get_executor();
}

}  // namespace hubferry::async
