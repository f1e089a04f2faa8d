#pragma once

#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/kube/error.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::kube::detail {

/// Parses a whole document. An API server accepts up to 10,000 levels; this takes 1,000, since a value is destroyed and
/// copied by recursion, and nobody writes more. Deeper: error::too_deep.
json::value parse_json(std::string_view text, boost::system::error_code& error);

/// The same for an object, without what is in its metadata.managedFields: often half of it, and of no use here.
json::value parse_object(std::string_view text, boost::system::error_code& error);

Error bad_response_at(std::string_view what, std::size_t position);

/// Steps over JSON text level by level: what is not needed is skipped without being parsed.
/// The first error sticks; after it every step does nothing and loops end. Lifetime: the text outlives the cursor.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  void fail(std::string_view what);

  /// The next byte that is not white space; 0 at the end and after an error.
  char peek();
  bool take(char c);
  void expect(char c, std::string_view what);

  /// Into a container and over its separators: `if (open('{', '}', …)) do { … } while (more('}'));`
  bool open(char opening, char closing, std::string_view what);
  bool more(char closing);

  /// A key and its colon, escapes untouched: no key that we look for has any.
  std::string_view key();
  /// The bytes between a string's quotes, escapes untouched.
  std::string_view raw_string(std::string_view what);
  /// The string itself. The view is valid as long as the text and `unescaped`, which takes those that needed work.
  std::string_view string(std::string_view what, std::forward_list<std::string>& unescaped);
  std::string owned_string(std::string_view what);
  /// The bytes of one value of any kind.
  std::string_view value();
  std::string_view object_bytes();
  /// The value as a number, when it is a whole one that fits; otherwise it is skipped.
  std::optional<std::int64_t> integer();
  /// The value as a truth value; otherwise it is skipped.
  std::optional<bool> boolean();

  /// Nothing but white space may follow.
  void finish();

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

/// The end (one past the closing bracket) of the JSON object or array that begins at `begin`; npos when it is not
/// closed. Strings and escapes are respected; whether brackets match in kind is not looked at.
/// This sees every byte of every event: it works on blocks of 64 bytes.
std::size_t end_of_container(std::string_view text, std::size_t begin);

/// The position of the quote that closes the string opened at `begin`; npos when there is none.
std::size_t end_of_string(std::string_view text, std::size_t begin);

}  // namespace hubferry::kube::detail
