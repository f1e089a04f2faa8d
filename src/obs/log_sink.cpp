#include "hubferry/obs/log_sink.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "obs/log_target.hpp"
#include "obs/log_writer.hpp"

namespace hubferry::obs {

namespace {

// Beyond the time that a silent descriptor is given: for a write that blocks although the descriptor polled writable.
constexpr auto thread_exit_margin = std::chrono::milliseconds(500);

/// Signals are handled on the loops, and SIGPIPE becomes an error of write().
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

class LogSink::Target final : public detail::LogTarget {
 public:
  explicit Target(const Options& options)
      : LogTarget({.format = options.format, .colour = options.colour, .clock = options.clock}, options.level),
        queue_bytes_(options.queue_bytes),
        writer_(options.fd) {}

  void take(std::string_view line) override {
    const std::lock_guard lock{mutex_};
    if (closing_) return;
    if (pending_.size() + line.size() > queue_bytes_) {
      ++dropped_;
      ++unreported_;
    } else {
      pending_ += line;
      accepted_ += line.size();
    }
    work_.notify_one();
  }

  bool flush(std::chrono::nanoseconds limit) {
    std::unique_lock lock{mutex_};
    const auto goal = accepted_;
    return progress_.wait_for(lock, limit, [&] { return finished_ >= goal && unreported_ == 0; });
  }

  std::uint64_t dropped() const {
    const std::lock_guard lock{mutex_};
    return dropped_;
  }

  static void start(const std::shared_ptr<Target>& self) {
    self->thread_ = std::thread([self] { self->write_all(); });
  }

  void close(std::chrono::nanoseconds limit) {
    writer_.give_up_at(std::chrono::steady_clock::now() + limit);
    std::unique_lock lock{mutex_};
    closing_ = true;
    work_.notify_one();
    const bool ended = progress_.wait_for(lock, limit + thread_exit_margin, [&] { return ended_; });
    lock.unlock();
    // The thread shares the ownership of this object, so it may end whenever its write() returns.
    if (ended)
      thread_.join();
    else
      thread_.detach();
  }

 private:
  void write_all() {
    block_signals();
    pthread_setname_np(pthread_self(), "log-writer");
    std::string writing;
    std::unique_lock lock{mutex_};
    for (;;) {
      work_.wait(lock, [&] { return !pending_.empty() || unreported_ > 0 || closing_; });
      if (pending_.empty() && unreported_ == 0) break;
      writing.swap(pending_);
      if (unreported_ > 0) report_dropped();
      lock.unlock();
      const auto lost = writer_.write(writing);
      lock.lock();
      finished_ += writing.size();
      dropped_ += lost;
      writing.clear();
      progress_.notify_all();
    }
    ended_ = true;
    progress_.notify_all();
  }

  /// The buffer was just emptied: its first line reports what is missing before it.
  void report_dropped() {
    const auto count = std::exchange(unreported_, 0);
    const auto size_before = pending_.size();
    detail::append_line(pending_, style(), Level::warn, "log", "log lines dropped: the reader of the log is too slow",
                        "", {{"dropped", count}});
    accepted_ += pending_.size() - size_before;
  }

  const std::size_t queue_bytes_;
  detail::LogWriter writer_;
  std::thread thread_;

  mutable std::mutex mutex_;  // guards what follows; held for no longer than a copy of one line
  std::condition_variable work_;
  std::condition_variable progress_;
  std::string pending_;
  std::uint64_t accepted_ = 0;  // bytes that ever came into pending_
  std::uint64_t finished_ = 0;  // bytes of those that were written, or given up
  std::uint64_t dropped_ = 0;
  std::uint64_t unreported_ = 0;  // dropped lines not yet reported
  bool closing_ = false;
  bool ended_ = false;
};

LogSink::LogSink(Options options) : target_(std::make_shared<Target>(options)), exit_wait_(options.exit_wait) {
  Target::start(target_);
}

LogSink::~LogSink() {
  target_->close(exit_wait_);
}

Logger LogSink::logger() const {
  return detail::LogTarget::logger_for(target_);
}

void LogSink::set_level(Level level) {
  target_->set_level(level);
}

Level LogSink::level() const {
  return target_->level();
}

bool LogSink::flush(std::chrono::nanoseconds limit) {
  return target_->flush(limit);
}

std::uint64_t LogSink::dropped() const {
  return target_->dropped();
}

class LogCapture::Target final : public detail::LogTarget {
 public:
  explicit Target(const Options& options)
      : LogTarget({.format = options.format, .colour = false, .clock = options.clock}, options.level) {}

  void take(std::string_view line) override {
    line.remove_suffix(1);
    const std::lock_guard lock{mutex_};
    lines_.emplace_back(line);
  }

  std::vector<std::string> lines() const {
    const std::lock_guard lock{mutex_};
    return lines_;
  }

  void clear() {
    const std::lock_guard lock{mutex_};
    lines_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

LogCapture::LogCapture() : LogCapture(Options{}) {}

LogCapture::LogCapture(Options options) : target_(std::make_shared<Target>(options)) {}

Logger LogCapture::logger() const {
  return detail::LogTarget::logger_for(target_);
}

void LogCapture::set_level(Level level) {
  target_->set_level(level);
}

std::vector<std::string> LogCapture::lines() const {
  return target_->lines();
}

bool LogCapture::contains(std::string_view text) const {
  const auto all = lines();
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

void LogCapture::clear() {
  target_->clear();
}

}  // namespace hubferry::obs
