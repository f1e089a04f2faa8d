#include "hubagent/hub_watches.hpp"

#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

namespace {

const kube::Decoder& namespace_decoder() {
  static const kube::ProjectionDecoder<SeenNamespace> decoder{
      kube::Schema<SeenNamespace>{}.text({"metadata", "deletionTimestamp"}, &SeenNamespace::deletion_time)};
  return decoder;
}

/// A namespace is small, and one of a cluster is read once or twice.
constexpr std::size_t most_namespaces_for_one = 8;
/// A klusterlet's works have tens of kilobytes, but those of one cluster would be read or watched up to six times, each
/// watch on a connection of its own.
constexpr std::size_t most_works_for_one = 4;
/// Without it each migration watches all leases of the hub by itself.
constexpr std::size_t most_leases_for_one = 1'000'000;

kube::CacheOptions of_klusterlets() {
  kube::CacheOptions options;
  options.label_selector = ocm::names::klusterlet_works_label;
  return options;
}

}  // namespace

kube::CacheOptions cluster_leases() {
  kube::CacheOptions options;
  options.field_selector = std::string{"metadata.name="} + ocm::names::cluster_lease;
  return options;
}

HubWatches::HubWatches(kube::Api& api, HubWideRights& rights, const std::function<std::size_t()>& clusters_on_hub,
                       const kube::Env& env)
    : namespaces(api, rights, {kube::resources::namespaces, {}, namespace_decoder(), most_namespaces_for_one},
                 clusters_on_hub, env),
      klusterlet_works(api, rights,
                       {ocm::manifest_works, of_klusterlets(), klusterlet_work_decoder(), most_works_for_one},
                       clusters_on_hub, env),
      leases(api, rights,
             {kube::resources::leases, cluster_leases(), kube::object_decoder(), most_leases_for_one,
              ocm::names::cluster_lease},
             clusters_on_hub, env) {}

}  // namespace hubferry::hubagent
