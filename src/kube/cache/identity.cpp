#include "kube/cache/identity.hpp"

#include "kube/cache/json_cursor.hpp"

namespace hubferry::kube {

namespace {

void read_metadata(detail::JsonCursor& cursor, Decoded& identity) {
  if (cursor.peek() != '{' || !cursor.open('{', '}', "expected an object")) return;
  do {
    const auto field = cursor.key();
    std::string* into = field == "name"              ? &identity.key.name
                        : field == "namespace"       ? &identity.key.ns
                        : field == "resourceVersion" ? &identity.resource_version
                                                     : nullptr;
    if (into != nullptr)
      *into = cursor.owned_string("expected a string");
    else
      cursor.value();
  } while (cursor.more('}'));
}

}  // namespace

std::optional<Decoded> identify(std::string_view bytes) {
  Decoded identity;
  detail::JsonCursor cursor{bytes};
  if (!cursor.open('{', '}', "expected an object")) return std::nullopt;
  do {
    if (cursor.key() == "metadata")
      read_metadata(cursor, identity);
    else
      cursor.value();
  } while (cursor.more('}'));
  if (cursor.error() || identity.key.name.empty()) return std::nullopt;
  return identity;
}

}  // namespace hubferry::kube
