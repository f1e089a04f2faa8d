#include "hubferry/kube/splitter.hpp"

#include "kube/cache/json_cursor.hpp"

namespace hubferry::kube {

namespace {

using detail::bad_response_at;
using detail::JsonCursor;

void read_list_metadata(JsonCursor& cursor, ListEnvelope& list) {
  if (!cursor.open('{', '}', "expected the list's metadata")) return;
  do {
    const auto key = cursor.key();
    if (key == "resourceVersion")
      list.resource_version = cursor.owned_string("expected a string as resourceVersion");
    else if (key == "continue")
      list.continue_token = cursor.owned_string("expected a string as continue token");
    else
      cursor.value();
  } while (cursor.more('}'));
}

void read_items(JsonCursor& cursor, ListEnvelope& list) {
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
  JsonCursor cursor{body};
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
  if (!has_items) return bad_response_at("a list without items", body.size());
  return list;
}

Result<WatchEnvelope> split_watch_event(std::string_view line) {
  JsonCursor cursor{line};
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
  if (event.type.empty()) return bad_response_at("a watch event without a type", line.size());
  if (event.object.empty()) return bad_response_at("a watch event without an object", line.size());
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
