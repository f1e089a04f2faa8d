#pragma once

#include "hubagent/hub_watch.hpp"
#include "hubagent/klusterlet_work.hpp"

namespace hubferry::hubagent {

/// A namespace, as far as one waits for its end.
struct SeenNamespace : kube::Projected {
  std::string deletion_time;
};

/// The Leases of all clusters of a hub.
kube::CacheOptions cluster_leases();

/// The watches of a hub that its clusters share.
struct HubWatches {
  HubWatches(kube::Api& api, HubWideRights& rights, const std::function<std::size_t()>& clusters_on_hub,
             const kube::Env& env);

  HubWatch<SeenNamespace> namespaces;
  /// Those that carry the import controller's label: one that is missing here may exist nevertheless.
  HubWatch<KlusterletWork> klusterlet_works;
  /// Of the clusters, for those that wait for arrivals.
  HubWatch<kube::Object> leases;
};

}  // namespace hubferry::hubagent
