#include "sim/apiserver/patch.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>

namespace hubferry::sim {

void merge_patch(json::value& target, const json::value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::object{};
  auto& object = target.get_object();
  for (const auto& [key, value] : patch.get_object()) {
    if (value.is_null())
      object.erase(key);
    else
      merge_patch(object[key], value);
  }
}

namespace {

StatusError patch_failure(std::string message) {
  return {
      422, "Invalid", "the server rejected our request due to an error in our request: " + std::move(message), {}, {}};
}

Outcome<std::vector<std::string>> parse_pointer(std::string_view pointer) {
  std::vector<std::string> tokens;
  if (pointer.empty()) return tokens;
  if (pointer.front() != '/') return patch_failure("invalid JSON pointer \"" + std::string{pointer} + "\"");
  pointer.remove_prefix(1);
  while (true) {
    const auto end = pointer.find('/');
    std::string token;
    const auto raw = pointer.substr(0, end);
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] == '~' && i + 1 < raw.size()) {
        token += raw[++i] == '1' ? '/' : '~';
      } else {
        token += raw[i];
      }
    }
    tokens.push_back(std::move(token));
    if (end == std::string_view::npos) return tokens;
    pointer.remove_prefix(end + 1);
  }
}

/// An index below `size`; -1 if the token is not one.
std::ptrdiff_t index_of(const std::string& token, std::size_t size) {
  if (token.empty() || token.size() > 9 || !std::ranges::all_of(token, [](char c) { return c >= '0' && c <= '9'; }))
    return -1;
  const auto index = std::stoll(token);
  return static_cast<std::size_t>(index) < size ? static_cast<std::ptrdiff_t>(index) : -1;
}

json::value* step(json::value& at, const std::string& token) {
  if (auto* object = at.if_object()) return object->if_contains(token);
  if (auto* array = at.if_array()) {
    const auto index = index_of(token, array->size());
    return index < 0 ? nullptr : &(*array)[static_cast<std::size_t>(index)];
  }
  return nullptr;
}

json::value* walk(json::value& root, const std::vector<std::string>& tokens, std::size_t count) {
  json::value* at = &root;
  for (std::size_t i = 0; i < count && at != nullptr; ++i) at = step(*at, tokens[i]);
  return at;
}

bool add(json::value& root, const std::vector<std::string>& tokens, json::value value) {
  if (tokens.empty()) {
    root = std::move(value);
    return true;
  }
  auto* parent = walk(root, tokens, tokens.size() - 1);
  if (parent == nullptr) return false;
  if (auto* object = parent->if_object()) {
    (*object)[tokens.back()] = std::move(value);
    return true;
  }
  auto* array = parent->if_array();
  if (array == nullptr) return false;
  if (tokens.back() == "-") {
    array->push_back(std::move(value));
    return true;
  }
  const auto index = index_of(tokens.back(), array->size() + 1);
  if (index < 0) return false;
  array->insert(array->begin() + index, std::move(value));
  return true;
}

bool remove(json::value& root, const std::vector<std::string>& tokens) {
  if (tokens.empty()) return false;
  auto* parent = walk(root, tokens, tokens.size() - 1);
  if (parent == nullptr) return false;
  if (auto* object = parent->if_object()) return object->erase(tokens.back()) > 0;
  auto* array = parent->if_array();
  if (array == nullptr) return false;
  const auto index = index_of(tokens.back(), array->size());
  if (index < 0) return false;
  array->erase(array->begin() + index);
  return true;
}

bool apply_operation(json::value& root, std::string_view op, const std::vector<std::string>& path,
                     const std::vector<std::string>& from, const json::value* value) {
  if (op == "remove") return remove(root, path);
  if (op == "move" || op == "copy") {
    auto* source = walk(root, from, from.size());
    if (source == nullptr) return false;
    json::value moved = *source;
    if (op == "move" && !remove(root, from)) return false;
    return add(root, path, std::move(moved));
  }
  if (value == nullptr) return false;
  if (op == "add") return add(root, path, *value);
  auto* target = walk(root, path, path.size());
  if (op == "replace") {
    if (target == nullptr) return false;
    *target = *value;
    return true;
  }
  if (op == "test") return target != nullptr ? *target == *value : value->is_null();
  return false;
}

std::string_view merge_key(const json::array& list) {
  for (const std::string_view candidate : {"name", "type", "uid", "containerPort", "port"}) {
    const bool all = std::ranges::all_of(list, [&](const json::value& item) {
      return item.is_object() && (item.get_object().contains(candidate) || item.get_object().contains("$patch"));
    });
    if (all && !list.empty()) return candidate;
  }
  return {};
}

void merge_list(json::array& target, const json::array& patch, std::string_view key) {
  for (const auto& item : patch) {
    const auto& change = item.get_object();
    const auto* wanted = change.if_contains(key);
    if (wanted == nullptr) continue;
    const auto found = std::ranges::find_if(target, [&](const json::value& existing) {
      const auto* value = existing.is_object() ? existing.get_object().if_contains(key) : nullptr;
      return value != nullptr && *value == *wanted;
    });
    const bool removal = kube::string_at(change, {"$patch"}) == "delete";
    if (removal) {
      if (found != target.end()) target.erase(found);
    } else if (found != target.end()) {
      strategic_merge_patch(*found, item);
    } else {
      target.push_back(item);
    }
  }
}

}  // namespace

Outcome<> json_patch(json::value& target, const json::array& patch) {
  for (const auto& entry : patch) {
    if (!entry.is_object()) return patch_failure("an operation is not an object");
    const auto& operation = entry.get_object();
    const auto op = kube::string_at(operation, {"op"});
    const auto path = parse_pointer(kube::string_at(operation, {"path"}));
    if (!path) return path.error();
    const auto from = parse_pointer(kube::string_at(operation, {"from"}));
    if (!from) return from.error();
    if (!apply_operation(target, op, *path, *from, operation.if_contains("value")))
      return patch_failure(std::string{op} + " operation does not apply: doc is missing path or the test failed: \"" +
                           std::string{kube::string_at(operation, {"path"})} + "\"");
  }
  return {};
}

void strategic_merge_patch(json::value& target, const json::value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  const auto& changes = patch.get_object();
  if (!target.is_object() || kube::string_at(changes, {"$patch"}) == "replace") target = json::object{};
  auto& object = target.get_object();
  for (const auto& [key, value] : changes) {
    constexpr std::string_view delete_directive = "$deleteFromPrimitiveList/";
    if (key.starts_with(delete_directive)) {
      auto* list = object.if_contains(key.substr(delete_directive.size()));
      if (list == nullptr || !list->is_array() || !value.is_array()) continue;
      auto& items = list->get_array();
      for (const auto& gone : value.get_array())
        items.erase(std::remove(items.begin(), items.end(), gone), items.end());
      continue;
    }
    if (key.starts_with("$")) continue;
    if (value.is_null()) {
      object.erase(key);
      continue;
    }
    auto* existing = object.if_contains(key);
    const auto* list = value.if_array();
    if (existing != nullptr && existing->is_array() && list != nullptr) {
      if (const auto by = merge_key(*list); !by.empty()) {
        merge_list(existing->get_array(), *list, by);
        continue;
      }
      if (key == "finalizers") {
        for (const auto& item : *list)
          if (std::ranges::find(existing->get_array(), item) == existing->get_array().end())
            existing->get_array().push_back(item);
        continue;
      }
    }
    strategic_merge_patch(object[key], value);
  }
}

}  // namespace hubferry::sim
