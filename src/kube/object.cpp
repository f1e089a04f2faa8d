#include "hubferry/kube/object.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "hubferry/kube/decoder.hpp"
#include "kube/cache/json_cursor.hpp"

namespace hubferry::kube {

namespace {

const std::shared_ptr<const json::object>& empty_object() {
  static const auto empty = std::make_shared<const json::object>();
  return empty;
}

json::object without_managed_fields(json::object content) {
  if (auto* metadata = content.if_contains("metadata"); metadata != nullptr && metadata->is_object())
    metadata->get_object().erase("managedFields");
  return content;
}

}  // namespace

std::string to_string(const Key& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

const json::value* find(const json::object& from, std::initializer_list<std::string_view> path) {
  const json::object* at = &from;
  const json::value* found = nullptr;
  for (const auto step : path) {
    if (at == nullptr) return nullptr;
    found = at->if_contains(step);
    if (found == nullptr) return nullptr;
    at = found->if_object();
  }
  return found;
}

const json::value* find(const json::value& from, std::initializer_list<std::string_view> path) {
  if (path.size() == 0) return &from;
  return from.is_object() ? find(from.get_object(), path) : nullptr;
}

std::string_view string_at(const json::object& from, std::initializer_list<std::string_view> path) {
  const auto* found = find(from, path);
  return found != nullptr && found->is_string() ? std::string_view{found->get_string()} : std::string_view{};
}

json::object& object_in(json::object& parent, std::string_view name) {
  auto& value = parent[name];
  if (!value.is_object()) value.emplace_object();
  return value.get_object();
}

json::array& array_in(json::object& parent, std::string_view name) {
  auto& value = parent[name];
  if (!value.is_array()) value.emplace_array();
  return value.get_array();
}

Object::Object() : content_(empty_object()) {}

Object::Object(json::object content)
    : content_(std::make_shared<const json::object>(without_managed_fields(std::move(content)))) {}

Key Object::key() const {
  return {std::string{ns()}, std::string{name()}};
}

std::string_view Object::metadata(std::string_view field) const {
  return kube::string_at(*content_, {"metadata", field});
}

std::int64_t Object::generation() const {
  const auto* found = find({"metadata", "generation"});
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

std::string_view Object::label(std::string_view name) const {
  return kube::string_at(*content_, {"metadata", "labels", name});
}

std::string_view Object::annotation(std::string_view name) const {
  return kube::string_at(*content_, {"metadata", "annotations", name});
}

const json::value* Object::find(std::initializer_list<std::string_view> path) const {
  return kube::find(*content_, path);
}

std::string_view Object::string_at(std::initializer_list<std::string_view> path) const {
  return kube::string_at(*content_, path);
}

namespace {

class ObjectDecoder final : public Decoder {
 public:
  [[nodiscard]] Result<Decoded> from_bytes(std::string_view bytes) const override {
    boost::system::error_code ec;
    json::value parsed = detail::parse_object(bytes, ec);
    // One such object must not stop a list or a watch: its name is still known.
    if (ec == json::error::too_deep) return Error{ErrorKind::unsupported, 0, {}, "nested too deep", std::nullopt};
    if (ec == json::error::exponent_overflow)
      return Error{ErrorKind::unsupported, 0, {}, "a number is out of range", std::nullopt};
    if (ec) return bad_response("not valid JSON: " + ec.message());
    if (!parsed.is_object()) return bad_response("expected a JSON object");
    return from_object(Object{std::move(parsed.get_object())});
  }

  [[nodiscard]] Result<Decoded> from_object(const Object& object) const override {
    return Decoded{object.key(), std::string{object.resource_version()}, std::make_shared<const Object>(object)};
  }

 private:
  static Error bad_response(std::string message) {
    return {ErrorKind::bad_response, 0, {}, std::move(message), std::nullopt};
  }
};

}  // namespace

const Decoder& object_decoder() {
  static const ObjectDecoder decoder;
  return decoder;
}

}  // namespace hubferry::kube
