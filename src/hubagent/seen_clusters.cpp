#include "hubagent/seen_clusters.hpp"

#include "hubagent/annotations.hpp"
#include "hubagent/hub_wide_rights.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

constexpr std::array annotations_of_claims{migrating_annotation,
                                           klusterlet_config_annotation,
                                           disable_auto_import_annotation,
                                           accepted_on_annotation,
                                           annotations::klusterlet_config_before,
                                           annotations::returning,
                                           annotations::detached_by,
                                           annotations::deletion_begun};

/// A patch that leaves no annotation of those that were seen: the object may have others.
void keep_other_annotations(json::object& metadata_patch, const Object& seen) {
  auto* annotations = metadata_patch.if_contains("annotations");
  if (annotations == nullptr || !annotations->is_null()) return;
  auto& each = annotations->emplace_object();
  for (const auto* key : annotations_of_claims)
    if (!seen.annotation(key).empty()) each[key] = nullptr;
}

}  // namespace

std::optional<Object> seen_cluster(Hub& hub, const std::string& cluster) {
  const auto seen = hub.clusters().get(cluster_scoped(cluster));
  if (seen == nullptr || seen->is_being_deleted()) return std::nullopt;
  json::object kept;
  for (const auto* key : annotations_of_claims)
    if (const auto value = seen->annotation(key)) kept[key] = *value;
  json::object metadata{{"name", cluster}, {"resourceVersion", seen->resource_version()}};
  metadata["annotations"] = std::move(kept);
  return Object{json::object{{"metadata", std::move(metadata)},
                             {"spec", json::object{{"hubAcceptsClient", seen->hub_accepts_client()}}}}};
}

Awaitable<kube::Result<std::optional<Object>>> patch_as_seen(Hub& hub, std::string cluster, kube::Mutation mutate) {
  const auto nothing = std::optional<Object>{};
  const auto seen = seen_cluster(hub, cluster);
  if (!seen) co_return nothing;
  auto changed = seen->json();
  if (!mutate(changed)) co_return nothing;
  const bool may_patch = co_await hub.rights().may("patch", ocm::managed_clusters);
  auto patch = may_patch ? kube::merge_patch_between(seen->json(), changed) : std::nullopt;
  if (!patch) co_return nothing;
  auto& metadata = kube::object_in(*patch, "metadata");
  keep_other_annotations(metadata, *seen);
  metadata["resourceVersion"] = seen->resource_version();
  auto patched = co_await hub.api().merge_patch(ocm::managed_clusters, cluster_scoped(cluster), std::move(*patch));
  if (patched) co_return std::optional<Object>{std::move(*patched)};
  const auto kind = patched.error().kind;
  if (kind == ErrorKind::retry_later || kind == ErrorKind::unreachable) co_return patched.error();
  co_return nothing;
}

Awaitable<Result<Object>> edit_cluster(Hub& hub, std::string cluster, kube::Mutation mutate) {
  auto patched = co_await patch_as_seen(hub, cluster, mutate);
  if (patched && *patched) co_return std::move(**patched);
  if (!patched) {
    // A hub in trouble gets no second request at once; the next one says what is wrong.
    RetryBudget budget{hub};
    co_await budget.wait_before_retry(patched.error());
  }
  co_return co_await edit(hub, ocm::managed_clusters, cluster_scoped(cluster), mutate);
}

}  // namespace hubferry::hubagent
