#include "kube/cache/json_cursor.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>
#include <cmath>

namespace hubferry::kube::detail {

namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool ends_scalar(char c) {
  return is_space(c) || c == ',' || c == ']' || c == '}';
}

/// Printable ASCII without escapes is what nearly every string is; anything else gets the full treatment.
bool is_plain(std::string_view raw) {
  // Without an early exit, so that the compiler can vectorize the loop.
  bool plain = true;
  for (const char c : raw) plain &= (c >= ' ') & (c != '\\') & (c != 0x7f);
  return plain;
}

bool is_finite(const json::value& value) {
  if (const auto* number = value.if_double()) return std::isfinite(*number);
  if (const auto* list = value.if_array()) return std::ranges::all_of(*list, is_finite);
  if (const auto* object = value.if_object())
    return std::ranges::all_of(*object, [](const auto& field) { return is_finite(field.value()); });
  return true;
}

/// The bytes of metadata.managedFields; empty if there are none before something that is not JSON.
std::string_view managed_fields_in(std::string_view text) {
  JsonCursor cursor{text};
  if (!cursor.open('{', '}', "expected an object")) return {};
  do {
    if (cursor.key() != "metadata") {
      cursor.value();
      continue;
    }
    if (cursor.peek() != '{' || !cursor.open('{', '}', "expected an object")) return {};
    do {
      const bool found = cursor.key() == "managedFields";
      const auto value = cursor.value();
      if (found) return cursor.error() ? std::string_view{} : value;
    } while (cursor.more('}'));
    return {};
  } while (cursor.more('}'));
  return {};
}

}  // namespace

json::value parse_json(std::string_view text, boost::system::error_code& error) {
  json::parse_options options;
  // Kubernetes takes 10,000. Parser, copies and destructors recurse, with 4 MiB of stack for that many: any hub could
  // have us use it, and nobody writes such objects. What is deeper cannot be read, which nothing takes for absence.
  options.max_depth = 1000;
  auto parsed = json::parse(text, error, {}, options);
  // Boost reads 1e309 as infinity and 0e999999 as not a number. Neither can be written as JSON again, and no API server
  // stores them.
  if (!error && !is_finite(parsed)) error = json::error::exponent_overflow;
  return parsed;
}

json::value parse_object(std::string_view text, boost::system::error_code& error) {
  const auto skipped = managed_fields_in(text);
  if (skipped.empty()) return parse_json(text, error);
  const auto begin = static_cast<std::size_t>(skipped.data() - text.data());
  std::string kept;
  kept.reserve(text.size());
  kept.append(text.substr(0, begin)).append("[]").append(text.substr(begin + skipped.size()));
  return parse_json(kept, error);
}

Error bad_response_at(std::string_view what, std::size_t position) {
  Error error;
  error.kind = ErrorKind::bad_response;
  error.message = std::string{what} + " at byte " + std::to_string(position);
  return error;
}

void JsonCursor::fail(std::string_view what) {
  if (!error_) error_ = bad_response_at(what, at_);
}

char JsonCursor::peek() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return !error_ && at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonCursor::take(char c) {
  if (peek() != c) return false;
  ++at_;
  return true;
}

void JsonCursor::expect(char c, std::string_view what) {
  if (!take(c)) fail(what);
}

bool JsonCursor::open(char opening, char closing, std::string_view what) {
  expect(opening, what);
  return !error_ && !take(closing);
}

bool JsonCursor::more(char closing) {
  if (error_ || take(closing)) return false;
  expect(',', "expected a comma or the end of the list");
  return !error_;
}

std::string_view JsonCursor::key() {
  const auto raw = raw_string("expected a key");
  expect(':', "expected a colon");
  return raw;
}

std::string_view JsonCursor::raw_string(std::string_view what) {
  if (peek() != '"') {
    fail(what);
    return {};
  }
  const std::size_t end = end_of_string(text_, at_);
  if (end == std::string_view::npos) {
    fail("a string without an end");
    return {};
  }
  const auto content = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  return content;
}

std::string_view JsonCursor::string(std::string_view what, std::forward_list<std::string>& unescaped) {
  peek();
  const std::size_t begin = at_;
  const auto raw = raw_string(what);
  if (is_plain(raw)) return raw;
  boost::system::error_code ec;
  const auto parsed = boost::json::parse(text_.substr(begin, at_ - begin), ec);
  if (!ec) return unescaped.emplace_front(parsed.get_string());
  at_ = begin;
  fail("a string that is not well-formed");
  return {};
}

std::string JsonCursor::owned_string(std::string_view what) {
  std::forward_list<std::string> unescaped;
  return std::string{string(what, unescaped)};
}

std::string_view JsonCursor::value() {
  const char first = peek();
  const std::size_t begin = at_;
  if (first == '{' || first == '[') {
    const std::size_t end = end_of_container(text_, at_);
    if (end == std::string_view::npos) {
      fail("an object or list without an end");
      return {};
    }
    at_ = end;
  } else if (first == '"') {
    raw_string("expected a string");
  } else if (first == '-' || (first >= '0' && first <= '9') || first == 't' || first == 'f' || first == 'n') {
    while (at_ < text_.size() && !ends_scalar(text_[at_])) ++at_;
  } else {
    fail("expected a value");
  }
  return text_.substr(begin, at_ - begin);
}

std::string_view JsonCursor::object_bytes() {
  if (peek() != '{') {
    fail("expected an object");
    return {};
  }
  return value();
}

std::optional<std::int64_t> JsonCursor::integer() {
  const auto text = value();
  std::int64_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<bool> JsonCursor::boolean() {
  const auto text = value();
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

void JsonCursor::finish() {
  peek();
  if (at_ != text_.size()) fail("unexpected bytes after the end");
}

}  // namespace hubferry::kube::detail
