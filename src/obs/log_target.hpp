#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "hubferry/obs/logger.hpp"

namespace hubferry::async {
class Clock;
}

namespace hubferry::obs::detail {

/// Where finished lines go, and how they are to look.
class LogTarget {
 public:
  struct Style {
    LogFormat format = LogFormat::json;
    bool colour = false;
    const async::Clock* clock = nullptr;
  };

  LogTarget(Style style, Level level) : style_(style), level_(level) {}
  LogTarget(const LogTarget&) = delete;
  LogTarget& operator=(const LogTarget&) = delete;
  virtual ~LogTarget() = default;

  /// Takes one line, with its line end. Called from any thread; must not block.
  virtual void take(std::string_view line) = 0;

  [[nodiscard]] const Style& style() const { return style_; }
  [[nodiscard]] Level level() const { return level_.load(std::memory_order_relaxed); }
  void set_level(Level level) { level_.store(level, std::memory_order_relaxed); }

  static Logger logger_for(std::shared_ptr<LogTarget> target);

 private:
  const Style style_;
  std::atomic<Level> level_;
};

/// What a Logger carries: shared by its copies, never changed.
struct LogContext {
  std::shared_ptr<LogTarget> target;
  std::string name;
  std::string fields;  // already rendered
};

/// Appends one field to those that stand in the middle of every line.
void append_context_field(std::string& fields, LogFormat format, const Field& field);

/// Appends a whole line with its end. Whatever the texts contain, it is one line, valid UTF-8 and, with a dozen fields
/// or so, below 16 KiB.
void append_line(std::string& line, const LogTarget::Style& style, Level level, std::string_view name,
                 std::string_view message, std::string_view context_fields, std::initializer_list<Field> fields);

}  // namespace hubferry::obs::detail
