#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "hubferry/obs/log_value.hpp"

namespace hubferry::obs {

enum class Level { debug, info, warn, error };
enum class LogFormat { json, text };

std::string_view to_string(Level level);
std::string_view to_string(LogFormat format);
/// nullopt for an unknown name.
std::optional<Level> parse_level(std::string_view name);
std::optional<LogFormat> parse_log_format(std::string_view name);

namespace detail {
class LogTarget;
struct LogContext;
}  // namespace detail

/// Writes lines with the fields it carries: the context of its holder, such as a migration and its phase.
///
/// A cheap value: pass it down by value and add what the callee is about. A default-constructed one discards
/// everything. Thread-safe. Never blocks and never throws: lines that do not fit are dropped and counted by the sink.
/// Lifetime: may outlive its sink; lines are discarded then.
class Logger {
 public:
  Logger() = default;

  /// The same, with one more field in every line.
  [[nodiscard]] Logger with(std::string_view key, const Value& value) const;
  /// The same, under a name: "kube", and within it "kube.watch".
  [[nodiscard]] Logger named(std::string_view name) const;

  void debug(std::string_view message, std::initializer_list<Field> fields = {}) const {
    if (enabled(Level::debug)) write(Level::debug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<Field> fields = {}) const {
    if (enabled(Level::info)) write(Level::info, message, fields);
  }
  void warn(std::string_view message, std::initializer_list<Field> fields = {}) const {
    if (enabled(Level::warn)) write(Level::warn, message, fields);
  }
  void error(std::string_view message, std::initializer_list<Field> fields = {}) const {
    if (enabled(Level::error)) write(Level::error, message, fields);
  }
  void log(Level level, std::string_view message, std::initializer_list<Field> fields = {}) const {
    if (enabled(level)) write(level, message, fields);
  }

  [[nodiscard]] bool enabled(Level level) const;

 private:
  friend class detail::LogTarget;
  explicit Logger(std::shared_ptr<const detail::LogContext> context) : context_(std::move(context)) {}

  void write(Level level, std::string_view message, std::initializer_list<Field> fields) const;

  std::shared_ptr<const detail::LogContext> context_;
};

}  // namespace hubferry::obs
