#include "sim/apiserver/managed_fields.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace hubferry::sim {

namespace {

constexpr char separator = '\x1f';

/// How a list's items are identified.
struct ListRule {
  Schema::ListType type = Schema::ListType::atomic;
  std::vector<std::string> keys;
};

bool is_server_field(std::string_view path) {
  static const std::set<std::string, std::less<>> fields = [] {
    std::set<std::string, std::less<>> all{"f:apiVersion", "f:kind"};
    for (const char* name :
         {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
          "deletionGracePeriodSeconds", "managedFields", "selfLink", "generateName"})
      all.insert(std::string{"f:metadata"} + separator + "f:" + name);
    return all;
  }();
  return fields.contains(path);
}

ListRule rule_for(const FieldPath& path, const Schema* schema) {
  static const FieldPath finalizers = std::string{"f:metadata"} + separator + "f:finalizers";
  static const FieldPath owners = std::string{"f:metadata"} + separator + "f:ownerReferences";
  if (path == finalizers) return {Schema::ListType::set, {}};
  if (path == owners) return {Schema::ListType::map, {"uid"}};
  if (schema != nullptr) return {schema->list_type(), schema->list_keys()};
  return {};
}

FieldPath extend(const FieldPath& path, const std::string& step) {
  return path.empty() ? step : path + separator + step;
}

std::string item_step(const json::value& item, const ListRule& rule) {
  if (rule.type == Schema::ListType::set) return "v:" + json::serialize(item);
  json::object key;
  for (const auto& name : rule.keys) {
    const auto* value = item.is_object() ? item.get_object().if_contains(name) : nullptr;
    if (value != nullptr) key[name] = *value;
  }
  return "k:" + json::serialize(key);
}

const Schema* field_schema(const Schema* schema, std::string_view name) {
  return schema != nullptr ? schema->field(name) : nullptr;
}

void collect(const json::value& value, const FieldPath& path, const Schema* schema, Leaves& leaves) {
  if (is_server_field(path)) return;
  if (const auto* object = value.if_object();
      object != nullptr && !object->empty() && (schema == nullptr || !schema->atomic_map())) {
    for (const auto& [name, child] : *object)
      collect(child, extend(path, "f:" + std::string{name}), field_schema(schema, name), leaves);
    return;
  }
  if (const auto* array = value.if_array()) {
    const auto rule = rule_for(path, schema);
    if (rule.type != Schema::ListType::atomic && !array->empty()) {
      for (const auto& item : *array) {
        const auto at = extend(path, item_step(item, rule));
        leaves.emplace(at, &item);
        if (rule.type == Schema::ListType::map && item.is_object())
          for (const auto& [name, child] : item.get_object())
            collect(child, extend(at, "f:" + std::string{name}),
                    field_schema(schema != nullptr ? schema->items() : nullptr, name), leaves);
      }
      return;
    }
  }
  leaves.emplace(path, &value);
}

/// What differs between two values: `changed` exists in `after`, `removed` only in `before`.
void compare(const json::value& before, const json::value& after, const FieldPath& path, const Schema* schema,
             FieldSet& changed, FieldSet& removed) {
  if (is_server_field(path) || before == after) return;
  const auto* old_object = before.if_object();
  const auto* new_object = after.if_object();
  if (old_object != nullptr && new_object != nullptr && (schema == nullptr || !schema->atomic_map())) {
    for (const auto& [name, child] : *new_object) {
      const auto at = extend(path, "f:" + std::string{name});
      if (const auto* old_child = old_object->if_contains(name)) {
        compare(*old_child, child, at, field_schema(schema, name), changed, removed);
      } else {
        Leaves added;
        collect(child, at, field_schema(schema, name), added);
        for (const auto& [leaf, value] : added) changed.insert(leaf);
      }
    }
    for (const auto& [name, child] : *old_object)
      if (!new_object->contains(name)) {
        Leaves gone;
        collect(child, extend(path, "f:" + std::string{name}), field_schema(schema, name), gone);
        for (const auto& [leaf, value] : gone) removed.insert(leaf);
      }
    return;
  }
  Leaves old_leaves, new_leaves;
  collect(before, path, schema, old_leaves);
  collect(after, path, schema, new_leaves);
  for (const auto& [leaf, value] : new_leaves)
    if (const auto found = old_leaves.find(leaf); found == old_leaves.end() || *found->second != *value)
      changed.insert(leaf);
  for (const auto& [leaf, value] : old_leaves)
    if (!new_leaves.contains(leaf)) removed.insert(leaf);
}

std::vector<std::string> steps_of(const FieldPath& path) {
  std::vector<std::string> steps;
  std::size_t start = 0;
  while (true) {
    const auto end = path.find(separator, start);
    steps.push_back(path.substr(start, end - start));
    if (end == std::string::npos) return steps;
    start = end + 1;
  }
}

/// ".spec.list[name=\"a\"].size"
std::string readable(const FieldPath& path) {
  std::string text;
  for (const auto& step : steps_of(path)) {
    const std::string body = step.substr(2);
    if (step.starts_with("f:")) {
      text += "." + body;
    } else if (step.starts_with("v:")) {
      text += "[=" + body + "]";
    } else {
      text += "[";
      bool first = true;
      for (const auto& [name, value] : json::parse(body).as_object()) {
        text += (first ? "" : ",") + std::string{name} + "=" + json::serialize(value);
        first = false;
      }
      text += "]";
    }
  }
  return text;
}

json::array::iterator find_item(json::array& list, const std::string& step) {
  const json::value wanted = json::parse(step.substr(2));
  return std::ranges::find_if(list, [&](const json::value& item) {
    if (step.starts_with("v:")) return item == wanted;
    if (!item.is_object()) return false;
    return std::ranges::all_of(wanted.as_object(), [&](const auto& field) {
      const auto* value = item.get_object().if_contains(field.key());
      return value != nullptr && *value == field.value();
    });
  });
}

bool is_empty(const json::value& value) {
  return (value.is_object() && value.get_object().empty()) || (value.is_array() && value.get_array().empty());
}

/// Removes the field, and parents that become empty.
void remove_path(json::value& at, const std::vector<std::string>& steps, std::size_t depth) {
  const auto& step = steps[depth];
  const bool last = depth + 1 == steps.size();
  if (step.starts_with("f:")) {
    auto* object = at.if_object();
    auto* child = object != nullptr ? object->if_contains(step.substr(2)) : nullptr;
    if (child == nullptr) return;
    if (!last) remove_path(*child, steps, depth + 1);
    if (last || is_empty(*child)) object->erase(step.substr(2));
    return;
  }
  auto* list = at.if_array();
  if (list == nullptr) return;
  const auto item = find_item(*list, step);
  if (item == list->end()) return;
  if (last)
    list->erase(item);
  else
    remove_path(*item, steps, depth + 1);
}

/// Merges `applied` into `live`, item by item for lists with keys.
void merge_applied(json::value& live, const json::value& applied, const FieldPath& path, const Schema* schema) {
  const auto* source = applied.if_object();
  if (source != nullptr && live.is_object() && (schema == nullptr || !schema->atomic_map())) {
    for (const auto& [name, value] : *source) {
      const auto at = extend(path, "f:" + std::string{name});
      if (auto* existing = live.get_object().if_contains(name))
        merge_applied(*existing, value, at, field_schema(schema, name));
      else
        live.get_object()[name] = value;
    }
    return;
  }
  const auto* list = applied.if_array();
  if (list != nullptr && live.is_array()) {
    if (const auto rule = rule_for(path, schema); rule.type != Schema::ListType::atomic) {
      for (const auto& item : *list) {
        const auto step = item_step(item, rule);
        const auto existing = find_item(live.get_array(), step);
        if (existing == live.get_array().end())
          live.get_array().push_back(item);
        else if (rule.type == Schema::ListType::map)
          merge_applied(*existing, item, extend(path, step), schema != nullptr ? schema->items() : nullptr);
      }
      return;
    }
  }
  live = applied;
}

bool owns_below(const ManagedFields& managed, const FieldPath& path, const FieldManager* except) {
  return std::ranges::any_of(managed.managers, [&](const FieldManager& manager) {
    if (&manager == except) return false;
    const auto at = manager.fields.lower_bound(path);
    return at != manager.fields.end() && (*at == path || at->starts_with(path + separator));
  });
}

std::string conflict_text(const FieldManager& manager) {
  std::string text = json::serialize(json::value(manager.name));
  if (!manager.subresource.empty()) text += " with subresource " + json::serialize(json::value(manager.subresource));
  if (!manager.applies) text += " using " + manager.api_version;
  return text;
}

StatusError conflict_failure(const std::map<std::string, std::vector<std::string>>& conflicts) {
  std::size_t count = 0;
  json::array causes;
  for (const auto& [manager, fields] : conflicts) {
    count += fields.size();
    for (const auto& field : fields)
      causes.push_back(
          json::object{{"reason", "FieldManagerConflict"}, {"message", "conflict with " + manager}, {"field", field}});
  }
  std::string message = "Apply failed with " + std::to_string(count) + (count == 1 ? " conflict: " : " conflicts: ");
  bool first = true;
  for (const auto& [manager, fields] : conflicts) {
    if (!first) message += "\n";
    first = false;
    if (fields.size() == 1) {
      message += "conflict with " + manager + ": " + fields.front();
      continue;
    }
    message += "conflicts with " + manager + ":";
    for (const auto& field : fields) message += "\n- " + field;
  }
  return {409, "Conflict", std::move(message), json::object{{"causes", std::move(causes)}}, {}};
}

json::object to_fields_v1(const FieldSet& fields) {
  json::object tree;
  for (const auto& path : fields) {
    json::object* at = &tree;
    bool is_item = false;
    for (const auto& step : steps_of(path)) {
      auto& child = (*at)[step];
      if (!child.is_object()) child = json::object{};
      at = &child.get_object();
      is_item = step.starts_with("k:");
    }
    if (is_item) (*at)["."] = json::object{};
  }
  return tree;
}

}  // namespace

FieldManager& ManagedFields::of(const std::string& name, bool applies, const std::string& subresource) {
  const auto found = std::ranges::find_if(managers, [&](const FieldManager& manager) {
    return manager.name == name && manager.applies == applies && manager.subresource == subresource;
  });
  if (found != managers.end()) return *found;
  return managers.emplace_back(FieldManager{name, applies, subresource, {}, {}, {}});
}

json::array ManagedFields::to_json() const {
  json::array all;
  for (const auto& manager : managers) {
    json::object entry{{"manager", manager.name},           {"operation", manager.applies ? "Apply" : "Update"},
                       {"apiVersion", manager.api_version}, {"time", manager.time},
                       {"fieldsType", "FieldsV1"},          {"fieldsV1", to_fields_v1(manager.fields)}};
    if (!manager.subresource.empty()) entry["subresource"] = manager.subresource;
    all.push_back(std::move(entry));
  }
  return all;
}

Leaves leaves_of(const json::object& object, const Schema* schema) {
  Leaves leaves;
  for (const auto& [name, value] : object) collect(value, "f:" + std::string{name}, field_schema(schema, name), leaves);
  return leaves;
}

void record_update(ManagedFields& managed, const FieldManager& manager, bool is_creator, const json::object& before,
                   const json::object& after, const Schema* schema) {
  FieldSet changed, removed;
  for (const auto& [name, value] : after) {
    const std::string at = "f:" + std::string{name};
    const auto* old = before.if_contains(name);
    const json::value nothing = json::object{};
    compare(old != nullptr ? *old : nothing, value, at, field_schema(schema, name), changed, removed);
  }
  for (const auto& [name, value] : before)
    if (!after.contains(name)) {
      Leaves gone;
      collect(value, "f:" + std::string{name}, field_schema(schema, name), gone);
      for (const auto& [leaf, unused] : gone) removed.insert(leaf);
    }
  if (changed.empty() && removed.empty()) return;
  for (auto& other : managed.managers) {
    for (const auto& path : changed) other.fields.erase(path);
    for (const auto& path : removed) other.fields.erase(path);
  }
  if (!(is_creator && managed.rest_is_creators) && !changed.empty()) {
    auto& mine = managed.of(manager.name, false, manager.subresource);
    mine.api_version = manager.api_version;
    mine.time = manager.time;
    mine.fields.merge(changed);
  }
  std::erase_if(managed.managers, [](const FieldManager& other) { return other.fields.empty(); });
}

Outcome<> apply_fields(ManagedFields& managed, const FieldManager& manager, const std::string* creator, bool force,
                       json::object& live, const json::object& applied, const Schema* schema) {
  const Leaves live_leaves = leaves_of(live, schema);
  if (managed.rest_is_creators) {
    // Ownership may be shared from now on, so the creator's fields are recorded.
    managed.rest_is_creators = false;
    if (creator != nullptr) {
      FieldSet rest;
      for (const auto& [path, value] : live_leaves)
        if (std::ranges::none_of(managed.managers, [&](const auto& other) { return other.fields.contains(path); }))
          rest.insert(path);
      auto& entry = managed.of(*creator, false, {});
      entry.api_version = manager.api_version;
      entry.time = kube::string_at(live, {"metadata", "creationTimestamp"});
      entry.fields.merge(rest);
    }
  }
  const Leaves wanted = leaves_of(applied, schema);
  managed.of(manager.name, true, manager.subresource);  // so that references below stay valid
  auto& mine = managed.of(manager.name, true, manager.subresource);
  std::map<std::string, std::vector<std::string>> conflicts;
  FieldSet taken;
  for (const auto& [path, value] : wanted) {
    const auto existing = live_leaves.find(path);
    if (existing == live_leaves.end() || *existing->second == *value) continue;
    if (steps_of(path).back().starts_with("k:")) continue;  // an item: its fields are compared one by one
    for (const auto& other : managed.managers)
      if (&other != &mine && other.fields.contains(path)) {
        conflicts[conflict_text(other)].push_back(readable(path));
        taken.insert(path);
      }
  }
  if (!conflicts.empty() && !force) return conflict_failure(conflicts);
  for (auto& other : managed.managers)
    if (&other != &mine)
      for (const auto& path : taken) other.fields.erase(path);

  // An item of a list is removed before its fields: its keys are needed to find it.
  json::value merged = live;
  for (const auto& path : mine.fields) {
    if (wanted.contains(path) || owns_below(managed, path, &mine)) continue;
    remove_path(merged, steps_of(path), 0);
  }
  merge_applied(merged, applied, {}, schema);
  live = std::move(merged.get_object());
  mine.fields.clear();
  for (const auto& [path, value] : wanted) mine.fields.insert(path);
  mine.api_version = manager.api_version;
  mine.time = manager.time;
  std::erase_if(managed.managers, [](const FieldManager& other) { return other.fields.empty(); });
  return {};
}

}  // namespace hubferry::sim
