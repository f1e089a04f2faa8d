#include <algorithm>

#include "sim/apiserver/core.hpp"
#include "sim/apiserver/object_validation.hpp"
#include "sim/apiserver/patch.hpp"

namespace hubferry::sim {

namespace {

/// Copies `field` from one object to another; erases it if it is absent.
void copy_field(json::object& to, const json::object& from, std::string_view field) {
  if (const auto* value = from.if_contains(field))
    to[field] = *value;
  else
    to.erase(field);
}

bool same_beside_metadata(const json::object& left, const json::object& right) {
  const auto covered = [](const json::object& one, const json::object& other) {
    return std::ranges::all_of(one, [&](const auto& field) {
      if (field.key() == "metadata") return true;
      const auto* value = other.if_contains(field.key());
      return value != nullptr && *value == field.value();
    });
  };
  return covered(left, right) && covered(right, left);
}

std::vector<std::string_view> finalizers_of(const json::object& object) {
  std::vector<std::string_view> all;
  const auto* list = kube::find(object, {"metadata", "finalizers"});
  if (list != nullptr && list->is_array())
    for (const auto& item : list->get_array())
      if (item.is_string()) all.emplace_back(item.get_string());
  return all;
}

}  // namespace

Outcome<kube::Object> Core::update(const User& user, const Kind& kind, kube::Request& request) {
  if (!request.body.is_object()) return errors::bad_request("the body must be an object");
  auto& body = request.body.get_object();
  if (auto checked = check_type(kind.resource, body); !checked) return checked.error();
  const auto name = kube::string_at(body, {"metadata", "name"});
  if (name.empty() || request.key.name.empty()) return errors::bad_request("name must be provided");
  if (name != request.key.name)
    return errors::bad_request("the name of the object (" + std::string{name} +
                               ") does not match the name on the URL (" + request.key.name + ")");
  if (!kind.collection->entries.contains(request.key)) return errors::not_found(kind.resource, name);
  if (!kind.built_in && kube::string_at(body, {"metadata", "resourceVersion"}).empty()) {
    const std::vector<FieldError> field_errors{
        {"metadata.resourceVersion", "Invalid value: 0x0: must be specified for an update", "FieldValueInvalid"}};
    return errors::invalid(kind.resource, name, field_errors);
  }
  return replace(user, kind, request, request.key, std::move(body), nullptr, false);
}

Outcome<kube::Object> Core::patch(const User& user, const Kind& kind, kube::Request& request) {
  const auto found = kind.collection->entries.find(request.key);
  if (found == kind.collection->entries.end()) return errors::not_found(kind.resource, request.key.name);
  json::value next = in_version(kind, found->second.object).json();
  switch (request.patch_type) {
    case kube::PatchType::merge:
      if (!request.body.is_object()) return errors::bad_request("a merge patch must be an object");
      merge_patch(next, request.body);
      break;
    case kube::PatchType::json:
      if (!request.body.is_array()) return errors::bad_request("a JSON patch must be an array");
      if (auto done = json_patch(next, request.body.get_array()); !done) return done.error();
      break;
    case kube::PatchType::strategic:
      if (!kind.built_in)
        return StatusError{415,
                           "UnsupportedMediaType",
                           "the body of the request was in an unknown format - accepted media types include: "
                           "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                           {},
                           {}};
      strategic_merge_patch(next, request.body);
      break;
  }
  if (!next.is_object()) return errors::bad_request("the patched object is not an object");
  if (kube::string_at(next.get_object(), {"metadata", "name"}) != request.key.name)
    return errors::bad_request("the name of the object does not match the name on the URL");
  return replace(user, kind, request, request.key, std::move(next.get_object()), nullptr, false);
}

Outcome<kube::Object> Core::apply(const User& user, const Kind& kind, kube::Request& request) {
  if (!request.body.is_object()) return errors::bad_request("the body must be an object");
  auto& applied = request.body.get_object();
  if (auto checked = check_type(kind.resource, applied); !checked) return checked.error();
  if (const auto name = kube::string_at(applied, {"metadata", "name"}); !name.empty() && name != request.key.name)
    return errors::bad_request("the name of the object (" + std::string{name} +
                               ") does not match the name on the URL (" + request.key.name + ")");
  auto& metadata = kube::object_in(applied, "metadata");
  if (metadata.contains("managedFields")) return errors::bad_request("metadata.managedFields must be nil");
  metadata["name"] = request.key.name;
  FieldManager manager{manager_of(request), true, request.subresource, kind.resource.api_version(), timestamp(), {}};
  const auto found = kind.collection->entries.find(request.key);
  if (found == kind.collection->entries.end()) {
    if (!request.subresource.empty()) return errors::not_found(kind.resource, request.key.name);
    if (!kube::string_at(applied, {"metadata", "uid"}).empty())
      return errors::conflict(kind.resource, request.key.name,
                              "uid mismatch: the provided object specified uid " +
                                  std::string{kube::string_at(applied, {"metadata", "uid"})} +
                                  ", and no existing object was found");
    const auto allowed = authorize(user, "create", request.resource, request.key, {});
    if (!allowed) return allowed.error();
    if (kind.status) applied.erase("status");
    auto managed = std::make_unique<ManagedFields>();
    json::object fresh;
    if (auto done = apply_fields(*managed, manager, nullptr, true, fresh, applied, kind.schema.get()); !done)
      return done.error();
    return insert(user, kind, request, std::move(applied), std::move(managed));
  }
  // Only fields that this request can write are applied, and thus owned.
  if (request.subresource == "status") {
    json::object narrowed;
    for (const char* field : {"apiVersion", "kind", "metadata", "status"}) copy_field(narrowed, applied, field);
    for (const char* field : {"labels", "annotations", "finalizers", "ownerReferences"})
      kube::object_in(narrowed, "metadata").erase(field);
    applied = std::move(narrowed);
  } else if (kind.status) {
    applied.erase("status");
  }
  const auto& entry = found->second;
  auto managed =
      entry.managed != nullptr ? std::make_unique<ManagedFields>(*entry.managed) : std::make_unique<ManagedFields>();
  json::object next = in_version(kind, entry.object).json();
  if (auto done = apply_fields(*managed, manager, entry.creator, request.force, next, applied, kind.schema.get());
      !done)
    return done.error();
  return replace(user, kind, request, request.key, std::move(next), std::move(managed), true);
}

Outcome<kube::Object> Core::replace(const User& user, const Kind& kind, const kube::Request& request,
                                    const kube::Key& key, json::object next, std::unique_ptr<ManagedFields> managed,
                                    bool applied) {
  to_stored_names(kind, next);
  auto& entry = kind.collection->entries.at(key);
  const kube::Object before = entry.object;
  const auto& old = before.json();
  const auto given_version = kube::string_at(next, {"metadata", "resourceVersion"});
  if (!given_version.empty() && given_version != before.resource_version())
    return errors::modified(kind.resource, key.name);
  if (const auto uid = kube::string_at(next, {"metadata", "uid"}); !uid.empty() && uid != before.uid())
    return errors::conflict(kind.resource, key.name,
                            "Precondition failed: UID in precondition: " + std::string{uid} +
                                ", UID in object meta: " + std::string{before.uid()});

  if (request.subresource.empty()) {
    if (kind.status) copy_field(next, old, "status");
    if (kind.resource == kube::resources::namespaces || kind.resource == kube::resources::certificate_signing_requests)
      copy_field(next, old, "spec");
    if (kind.resource == kube::resources::secrets) fold_string_data(next);
  } else {
    json::object narrowed = old;
    if (request.subresource == "finalize")
      copy_field(narrowed, next, "spec");
    else
      copy_field(narrowed, next, "status");
    if (request.subresource == "approval") {
      auto& status = narrowed["status"];
      if (!status.is_object()) status = json::object{};
      const auto* had = kube::find(old, {"status", "certificate"});
      if (had != nullptr) status.get_object()["certificate"] = *had;
    }
    next = std::move(narrowed);
  }
  auto& metadata = kube::object_in(next, "metadata");
  const auto& old_metadata = old.at("metadata").get_object();
  for (const char* field : {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
                            "name", "namespace", "generateName", "resourceVersion"})
    copy_field(metadata, old_metadata, field);
  metadata.erase("managedFields");
  metadata.erase("selfLink");
  for (const char* field : {"labels", "annotations", "finalizers", "ownerReferences"})
    if (const auto* value = metadata.if_contains(field);
        value != nullptr && (value->is_null() || (value->is_object() && value->get_object().empty()) ||
                             (value->is_array() && value->get_array().empty())))
      metadata.erase(field);
  next["apiVersion"] = old.at("apiVersion");
  next["kind"] = old.at("kind");
  if (auto field_errors = check_metadata(kind.resource, next); !field_errors.empty())
    return errors::invalid(kind.resource, key.name, field_errors);
  if (before.is_being_deleted()) {
    const auto had = finalizers_of(old);
    for (const auto finalizer : finalizers_of(next))
      if (std::ranges::find(had, finalizer) == had.end()) {
        const std::vector<FieldError> field_errors{
            {"metadata.finalizers",
             "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
             "[]string{\"" +
                 std::string{finalizer} + "\"}",
             "FieldValueForbidden"}};
        return errors::invalid(kind.resource, key.name, field_errors);
      }
  }
  if (auto checked = check_content(kind, key.name, next, &old); !checked) return checked.error();
  if (auto field_errors = check_update(kind.resource, old, next); !field_errors.empty())
    return errors::invalid(kind.resource, key.name, field_errors);
  if (request.subresource.empty())
    if (auto asked = check_admission(user, kind, &before, next); !asked) return asked.error();
  auto& fixed = kube::object_in(next, "metadata");
  if (kind.counts_generations && request.subresource.empty() && !same_beside_metadata(old, next))
    fixed["generation"] = before.generation() + 1;

  const bool unchanged = next == old;
  if (unchanged && !(applied && managed != nullptr)) return in_version(kind, before);
  if (request.dry_run) return in_version(kind, kube::Object{std::move(next)});
  if (unchanged) {
    entry.managed = std::move(managed);  // a change of ownership alone is not visible to watches
    return in_version(kind, before);
  }
  if (!applied) {
    const auto name = manager_of(request);
    const bool is_creator = entry.creator != nullptr && *entry.creator == name && request.subresource.empty();
    managed = std::move(entry.managed);
    if (managed == nullptr && !is_creator) managed = std::make_unique<ManagedFields>();
    if (managed != nullptr) {
      const FieldManager manager{name, false, request.subresource, kind.resource.api_version(), timestamp(), {}};
      record_update(*managed, manager, is_creator, old, next, kind.schema.get());
    }
  }
  if (before.is_being_deleted() && is_released(next)) return in_version(kind, erase(*kind.collection, key));
  auto stored = store_.put(*kind.collection, key, std::move(next), std::move(managed), nullptr);
  after_write(kind, stored);
  return in_version(kind, stored);
}

json::object Core::with_managed_fields(const Kind& kind, const kube::Object& object) const {
  json::object shown = object.json();
  const auto found = kind.collection->entries.find(object.key());
  if (found == kind.collection->entries.end()) return shown;
  const auto& entry = found->second;
  ManagedFields managed = entry.managed != nullptr ? *entry.managed : ManagedFields{};
  if (managed.rest_is_creators && entry.creator != nullptr) {
    FieldManager rest{*entry.creator,
                      false,
                      {},
                      kind.resource.api_version(),
                      std::string{kube::string_at(shown, {"metadata", "creationTimestamp"})},
                      {}};
    for (const auto& [path, value] : leaves_of(shown, kind.schema.get()))
      if (std::ranges::none_of(managed.managers, [&](const auto& other) { return other.fields.contains(path); }))
        rest.fields.insert(path);
    managed.managers.insert(managed.managers.begin(), std::move(rest));
  }
  shown["metadata"].as_object()["managedFields"] = managed.to_json();
  return shown;
}

}  // namespace hubferry::sim
