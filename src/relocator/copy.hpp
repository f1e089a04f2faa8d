#pragma once

#include <vector>

#include "relocator/deployment.hpp"
#include "relocator/destinations.hpp"
#include "relocator/inventory.hpp"

namespace hubferry::relocator {

/// What the destination has under the name of our ClusterDeployment.
enum class Holding {
  absent,
  ours,      // the same cluster: the copy is complete
  other,     // another cluster
  leaving,   // ours, but it is being deleted there, or it is on its way to a further hub
  same_hub,  // this very object: the destination is the source
};
struct Look {
  Holding holding = Holding::absent;
  std::string message;  // unless it is absent or ours
};
/// Reads it from the destination's server.
Awaitable<kube::Result<Look>> look_at(const Destination& destination, const Object& deployment);

/// An object as it is created on the destination: without what the source's server and controllers own. The status is
/// dropped.
json::object clean_copy(const Object& object);

/// Copies objects to one destination, each idempotently.
class Copier {
 public:
  /// `deployment` outlives it.
  Copier(std::shared_ptr<Destination> destination, const Object& deployment, std::string relocator)
      : destination_(std::move(destination)), deployment_(deployment), relocator_(std::move(relocator)) {}

  Awaitable<OrProblem<bool>> create_namespace();
  /// Creates it; if it exists and differs, updates it in place, or replaces it where the server refuses that. An object
  /// that is equal is not touched. Refused: one that belongs to another ClusterDeployment.
  Awaitable<OrProblem<bool>> copy(InventoryItem item);
  /// With the annotation of an arriving zone, and with the name servers in its status: without them the destination
  /// would remove the delegation.
  Awaitable<OrProblem<bool>> copy_zone(Object zone);
  /// Last of all. Never replaces one. `source`: the identity of the source hub.
  Awaitable<OrProblem<Object>> create_deployment(std::string source);

 private:
  Awaitable<OrProblem<bool>> put(kube::Resource resource, json::object wanted);
  Awaitable<OrProblem<bool>> reconcile_existing(kube::Resource resource, json::object wanted);
  Awaitable<OrProblem<bool>> replace(kube::Resource resource, json::object wanted, Object present);

  std::shared_ptr<Destination> destination_;
  const Object& deployment_;
  std::string relocator_;
};

}  // namespace hubferry::relocator
