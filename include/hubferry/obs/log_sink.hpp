#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/obs/logger.hpp"

namespace hubferry::async {
class Clock;
}

namespace hubferry::obs {

/// Writes log lines to a file descriptor from a thread of its own.
///
/// Logging only appends to a buffer. When the reader of the descriptor is so slow that the buffer is full, lines are
/// dropped and counted, and one line reports how many as soon as there is room again.
/// Thread-safe. Lifetime: its loggers may outlive it.
class LogSink {
 public:
  struct Options {
    LogFormat format = LogFormat::json;
    Level level = Level::info;
    int fd = 2;
    /// Colours the level in the text format.
    bool colour = false;
    /// Where timestamps come from: the machine's clock when null. Must outlive the sink and its loggers.
    const async::Clock* clock = nullptr;
    /// What may wait to be written. As much again may be on its way to the descriptor.
    std::size_t queue_bytes = 1024UL * 1024;
    /// How long the destructor waits for a descriptor that is not writable.
    std::chrono::nanoseconds exit_wait = std::chrono::seconds(2);
  };

  explicit LogSink(Options options);
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  /// Writes what is left, for `exit_wait` at most.
  ~LogSink();

  [[nodiscard]] Logger logger() const;

  void set_level(Level level);
  [[nodiscard]] Level level() const;

  /// Waits until all lines logged before are written; false when that took longer than `limit`.
  bool flush(std::chrono::nanoseconds limit = std::chrono::seconds(1));

  /// How many lines were dropped so far.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  class Target;
  std::shared_ptr<Target> target_;
  std::chrono::nanoseconds exit_wait_;
};

/// Keeps log lines in memory: for tests that check what operators will read. Thread-safe.
class LogCapture {
 public:
  struct Options {
    LogFormat format = LogFormat::json;
    Level level = Level::debug;
    const async::Clock* clock = nullptr;
  };

  LogCapture();
  explicit LogCapture(Options options);

  [[nodiscard]] Logger logger() const;
  void set_level(Level level);

  /// Without their line ends.
  [[nodiscard]] std::vector<std::string> lines() const;
  /// True when some line contains `text`.
  [[nodiscard]] bool contains(std::string_view text) const;
  void clear();

 private:
  class Target;
  std::shared_ptr<Target> target_;
};

}  // namespace hubferry::obs
