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
  unclear,   // it may be this cluster or another: neither is proven
  leaving,   // ours, but it is being deleted there, or it is on its way to a further hub
  same_hub,  // this very object: the destination is the source
};
struct Look {
  Holding holding = Holding::absent;
  std::string message;  // unless it is absent or ours
};
/// Reads it from the destination's server. `source`: the identity of the source hub.
///
/// Ours is only what has the infra ID and cluster ID of our ClusterDeployment, where that has them, and what came from
/// this hub. The latter is not asked for if it moves already and the IDs prove it.
Awaitable<kube::Result<Look>> look_at(const Destination& destination, const Object& deployment, std::string source);

/// The same, after creating the namespace there, which a copy needs anyway. If that was not there, neither was a
/// ClusterDeployment in it, and nothing is read. One that
/// came from there is refused in any case, and leaves no namespace. Problems: NoConnection, MoveFailed.
Awaitable<OrProblem<Look>> prepare_and_look(const Destination& destination, const Object& deployment,
                                            std::string source);

/// What the destination has of an object that is to be copied.
enum class Presence {
  absent,
  equal,     // it is left as it is
  outdated,  // a copy from this hub that differs: it is updated
};

/// An object as it is created on the destination: without what the source's server and controllers own. The status is
/// dropped.
json::object clean_copy(const Object& object);

/// Copies objects to one destination, each idempotently. The namespace is there already.
class Copier {
 public:
  /// `deployment` outlives it. `source`: the identity of the source hub.
  Copier(std::shared_ptr<Destination> destination, const Object& deployment, std::string relocator, std::string source)
      : destination_(std::move(destination)),
        deployment_(deployment),
        relocator_(std::move(relocator)),
        source_(std::move(source)) {}

  /// Creates it, labelled with the source; if it exists and differs, updates it in place, or replaces it where the
  /// server refuses that. An object that is equal is not touched. Refused: one that differs and was not copied from
  /// this hub, or that another ClusterDeployment of the destination may use.
  Awaitable<OrProblem<bool>> copy(InventoryItem item);
  /// What that would find there. Changes nothing. Problems: MoveFailed, as of copy(), if it is in the way.
  Awaitable<OrProblem<Presence>> compare(InventoryItem item);
  /// With the annotation of an arriving zone, and with the name servers in its status: without them the destination
  /// would remove the delegation.
  Awaitable<OrProblem<bool>> copy_zone(Object zone);
  Awaitable<OrProblem<Presence>> compare_zone(Object zone);
  /// Last of all. Never replaces one.
  Awaitable<OrProblem<Object>> create_deployment();

 private:
  /// True if that is the answer to the creation of the copy: nothing else proves that the destination has it.
  [[nodiscard]] bool is_copy(const Object& answer) const;
  [[nodiscard]] json::object arriving(const Object& zone) const;
  Awaitable<OrProblem<bool>> put(kube::Resource resource, json::object wanted);
  /// `present`: what is there, unless it is absent.
  Awaitable<OrProblem<Presence>> find_existing(kube::Resource resource, json::object wanted, Object& present);
  Awaitable<OrProblem<bool>> update(kube::Resource resource, json::object wanted, Object present);
  /// The name of another ClusterDeployment in that namespace of the destination, which may use a copy that is not
  /// ours alone; empty: there is none.
  Awaitable<kube::Result<std::string>> other_user(kube::Resource resource, const Object& present);
  Awaitable<OrProblem<bool>> replace(kube::Resource resource, json::object wanted, Object present);

  std::shared_ptr<Destination> destination_;
  const Object& deployment_;
  std::string relocator_;
  std::string source_;
};

}  // namespace hubferry::relocator
