#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace hubferry::obs::detail {

/// Writes to a descriptor that may be a pipe nobody reads: waits until it is writable, or until the time set by
/// give_up_at().
/// One thread writes; give_up_at() may be called from any.
class LogWriter {
 public:
  explicit LogWriter(int fd);

  /// Writes whole lines. Returns how many lines could not be written.
  std::uint64_t write(std::string_view lines);

  /// From `when` on a descriptor that takes nothing is no longer waited for.
  void give_up_at(std::chrono::steady_clock::time_point when) { give_up_at_.store(when); }

 private:
  bool wait_until_writable();

  int fd_;
  std::size_t piece_;  // what a writable descriptor takes without blocking
  std::atomic<std::chrono::steady_clock::time_point> give_up_at_{std::chrono::steady_clock::time_point::max()};
};

}  // namespace hubferry::obs::detail
