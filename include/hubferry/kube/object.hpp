#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <compare>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace hubferry::kube {

namespace json = boost::json;

/// Names an object among those of its kind. `ns` is empty for cluster-scoped kinds.
struct Key {
  std::string ns;
  std::string name;

  auto operator<=>(const Key&) const = default;
};

/// "namespace/name", or "name".
std::string to_string(const Key& key);

/// Follows `path` through nested objects; nullptr where it ends early. Never throws.
const json::value* find(const json::value& from, std::initializer_list<std::string_view> path);
const json::value* find(const json::object& from, std::initializer_list<std::string_view> path);

/// The string at `path`, or an empty view when there is none or it is of another type.
std::string_view string_at(const json::object& from, std::initializer_list<std::string_view> path);

/// The object, or the array, at `name`; made where there is none.
json::object& object_in(json::object& parent, std::string_view name);
json::array& array_in(json::object& parent, std::string_view name);

/// An object as the server sent it, without managedFields. Immutable and cheap to copy: share it freely between
/// loops; to change something, copy the JSON, change the copy, and write that.
class Object {
 public:
  /// An empty object.
  Object();
  explicit Object(json::object content);

  [[nodiscard]] const json::object& json() const { return *content_; }
  const json::object* operator->() const { return content_.get(); }

  [[nodiscard]] Key key() const;
  [[nodiscard]] std::string_view name() const { return metadata("name"); }
  [[nodiscard]] std::string_view ns() const { return metadata("namespace"); }
  [[nodiscard]] std::string_view uid() const { return metadata("uid"); }
  [[nodiscard]] std::string_view resource_version() const { return metadata("resourceVersion"); }
  [[nodiscard]] std::string_view deletion_timestamp() const { return metadata("deletionTimestamp"); }
  [[nodiscard]] bool is_being_deleted() const { return !deletion_timestamp().empty(); }
  [[nodiscard]] std::int64_t generation() const;
  /// The label's or annotation's value; empty when there is none.
  [[nodiscard]] std::string_view label(std::string_view name) const;
  [[nodiscard]] std::string_view annotation(std::string_view name) const;

  /// find() from the top of the object.
  [[nodiscard]] const json::value* find(std::initializer_list<std::string_view> path) const;
  [[nodiscard]] std::string_view string_at(std::initializer_list<std::string_view> path) const;

 private:
  [[nodiscard]] std::string_view metadata(std::string_view field) const;

  std::shared_ptr<const json::object> content_;
};

}  // namespace hubferry::kube

template <>
struct std::hash<hubferry::kube::Key> {
  std::size_t operator()(const hubferry::kube::Key& key) const noexcept {
    return std::hash<std::string>{}(key.name) * 31 + std::hash<std::string>{}(key.ns);
  }
};
