#include "hubferry/kube/splitter.hpp"

#include <boost/json/parse.hpp>
#include <cstring>

#include "kube/cache/json_scan.hpp"

namespace hubferry::kube {

namespace {

namespace json = boost::json;

Error bad(std::string_view what, std::size_t position) {
  Error error;
  error.kind = ErrorKind::bad_response;
  error.message = std::string{what} + " at byte " + std::to_string(position);
  return error;
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Steps over one level of JSON. The first error sticks; after it every step is a no-op that says "end".
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] std::size_t position() const { return at_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  void fail(std::string_view what) {
    if (!error_) error_ = bad(what, at_);
  }

  /// The next byte that is not white space, or 0.
  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return !error_ && at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!take(c)) fail(what);
  }

  /// Steps into a container and over its separators: `if (open('{')) do { … } while (more('}'));`
  bool open(char opening, char closing, std::string_view what) {
    expect(opening, what);
    return !error_ && !take(closing);
  }

  bool more(char closing) {
    if (error_ || take(closing)) return false;
    expect(',', "expected a comma or the end of the list");
    return !error_;
  }

  /// The bytes between a string's quotes, escapes untouched.
  std::string_view raw_string(std::string_view what) {
    if (peek() != '"') {
      fail(what);
      return {};
    }
    const std::size_t end = detail::end_of_string(text_, at_);
    if (end == std::string_view::npos) {
      fail("a string without an end");
      return {};
    }
    const auto content = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return content;
  }

  std::string string(std::string_view what) {
    const std::size_t begin = at_;
    const auto raw = raw_string(what);
    if (raw.find('\\') == std::string_view::npos) return std::string{raw};
    boost::system::error_code ec;
    const auto parsed = json::parse("\"" + std::string{raw} + "\"", ec);
    if (!ec) return std::string{parsed.get_string()};
    at_ = begin;
    fail("a string with a wrong escape");
    return {};
  }

  /// A key and its colon.
  std::string_view key() {
    const auto raw = raw_string("expected a key");
    expect(':', "expected a colon");
    return raw;
  }

  std::string_view value() {
    const char first = peek();
    const std::size_t begin = at_;
    if (first == '{' || first == '[') {
      const std::size_t end = detail::end_of_container(text_, at_);
      if (end == std::string_view::npos) {
        fail("an object or list without an end");
        return {};
      }
      at_ = end;
    } else if (first == '"') {
      raw_string("expected a string");
    } else if (first == '-' || (first >= '0' && first <= '9') || first == 't' || first == 'f' || first == 'n') {
      while (at_ < text_.size() && std::strchr(",]} \t\r\n", text_[at_]) == nullptr) ++at_;
    } else {
      fail("expected a value");
    }
    return text_.substr(begin, at_ - begin);
  }

  std::string_view object_bytes() {
    if (peek() != '{') {
      fail("expected an object");
      return {};
    }
    return value();
  }

  void finish() {
    peek();
    if (at_ != text_.size()) fail("unexpected bytes after the end");
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

void read_list_metadata(Cursor& cursor, ListEnvelope& list) {
  if (!cursor.open('{', '}', "expected the list's metadata")) return;
  do {
    const auto key = cursor.key();
    if (key == "resourceVersion")
      list.resource_version = cursor.string("expected a string as resourceVersion");
    else if (key == "continue")
      list.continue_token = cursor.string("expected a string as continue token");
    else
      cursor.value();
  } while (cursor.more('}'));
}

void read_items(Cursor& cursor, ListEnvelope& list) {
  list.items.clear();
  // Go writes an empty list as null.
  if (cursor.peek() == 'n') {
    if (cursor.value() != "null") cursor.fail("expected a list of items");
    return;
  }
  if (!cursor.open('[', ']', "expected a list of items")) return;
  do list.items.push_back(cursor.object_bytes());
  while (cursor.more(']'));
}

}  // namespace

Result<ListEnvelope> split_list(std::string_view body) {
  Cursor cursor{body};
  ListEnvelope list;
  bool has_items = false;
  if (cursor.open('{', '}', "expected a JSON object")) {
    do {
      const auto key = cursor.key();
      if (key == "metadata") {
        read_list_metadata(cursor, list);
      } else if (key == "items") {
        has_items = true;
        read_items(cursor, list);
      } else {
        cursor.value();
      }
    } while (cursor.more('}'));
  }
  cursor.finish();
  if (cursor.error()) return *cursor.error();
  if (!has_items) return bad("a list without items", body.size());
  return list;
}

Result<WatchEnvelope> split_watch_event(std::string_view line) {
  Cursor cursor{line};
  WatchEnvelope event;
  if (cursor.open('{', '}', "expected a JSON object")) {
    do {
      const auto key = cursor.key();
      if (key == "type")
        event.type = cursor.raw_string("expected a string as type");
      else if (key == "object")
        event.object = cursor.object_bytes();
      else
        cursor.value();
    } while (cursor.more('}'));
  }
  cursor.finish();
  if (cursor.error()) return *cursor.error();
  if (event.type.empty()) return bad("a watch event without a type", line.size());
  if (event.object.empty()) return bad("a watch event without an object", line.size());
  return event;
}

Error LineSplitter::too_long() const {
  Error error;
  error.kind = ErrorKind::bad_response;
  error.message = "a line of more than " + std::to_string(max_line_) + " bytes";
  return error;
}

Result<void> LineSplitter::feed(std::string_view chunk, const std::function<void(std::string_view)>& on_line) {
  const auto pass_on = [&](std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) on_line(line);
  };
  while (!too_long_) {
    const auto newline = chunk.find('\n');
    const auto part = chunk.substr(0, newline);
    if (partial_.size() + part.size() > max_line_) {
      too_long_ = true;
      std::string{}.swap(partial_);
      break;
    }
    if (newline == std::string_view::npos) {
      partial_.append(part);
      return {};
    }
    if (partial_.empty()) {
      pass_on(part);
    } else {
      partial_.append(part);
      pass_on(partial_);
      partial_.clear();
    }
    chunk.remove_prefix(newline + 1);
  }
  return too_long();
}

}  // namespace hubferry::kube
