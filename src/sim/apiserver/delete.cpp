#include <algorithm>

#include "sim/apiserver/core.hpp"
#include "sim/apiserver/object_validation.hpp"

namespace hubferry::sim {

namespace {

constexpr std::string_view foreground_finalizer = "foregroundDeletion";
constexpr std::string_view orphan_finalizer = "orphan";

void remove_finalizer(json::object& object, std::string_view name) {
  auto& metadata = object["metadata"].as_object();
  auto* list = metadata.if_contains("finalizers");
  if (list == nullptr || !list->is_array()) return;
  json::array left;
  for (const auto& item : list->get_array())
    if (!item.is_string() || item.get_string() != name) left.push_back(item);
  if (left.empty())
    metadata.erase("finalizers");
  else
    metadata["finalizers"] = std::move(left);
}

void add_finalizer(json::object& object, std::string_view name) {
  auto& list = object["metadata"].as_object()["finalizers"];
  if (!list.is_array()) list = json::array{};
  if (std::ranges::find(list.get_array(), json::value(name)) == list.get_array().end())
    list.get_array().emplace_back(name);
}

/// Removes the owner references for which `keep` is false.
void filter_owners(json::object& object, const std::function<bool(std::string_view uid)>& keep) {
  auto& metadata = object["metadata"].as_object();
  auto* list = metadata.if_contains("ownerReferences");
  if (list == nullptr || !list->is_array()) return;
  json::array left;
  for (const auto& owner : list->get_array())
    if (owner.is_object() && keep(kube::string_at(owner.get_object(), {"uid"}))) left.push_back(owner);
  if (left.empty())
    metadata.erase("ownerReferences");
  else
    metadata["ownerReferences"] = std::move(left);
}

bool blocks(const kube::Object& dependent, std::string_view owner_uid) {
  const auto* list = dependent.find({"metadata", "ownerReferences"});
  if (list == nullptr || !list->is_array()) return false;
  return std::ranges::any_of(list->get_array(), [&](const json::value& owner) {
    if (!owner.is_object() || kube::string_at(owner.get_object(), {"uid"}) != owner_uid) return false;
    const auto* flag = owner.get_object().if_contains("blockOwnerDeletion");
    return flag != nullptr && flag->is_bool() && flag->get_bool();
  });
}

kube::Object success(const kube::Resource& resource, const kube::Object& removed) {
  json::object details{{"name", removed.name()}, {"kind", resource.plural}, {"uid", removed.uid()}};
  if (!resource.group.empty()) details["group"] = resource.group;
  return kube::Object{json::object{{"kind", "Status"},
                                   {"apiVersion", "v1"},
                                   {"metadata", json::object{}},
                                   {"status", "Success"},
                                   {"details", std::move(details)}}};
}

}  // namespace

Outcome<kube::Object> Core::remove(const Kind& kind, const kube::Request& request) {
  if (!request.subresource.empty()) return errors::method_not_allowed();
  const auto found = kind.collection->entries.find(request.key);
  if (found == kind.collection->entries.end()) return errors::not_found(kind.resource, request.key.name);
  const auto& object = found->second.object;
  if (!request.precondition_uid.empty() && request.precondition_uid != object.uid())
    return errors::conflict(kind.resource, request.key.name,
                            "Precondition failed: UID in precondition: " + request.precondition_uid +
                                ", UID in object meta: " + std::string{object.uid()});
  if (!request.precondition_resource_version.empty() &&
      request.precondition_resource_version != object.resource_version())
    return errors::conflict(
        kind.resource, request.key.name,
        "Precondition failed: ResourceVersion in precondition: " + request.precondition_resource_version +
            ", ResourceVersion in object meta: " + std::string{object.resource_version()});
  if (kind.resource == kube::resources::namespaces)
    for (const char* system : {"default", "kube-system", "kube-public"})
      if (request.key.name == system)
        return errors::forbidden(kind.resource, request.key.name, "this namespace may not be deleted");
  if (request.dry_run) return success(kind.resource, object);
  return remove_entry(kind, request.key, request.propagation);
}

Outcome<kube::Object> Core::remove_entry(const Kind& kind, const kube::Key& key, kube::Propagation propagation) {
  auto& collection = *kind.collection;
  const kube::Object object = collection.entries.at(key).object;
  const bool foreground = propagation == kube::Propagation::foreground;
  const bool orphan = propagation == kube::Propagation::orphan;
  if (object.is_being_deleted() && !foreground && !orphan) return in_version(kind, object);
  const bool has_dependents = !store_.dependents(object.uid()).empty();
  const bool keeps = !is_released(object.json()) || foreground || (orphan && has_dependents);
  if (!keeps) return success(kind.resource, erase(collection, key));

  json::object next = object.json();
  auto& metadata = next["metadata"].as_object();
  if (!object.is_being_deleted()) {
    metadata["deletionTimestamp"] = timestamp();
    metadata["deletionGracePeriodSeconds"] = 0;
    if (kind.counts_generations) metadata["generation"] = object.generation() + 1;
  }
  if (foreground) add_finalizer(next, foreground_finalizer);
  if (orphan) add_finalizer(next, orphan_finalizer);
  if (kind.resource == kube::resources::namespaces) next["status"] = json::object{{"phase", "Terminating"}};
  auto& entry = collection.entries.at(key);
  auto stored = store_.put(collection, key, std::move(next), std::move(entry.managed), nullptr);
  after_write(kind, stored);
  const Store::Reference reference{collection.id(), key};
  const std::string uid{object.uid()};
  if (foreground) {
    foreground_[uid] = reference;
    later([this, uid] { advance_foreground(uid); });
  }
  if (orphan) later([this, reference, uid] { advance_orphaning(reference, uid); });
  if (kind.resource == kube::resources::namespaces) {
    terminating_namespaces_.insert(key.name);
    later([this, name = key.name] { empty_namespace(name); });
  }
  if (kind.resource == kube::resources::custom_resource_definitions)
    later([this, name = key.name] { empty_definition(name); });
  return in_version(kind, stored);
}

void Core::rewrite(Collection& collection, const kube::Key& key, const std::function<void(json::object&)>& change) {
  const auto found = collection.entries.find(key);
  if (found == collection.entries.end()) return;
  const kube::Object before = found->second.object;
  json::object next = before.json();
  change(next);
  if (next == before.json()) return;
  if (before.is_being_deleted() && is_released(next)) {
    erase(collection, key);
    return;
  }
  auto stored = store_.put(collection, key, std::move(next), std::move(found->second.managed), nullptr);
  after_write(kind_of(collection), stored);
}

kube::Object Core::erase(Collection& collection, const kube::Key& key) {
  auto last = store_.erase(collection, key);
  after_erase(collection, last);
  return last;
}

void Core::collect_garbage(const Store::Reference& reference) {
  auto& collection = store_.collection(reference.collection);
  const auto found = collection.entries.find(reference.key);
  if (found == collection.entries.end() || found->second.object.is_being_deleted()) return;
  const auto* owners = found->second.object.find({"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array() || owners->get_array().empty()) return;
  std::size_t absent = 0;
  for (const auto& owner : owners->get_array())
    if (!owner.is_object() || !store_.exists(kube::string_at(owner.get_object(), {"uid"}))) ++absent;
  if (absent == 0) return;
  if (absent == owners->get_array().size()) {
    (void)remove_entry(kind_of(collection), reference.key, kube::Propagation::background);
    return;
  }
  rewrite(collection, reference.key, [this](json::object& object) {
    filter_owners(object, [this](std::string_view uid) { return store_.exists(uid); });
  });
}

void Core::delete_dependents(const std::string& uid) {
  for (const auto& reference : store_.dependents(uid)) collect_garbage(reference);
}

void Core::advance_foreground(const std::string& uid) {
  const auto waiting = foreground_.find(uid);
  if (waiting == foreground_.end()) return;
  const Store::Reference owner = waiting->second;
  bool blocked = false;
  for (const auto& reference : store_.dependents(uid)) {
    auto& collection = store_.collection(reference.collection);
    const auto found = collection.entries.find(reference.key);
    if (found == collection.entries.end()) continue;
    const kube::Object dependent = found->second.object;
    if (!dependent.is_being_deleted()) {
      const bool has_own = !store_.dependents(dependent.uid()).empty();
      (void)remove_entry(kind_of(collection), reference.key,
                         has_own ? kube::Propagation::foreground : kube::Propagation::background);
    }
    if (blocks(dependent, uid) && collection.entries.contains(reference.key)) blocked = true;
  }
  if (blocked) return;  // called again when the last of them is deleted
  foreground_.erase(uid);
  rewrite(store_.collection(owner.collection), owner.key,
          [](json::object& object) { remove_finalizer(object, foreground_finalizer); });
}

void Core::advance_orphaning(const Store::Reference& reference, const std::string& uid) {
  for (const auto& dependent : store_.dependents(uid))
    rewrite(store_.collection(dependent.collection), dependent.key,
            [&](json::object& object) { filter_owners(object, [&](std::string_view owner) { return owner != uid; }); });
  rewrite(store_.collection(reference.collection), reference.key,
          [](json::object& object) { remove_finalizer(object, orphan_finalizer); });
}

void Core::empty_namespace(const std::string& name) {
  if (!terminating_namespaces_.contains(name)) return;
  bool empty = true;
  for (const auto& collection : store_.collections()) {
    const auto& kind = kind_of(*collection);
    if (!kind.resource.namespaced) continue;
    std::vector<kube::Key> keys;
    collection->visit(name, [&](const kube::Key& key, const Entry&) { keys.push_back(key); });
    for (const auto& key : keys) {
      const auto found = collection->entries.find(key);
      if (found == collection->entries.end()) continue;
      if (!found->second.object.is_being_deleted()) (void)remove_entry(kind, key, kube::Propagation::background);
      if (collection->entries.contains(key)) empty = false;
    }
  }
  if (!empty) return;  // called again for every deleted object
  terminating_namespaces_.erase(name);
  rewrite(*kinds_.find(kube::resources::namespaces)->collection, kube::Key{{}, name},
          [](json::object& object) { object["spec"].as_object()["finalizers"] = json::array{}; });
}

void Core::empty_definition(const std::string& name) {
  const auto found = collection_of_definition_.find(name);
  if (found != collection_of_definition_.end()) {
    auto& collection = *found->second;
    terminating_definitions_[collection.id()] = name;
    std::vector<kube::Key> keys;
    collection.visit({}, [&](const kube::Key& key, const Entry&) { keys.push_back(key); });
    for (const auto& key : keys) {
      const auto entry = collection.entries.find(key);
      if (entry != collection.entries.end() && !entry->second.object.is_being_deleted())
        (void)remove_entry(kind_of(collection), key, kube::Propagation::background);
    }
    if (!collection.entries.empty()) return;  // called again for every deleted object
    terminating_definitions_.erase(collection.id());
  }
  rewrite(*kinds_.find(kube::resources::custom_resource_definitions)->collection, kube::Key{{}, name},
          [](json::object& object) { remove_finalizer(object, "customresourcecleanup.apiextensions.k8s.io"); });
}

}  // namespace hubferry::sim
