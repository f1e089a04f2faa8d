#include "hubferry/obs/logger.hpp"

#include "obs/log_target.hpp"

namespace hubferry::obs {

namespace {

constexpr Level levels[] = {Level::debug, Level::info, Level::warn, Level::error};
constexpr LogFormat formats[] = {LogFormat::json, LogFormat::text};

template <typename Enum, std::size_t count>
std::optional<Enum> find_name(const Enum (&values)[count], std::string_view name) {
  for (const Enum value : values)
    if (to_string(value) == name) return value;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warn:
      return "warn";
    case Level::error:
      return "error";
  }
  return "unknown";
}

std::string_view to_string(LogFormat format) {
  return format == LogFormat::json ? "json" : "text";
}

std::optional<Level> parse_level(std::string_view name) {
  return find_name(levels, name);
}

std::optional<LogFormat> parse_log_format(std::string_view name) {
  return find_name(formats, name);
}

Logger Logger::with(std::string_view key, const Value& value) const {
  if (!context_) return *this;
  auto extended = std::make_shared<detail::LogContext>(*context_);
  detail::append_context_field(extended->fields, context_->target->style().format, Field{key, value});
  return Logger{std::move(extended)};
}

Logger Logger::named(std::string_view name) const {
  if (!context_) return *this;
  auto extended = std::make_shared<detail::LogContext>(*context_);
  if (!extended->name.empty()) extended->name += '.';
  extended->name += name;
  return Logger{std::move(extended)};
}

bool Logger::enabled(Level level) const {
  return context_ && level >= context_->target->level();
}

void Logger::write(Level level, std::string_view message, std::initializer_list<Field> fields) const {
  // Kept between calls, so that a line costs no allocation.
  thread_local std::string line;
  line.clear();
  auto& target = *context_->target;
  detail::append_line(line, target.style(), level, context_->name, message, context_->fields, fields);
  target.take(line);
}

Logger detail::LogTarget::logger_for(std::shared_ptr<LogTarget> target) {
  auto context = std::make_shared<LogContext>();
  context->target = std::move(target);
  return Logger{std::move(context)};
}

}  // namespace hubferry::obs
