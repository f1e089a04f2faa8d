#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/error.hpp"

namespace hubferry::kube {

/// Cuts what a server sends into the bytes of single objects, without parsing those: that is the decoder's business.
/// Only the envelope is looked at. Keys come in any order, white space anywhere, unknown keys are skipped.
/// What is skipped or handed on is checked for matching depth only. Errors: bad_response, naming the byte.

/// The parts of a list's answer.
struct ListEnvelope {
  std::string resource_version;
  std::string continue_token;           // empty on the last page
  std::vector<std::string_view> items;  // each a JSON object; views into the body
};

/// Takes a whole "…List" apart. An answer without "items" is no list.
Result<ListEnvelope> split_list(std::string_view body);

/// The parts of one line of a watch.
struct WatchEnvelope {
  std::string_view type;    // "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" …
  std::string_view object;  // the bytes of a JSON object; a view into the line
};

Result<WatchEnvelope> split_watch_event(std::string_view line);

/// Cuts a stream into lines as its bytes arrive. Empty lines are left out, as is a carriage return at a line's end.
/// A line that lies in one chunk is passed on in place; one that spans chunks is collected first.
class LineSplitter {
 public:
  /// A line of more than `max_line` bytes is an error: a server must not fill our memory.
  explicit LineSplitter(std::size_t max_line) : max_line_(max_line) {}

  /// Calls `on_line` for each line that `chunk` completes; the view is valid during the call.
  /// After an error the stream is lost: every further call fails in the same way.
  Result<void> feed(std::string_view chunk, const std::function<void(std::string_view)>& on_line);

  /// How much of an unfinished line has come: not 0 at the end of a stream means that it was cut off.
  [[nodiscard]] std::size_t pending() const { return partial_.size(); }

 private:
  Error too_long() const;

  std::size_t max_line_;
  std::string partial_;    // the beginning of a line whose end has not come
  bool too_long_ = false;  // latched
};

}  // namespace hubferry::kube
