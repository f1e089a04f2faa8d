#include "hubagent/seen_clusters.hpp"

#include "hubagent/annotations.hpp"
#include "hubagent/hub_wide_rights.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

using namespace ocm::names;

constexpr std::array annotations_of_claims{
    migrating_annotation,   klusterlet_config_annotation,          disable_auto_import_annotation,
    accepted_on_annotation, annotations::klusterlet_config_before, annotations::returning};

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

Awaitable<std::optional<Object>> patch_as_seen(Hub& hub, std::string cluster, kube::Mutation mutate) {
  const auto seen = seen_cluster(hub, cluster);
  if (!seen) co_return std::nullopt;
  auto changed = seen->json();
  if (!mutate(changed)) co_return std::nullopt;
  const bool may_patch = co_await hub.rights().may("patch", ocm::managed_clusters);
  auto patch = may_patch ? kube::merge_patch_between(seen->json(), changed) : std::nullopt;
  if (!patch) co_return std::nullopt;
  kube::object_in(*patch, "metadata")["resourceVersion"] = seen->resource_version();
  auto patched = co_await hub.api().merge_patch(ocm::managed_clusters, cluster_scoped(cluster), std::move(*patch));
  if (!patched) co_return std::nullopt;
  co_return std::move(*patched);
}

Awaitable<Result<Object>> edit_cluster(Hub& hub, std::string cluster, kube::Mutation mutate) {
  if (auto patched = co_await patch_as_seen(hub, cluster, mutate)) co_return std::move(*patched);
  co_return co_await edit(hub, ocm::managed_clusters, cluster_scoped(cluster), mutate);
}

}  // namespace hubferry::hubagent
