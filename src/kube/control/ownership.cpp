#include <algorithm>
#include <boost/json/array.hpp>

#include "hubferry/kube/edit.hpp"

namespace hubferry::kube {

namespace {

/// metadata.<field> as an array, made when it is missing.
json::array& metadata_list(json::object& object, std::string_view field) {
  return array_in(object_in(object, "metadata"), field);
}

const json::array* find_list(const json::object& object, std::string_view field) {
  const auto* list = find(object, {"metadata", field});
  return list == nullptr ? nullptr : list->if_array();
}

bool is_text(const json::value& value, std::string_view text) {
  return value.is_string() && std::string_view{value.get_string()} == text;
}

bool has_uid(const json::value& reference, std::string_view uid) {
  return reference.is_object() && string_at(reference.get_object(), {"uid"}) == uid;
}

/// Removes the elements that `matches` says; an emptied list goes as well.
template <typename Matches>
bool drop_from(json::object& object, std::string_view field, Matches matches) {
  if (find_list(object, field) == nullptr) return false;
  auto& list = metadata_list(object, field);
  const auto kept = std::remove_if(list.begin(), list.end(), matches);
  if (kept == list.end()) return false;
  list.erase(kept, list.end());
  if (list.empty()) object["metadata"].get_object().erase(field);
  return true;
}

Error refusal(ErrorKind kind, std::string message) {
  return {kind, 0, {}, std::move(message), std::nullopt};
}

}  // namespace

bool has_finalizer(const Object& object, std::string_view finalizer) {
  const auto* list = find_list(object.json(), "finalizers");
  return list != nullptr && std::ranges::any_of(*list, [&](const auto& value) { return is_text(value, finalizer); });
}

bool put_finalizer(json::object& object, std::string_view finalizer) {
  const auto* present = find_list(object, "finalizers");
  if (present != nullptr && std::ranges::any_of(*present, [&](const auto& value) { return is_text(value, finalizer); }))
    return false;
  metadata_list(object, "finalizers").emplace_back(finalizer);
  return true;
}

bool drop_finalizer(json::object& object, std::string_view finalizer) {
  return drop_from(object, "finalizers", [&](const json::value& value) { return is_text(value, finalizer); });
}

Awaitable<Result<Object>> add_finalizer(Api& api, Resource resource, Key key, std::string finalizer) {
  Mutation put = [finalizer = std::move(finalizer)](json::object& object) {
    if (!string_at(object, {"metadata", "deletionTimestamp"}).empty()) return false;
    return put_finalizer(object, finalizer);
  };
  return edit(api, std::move(resource), std::move(key), std::move(put));
}

Awaitable<Result<Object>> remove_finalizer(Api& api, Resource resource, Key key, std::string finalizer) {
  Mutation drop = [finalizer = std::move(finalizer)](json::object& object) {
    return drop_finalizer(object, finalizer);
  };
  auto answer = co_await edit(api, std::move(resource), std::move(key), std::move(drop));
  if (!answer && answer.error().kind == ErrorKind::not_found) co_return Object{};
  co_return answer;
}

Result<bool> set_owner(json::object& object, const Resource& owner_resource, const Object& owner, Ownership how) {
  if (owner.uid().empty()) return refusal(ErrorKind::invalid, "an owner needs a uid: it must exist on the server");
  const auto ns = string_at(object, {"metadata", "namespace"});
  if (!owner.ns().empty() && owner.ns() != ns)
    return refusal(ErrorKind::invalid, "an owner in namespace " + std::string{owner.ns()} +
                                           " cannot own an object in " + (ns.empty() ? "none" : std::string{ns}));
  json::object wanted{{"apiVersion", owner_resource.api_version()},
                      {"kind", owner_resource.kind},
                      {"name", owner.name()},
                      {"uid", owner.uid()},
                      {"controller", how.controller},
                      {"blockOwnerDeletion", how.block_owner_deletion}};
  if (const auto* owners = find_list(object, "ownerReferences"); owners != nullptr && how.controller) {
    for (const auto& reference : *owners) {
      const auto* controls = find(reference, {"controller"});
      if (has_uid(reference, owner.uid()) || controls == nullptr || *controls != json::value(true)) continue;
      return refusal(ErrorKind::conflict,
                     "another controller owns it already: " + std::string{string_at(reference.get_object(), {"kind"})} +
                         " " + std::string{string_at(reference.get_object(), {"name"})});
    }
  }
  for (auto& reference : metadata_list(object, "ownerReferences")) {
    if (!has_uid(reference, owner.uid())) continue;
    if (reference.get_object() == wanted) return false;
    reference = std::move(wanted);
    return true;
  }
  metadata_list(object, "ownerReferences").emplace_back(std::move(wanted));
  return true;
}

bool is_owned_by(const Object& object, std::string_view owner_uid) {
  const auto* owners = find_list(object.json(), "ownerReferences");
  return owners != nullptr &&
         std::ranges::any_of(*owners, [&](const auto& value) { return has_uid(value, owner_uid); });
}

}  // namespace hubferry::kube
