#pragma once

namespace hubferry::behaviour {

/// What the simulated hubs and agents do otherwise than real ones (OCM v1.3.1, import controllers 2.17 and 5.x), each
/// with its reason. Nothing else that the suite looks at may differ.
///
/// Beyond what it looks at: with multipleHubsConfig both import controllers never come to rest on a real hub (one to
/// five writes a second), of the simulated ones only that of 5.x (most simulated fleets have the other, and would drown
/// in them); the klusterlet's operator and its roll-outs are not simulated (the agent has a new list at once, and is
/// not restarted by it); ManagedClusters have one finalizer instead of four; an edited ClusterManager takes effect at
/// once, not after the controllers have been rolled out; a namespace is gone at once when nothing holds it (Kubernetes'
/// namespace controller begins to empty it five seconds after its deletion).
enum class Difference {
  /// The import controller also creates ManifestWork <cluster>-klusterlet-crds. Its content never matters to a
  /// migration, and it would double the works of a simulated fleet.
  no_work_for_crds,
};

}  // namespace hubferry::behaviour
