#include "hubferry/sim/hub_admission.hpp"

#include "hubferry/ocm/managed_cluster.hpp"

namespace hubferry::sim {

namespace {

const kube::Resource registered_clusters{"register.open-cluster-management.io", "v1", "managedclusters",
                                         "ManagedCluster", false};

bool accepts(const kube::json::object& cluster) {
  const auto* accepted = kube::find(cluster, {"spec", "hubAcceptsClient"});
  return accepted != nullptr && accepted->is_bool() && accepted->get_bool();
}

std::optional<std::string> check_acceptance(const AdmissionReview& review) {
  const bool before = review.before != nullptr && accepts(review.before->json());
  if (before || !accepts(review.after)) return std::nullopt;
  const kube::Key key{{}, std::string{kube::string_at(review.after, {"metadata", "name"})}};
  if (!review.may("update", registered_clusters, key, "accept"))
    return "user \"" + review.user.name + "\" cannot update the HubAcceptsClient field";
  const auto space = review.find(kube::resources::namespaces, key);
  if (space && space->is_being_deleted())
    return "cannot set HubAcceptsClient to true while the namespace " + key.name + " is being deleted";
  return std::nullopt;
}

}  // namespace

void guard_acceptance(Server& hub) {
  hub.add_admission(ocm::managed_clusters, check_acceptance);
}

}  // namespace hubferry::sim
