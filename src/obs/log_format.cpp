#include "obs/log_target.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "hubferry/async/clock.hpp"
#include "hubferry/obs/utf8.hpp"

namespace hubferry::obs::detail {

namespace {

// Container runtimes cut lines at 16 KiB, and half a line is no JSON. So one text does not get all of a line, and those
// that come when it is as good as full get what is enough for a name. All sizes are those with escapes.
constexpr std::size_t longest_text = 8UL * 1024;
constexpr std::size_t shortest_text = 128;
constexpr std::size_t full_line = 12UL * 1024;
constexpr std::size_t full_context = 2UL * 1024;

/// Characters that can end a line, move a cursor or turn the reading direction.
bool is_dangerous(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

void append_escape(std::string& line, char32_t code) {
  switch (code) {
    case '\n':
      line += "\\n";
      return;
    case '\r':
      line += "\\r";
      return;
    case '\t':
      line += "\\t";
      return;
    default:
      break;
  }
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(code));
  line += text;
}

/// With `quotable` the text stands between quotes: quote and backslash are escaped as well.
/// Returns how much of the text is left over when `room` bytes are used up.
std::size_t append_escaped(std::string& line, std::string_view text, bool quotable, std::size_t room) {
  const auto end = line.size() + room;
  while (!text.empty()) {
    std::size_t plain = 0;
    const auto most = std::min(text.size(), end - line.size());
    const auto is_plain = [&](char c) { return c >= 0x20 && c < 0x7F && !(quotable && (c == '"' || c == '\\')); };
    while (plain < most && is_plain(text[plain])) ++plain;
    line += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return 0;
    const auto before = line.size();
    const auto character = first_character(text);
    if (!character.valid)
      line += "\xEF\xBF\xBD";
    else if (is_dangerous(character.code))
      append_escape(line, character.code);
    else if (character.bytes == 1)
      (line += '\\') += text.front();
    else
      line += text.substr(0, character.bytes);
    if (line.size() > end) {
      line.resize(before);
      return text.size();
    }
    text.remove_prefix(character.bytes);
  }
  return 0;
}

/// `full_at`: the size from which on the line has no more room for long texts.
void append_limited(std::string& line, std::string_view text, bool quotable, std::size_t full_at) {
  const auto room = full_at - std::min(full_at, line.size());
  const auto left_over = append_escaped(line, text, quotable, std::clamp(room, shortest_text, longest_text));
  if (left_over > 0) line += "... (" + std::to_string(left_over) + " bytes more)";
}

void append_quoted(std::string& line, std::string_view text, std::size_t full_at) {
  line += '"';
  append_limited(line, text, true, full_at);
  line += '"';
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text)
    if (c <= ' ' || c >= 0x7F || c == '"' || c == '=' || c == '\\') return true;  // all of UTF-8 is negative: <= ' '
  return false;
}

/// Writes values of either format.
class ValueWriter {
 public:
  ValueWriter(std::string& line, LogFormat format, std::size_t full_at)
      : line_(line), format_(format), full_at_(full_at) {}

  void operator()(std::string_view text) {
    if (format_ == LogFormat::text && !needs_quotes(text))
      append_limited(line_, text, false, full_at_);
    else
      append_quoted(line_, text, full_at_);
  }
  void operator()(const std::string& text) { (*this)(std::string_view(text)); }
  void operator()(std::int64_t value) { append_number(value); }
  void operator()(std::uint64_t value) { append_number(value); }
  void operator()(double value) {
    if (std::isnan(value))
      (*this)("NaN");
    else if (std::isinf(value))
      (*this)(value > 0 ? "+Inf" : "-Inf");
    else
      append_number(value);
  }
  void operator()(bool value) { line_ += value ? "true" : "false"; }
  void operator()(std::chrono::nanoseconds duration) { (*this)(async::format_duration(duration)); }
  void operator()(const std::exception_ptr& error) {
    if (error)
      (*this)(async::describe(error));
    else
      line_ += "null";
  }
  void operator()(Value::Redacted) { (*this)(Secret::placeholder); }
  void operator()(const char* text) { (*this)(std::string_view(text)); }

 private:
  template <typename Number>
  void append_number(Number value) {
    char text[32];
    const auto [end, ec] = std::to_chars(text, text + sizeof text, value);
    line_.append(text, end);
  }

  std::string& line_;
  LogFormat format_;
  std::size_t full_at_;
};

std::string timestamp(const async::Clock* clock) {
  static const async::RealClock real_clock;
  return async::format_micro_time((clock != nullptr ? *clock : real_clock).wall_now());
}

std::string_view padded_name(Level level) {
  switch (level) {
    case Level::debug:
      return "DEBUG";
    case Level::info:
      return "INFO ";
    case Level::warn:
      return "WARN ";
    case Level::error:
      return "ERROR";
  }
  return "?????";
}

std::string_view colour_of(Level level) {
  switch (level) {
    case Level::debug:
      return "\x1b[2m";
    case Level::info:
      return "\x1b[32m";
    case Level::warn:
      return "\x1b[33m";
    case Level::error:
      return "\x1b[31m";
  }
  return "";
}

void append_json_head(std::string& line, const LogTarget::Style& style, Level level, std::string_view name,
                      std::string_view message, std::size_t full_at) {
  line += R"({"ts":")";
  line += timestamp(style.clock);
  line += R"(","level":")";
  line += to_string(level);
  line += '"';
  if (!name.empty()) {
    line += R"(,"logger":)";
    append_quoted(line, name, full_at);
  }
  line += R"(,"msg":)";
  append_quoted(line, message, full_at);
}

void append_text_head(std::string& line, const LogTarget::Style& style, Level level, std::string_view name,
                      std::string_view message, std::size_t full_at) {
  const auto micros = timestamp(style.clock);
  line += std::string_view(micros).substr(0, micros.size() - 4);  // milliseconds are enough for a person
  line += "Z ";
  if (style.colour) line += colour_of(level);
  line += padded_name(level);
  if (style.colour) line += "\x1b[0m";
  if (!name.empty()) {
    line += ' ';
    append_limited(line, name, false, full_at);
  }
  line += ' ';
  append_limited(line, message, false, full_at);
}

void append_field(std::string& line, LogFormat format, const Field& field, std::size_t full_at) {
  ValueWriter writer{line, format, full_at};
  if (format == LogFormat::json) {
    line += ',';
    append_quoted(line, field.key, full_at);
    line += ':';
  } else {
    line += ' ';
    writer(field.key);
    line += '=';
  }
  std::visit(writer, field.value.any());
}

}  // namespace

void append_context_field(std::string& fields, LogFormat format, const Field& field) {
  append_field(fields, format, field, full_context);
}

void append_line(std::string& line, const LogTarget::Style& style, Level level, std::string_view name,
                 std::string_view message, std::string_view context_fields, std::initializer_list<Field> fields) {
  const bool json = style.format == LogFormat::json;
  const auto full_head = full_line - std::min(full_line, context_fields.size());
  (json ? append_json_head : append_text_head)(line, style, level, name, message, full_head);
  line += context_fields;
  for (const auto& field : fields) append_field(line, style.format, field, full_line);
  if (json) line += '}';
  line += '\n';
}

}  // namespace hubferry::obs::detail
