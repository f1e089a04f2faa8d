#pragma once

#include <algorithm>
#include <boost/json/array.hpp>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/object.hpp"

/// Reading and editing Klusterlets and Secrets.
namespace hubferry::klusterlet::objects {

using kube::json::array;
using kube::json::object;
using kube::json::value;

inline constexpr const char* gate = "MultipleHubs";

inline bool is_gate_on(const value* gates) {
  if (gates == nullptr || !gates->is_array()) return false;
  return std::ranges::any_of(gates->get_array(), [](const value& entry) {
    return entry.is_object() && kube::string_at(entry.get_object(), {"feature"}) == gate &&
           kube::string_at(entry.get_object(), {"mode"}) == "Enable";
  });
}

/// A key of a Secret; empty if it is missing.
inline std::string decoded(const kube::Object& secret, std::string_view key) {
  return kube::decode_base64(secret.string_at({"data", key})).value_or(std::string{});
}

/// Sets a field; true if it changed.
inline bool put(object& target, std::string_view name, value wanted) {
  auto& field = target[name];
  if (field == wanted) return false;
  field = std::move(wanted);
  return true;
}

inline object& child(object& parent, std::string_view name) {
  auto& field = parent[name];
  if (!field.is_object()) field = object{};
  return field.get_object();
}

}  // namespace hubferry::klusterlet::objects
