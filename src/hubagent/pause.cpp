#include "hubagent/pause.hpp"

#include <algorithm>
#include <functional>

#include "hubagent/annotations.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using ocm::names::hive_pause_annotation;
using ocm::names::metal3_pause_annotation;

bool is_paused(const json::object& object, const PausingKind& kind) {
  // metal3 pauses for any value, Hive for "true" only.
  const auto* value = annotation_in(object, kind.annotation);
  if (value == nullptr) return false;
  return kind.annotation == std::string_view{metal3_pause_annotation} ||
         annotation_text(object, kind.annotation) == "true";
}

/// The host's controller, which holds the BMC Secret by a finalizer, is paused.
Awaitable<Result<>> drop_credential_finalizers(const Hub& hub, Object host) {
  const std::string name{host.string_at({"spec", "bmc", "credentialsName"})};
  if (name.empty()) co_return Result<>{};
  const Key key{std::string{host.ns()}, name};
  auto secret = co_await get_if_exists(hub, kube::resources::secrets, key);
  if (!secret) co_return secret.error();
  if (!*secret) co_return Result<>{};
  auto drop_own = [](json::object& object) { return drop_finalizers_of(object, "metal3.io"); };
  co_return co_await edit_if_exists(hub, kube::resources::secrets, **secret, drop_own);
}

}  // namespace

const std::vector<PausingKind>& pausing_kinds() {
  static const std::vector<PausingKind> kinds{
      {ocm::cluster_deployments, hive_pause_annotation, "/deprovision"},
      {ocm::bare_metal_hosts, metal3_pause_annotation, ".metal3.io"},
      {ocm::data_images, metal3_pause_annotation, ".metal3.io"},
  };
  return kinds;
}

const PausingKind* find_pausing(const Resource& resource) {
  const auto& kinds = pausing_kinds();
  const auto found = std::ranges::find(kinds, resource, &PausingKind::resource);
  return found == kinds.end() ? nullptr : &*found;
}

Awaitable<Result<std::vector<PausingKind>>> served_pausing_kinds(const Hub& hub) {
  std::vector<PausingKind> served;
  for (const auto& kind : pausing_kinds()) {
    auto is_served = co_await serves(hub, kind.resource);
    if (!is_served) co_return is_served.error();
    if (*is_served) served.push_back(kind);
  }
  co_return served;
}

bool pause(json::object& object, const PausingKind& kind, const std::string& uid) {
  if (is_paused(object, kind)) return false;
  set_annotation(object, kind.annotation, "true");
  set_annotation(object, annotations::paused_by, uid);
  return true;
}

bool resume(json::object& object, const PausingKind& kind, const std::string& uid) {
  // It was made harmless for a deletion, and returns instead. Also where a user had paused it before.
  restore_preserve_on_delete(object);
  const bool restored = drop_annotation(object, annotations::preserve_on_delete_before);
  if (annotation_text(object, annotations::paused_by) != uid) return restored;
  drop_annotation(object, annotations::paused_by);
  drop_annotation(object, kind.annotation);
  return true;
}

namespace {

bool drop_finalizers(json::object& object, const std::function<bool(std::string_view)>& unwanted) {
  const auto* list = kube::find(object, {"metadata", "finalizers"});
  if (list == nullptr || !list->is_array()) return false;
  json::array left;
  for (const auto& finalizer : list->get_array())
    if (!finalizer.is_string() || !unwanted(finalizer.get_string())) left.push_back(finalizer);
  if (left.size() == list->get_array().size()) return false;
  auto& metadata = object["metadata"].get_object();
  if (left.empty())
    metadata.erase("finalizers");
  else
    metadata["finalizers"] = std::move(left);
  return true;
}

}  // namespace

bool drop_finalizers_ending(json::object& object, std::string_view suffix) {
  return drop_finalizers(object, [&](std::string_view finalizer) { return finalizer.ends_with(suffix); });
}

bool drop_finalizers_of(json::object& object, std::string_view domain) {
  return drop_finalizers(object, [&](std::string_view finalizer) {
    const auto prefix = finalizer.substr(0, finalizer.find('/'));
    return prefix == domain || prefix.ends_with("." + std::string{domain});
  });
}

namespace {

using Change = std::function<bool(json::object& object, const PausingKind& kind)>;

/// Changes every object of these kinds in the namespace.
Awaitable<Result<>> change_each(const Hub& hub, std::vector<PausingKind> kinds, std::string ns, Change change) {
  std::vector<Resource> resources;
  for (const auto& kind : kinds) resources.push_back(kind.resource);
  const auto lists = co_await list_each(hub, std::move(resources), std::move(ns));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (!lists[i]) co_return lists[i].error();
    auto mutate = [&](json::object& object) { return change(object, kinds[i]); };
    for (const auto& object : *lists[i]) {
      auto changed = co_await edit_if_exists(hub, kinds[i].resource, object, mutate);
      if (!changed) co_return changed.error();
    }
  }
  co_return Result<>{};
}

}  // namespace

Awaitable<Result<>> pause_all(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration, std::string ns) {
  Change change = [&](json::object& object, const PausingKind& kind) { return pause(object, kind, migration.uid); };
  co_return co_await change_each(hub, std::move(kinds), std::move(ns), change);
}

Awaitable<Result<>> resume_all(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration, std::string ns) {
  Change change = [&](json::object& object, const PausingKind& kind) { return resume(object, kind, migration.uid); };
  co_return co_await change_each(hub, std::move(kinds), std::move(ns), change);
}

Awaitable<Result<>> pause_copies(const Hub& hub, std::vector<PausingKind> kinds, MigrationRef migration,
                                 std::string ns) {
  Change change = [&](json::object& object, const PausingKind& kind) {
    return is_ours(migration, object) && pause(object, kind, migration.uid);
  };
  co_return co_await change_each(hub, std::move(kinds), std::move(ns), change);
}

bool preserve_on_delete(json::object& object) {
  auto& spec = kube::object_in(object, "spec");
  const auto* before = spec.if_contains("preserveOnDelete");
  if (annotation_in(object, annotations::preserve_on_delete_before) == nullptr) {
    const bool was_set = before != nullptr && before->is_bool();
    set_annotation(object, annotations::preserve_on_delete_before,
                   !was_set             ? "absent"
                   : before->get_bool() ? "true"
                                        : "false");
  } else if (before != nullptr && *before == true) {
    return false;
  }
  kube::object_in(object, "spec")["preserveOnDelete"] = true;
  return true;
}

void restore_preserve_on_delete(json::object& object) {
  const std::string before{annotation_text(object, annotations::preserve_on_delete_before)};
  if (before.empty()) return;
  auto& spec = kube::object_in(object, "spec");
  if (before == "absent")
    spec.erase("preserveOnDelete");
  else
    spec["preserveOnDelete"] = before == "true";
}

namespace {

/// Its controller leaves the object alone: it may lose the finalizer by which it would be deprovisioned.
bool is_preserved(const json::object& object, const PausingKind& kind) {
  if (!is_paused(object, kind)) return false;
  const auto* preserve = kube::find(object, {"spec", "preserveOnDelete"});
  return kind.resource != ocm::cluster_deployments || (preserve != nullptr && *preserve == true);
}

/// Deleting it in this state deprovisions nothing.
bool is_harmless(const json::object& object, const PausingKind& kind) {
  auto content = object;
  return is_preserved(object, kind) && !drop_finalizers_ending(content, kind.finalizer_suffix);
}

/// Changes an object only while `may_touch` holds. Absent: it is gone. An error: it is not ours to touch.
Awaitable<Result<std::optional<Object>>> edit_touchable(const Hub& hub, Resource resource, Object object,
                                                        MayTouch may_touch, kube::Mutation mutate) {
  const std::string uid{object.uid()};
  const Key key = object.key();
  auto guarded = [&](json::object& content) {
    return kube::string_at(content, {"metadata", "uid"}) == uid && may_touch(content) && mutate(content);
  };
  auto edited = co_await edit(hub, resource, std::move(object), guarded);
  if (!edited && edited.error().is(ErrorKind::not_found)) co_return std::optional<Object>{};
  if (!edited) co_return edited.error();
  if (edited->uid() != uid) co_return std::optional<Object>{};
  if (!may_touch(edited->json())) co_return changed_meanwhile(hub, resource, key);
  co_return std::optional<Object>{std::move(*edited)};
}

}  // namespace

bool may_touch_any(const json::object& /*object*/) {
  return true;
}

Awaitable<Result<std::optional<Object>>> make_harmless(const Hub& hub, PausingKind kind, MigrationRef migration,
                                                       Object object, MayTouch may_touch) {
  // In two writes: the controller must see the pause before it loses its finalizer.
  auto pause_it = [&](json::object& content) {
    const bool paused = pause(content, kind, migration.uid);
    return (kind.resource == ocm::cluster_deployments && preserve_on_delete(content)) || paused;
  };
  auto strip = [&](json::object& content) {
    return is_preserved(content, kind) && drop_finalizers_ending(content, kind.finalizer_suffix);
  };
  RetryBudget budget{hub};
  while (true) {
    auto paused = co_await edit_touchable(hub, kind.resource, object, may_touch, pause_it);
    if (!paused || !*paused) co_return paused;
    if (kind.resource == ocm::bare_metal_hosts) {
      auto dropped = co_await drop_credential_finalizers(hub, **paused);
      if (!dropped) co_return dropped.error();
    }
    auto stripped = co_await edit_touchable(hub, kind.resource, **paused, may_touch, strip);
    if (!stripped || !*stripped) co_return stripped;
    if (is_harmless((*stripped)->json(), kind)) co_return stripped;
    // Somebody has changed it back between the two writes.
    const kube::Error conflict{ErrorKind::conflict, 0, {}, "changed meanwhile", std::nullopt};
    const bool again = co_await budget.wait_before_retry(conflict);
    if (!again) co_return changed_meanwhile(hub, kind.resource, object.key());
    object = std::move(**stripped);
  }
}

Awaitable<Result<>> delete_harmless(const Hub& hub, PausingKind kind, MigrationRef migration, Object object,
                                    MayTouch may_touch) {
  Prepare prepare = [&](Object current) { return make_harmless(hub, kind, migration, std::move(current), may_touch); };
  auto deleted = co_await delete_prepared(hub, kind.resource, std::move(object), prepare);
  if (!deleted) co_return deleted.error();
  co_return Result<>{};
}

}  // namespace hubferry::hubagent
