#include "klusterlet/hub_selection.hpp"

#include "hubferry/ocm/resources.hpp"

namespace hubferry::klusterlet {

Acceptance acceptance_of(const ocm::ManagedCluster& cluster) {
  if (cluster.hub_accepts_client()) return Acceptance::accepted;
  // The hub writes this condition when it first accepts; after a denial it stays, True until all work is gone, then
  // False. A cluster that was never reviewed has none.
  if (cluster.condition(ocm::names::accepted)) return Acceptance::denied;
  if (cluster.annotation(ocm::names::accepted_on_annotation)) return Acceptance::denied;
  return Acceptance::pending;
}

Acceptance acceptance_of_object(const kube::Object& cluster) {
  const auto decoded = ocm::managed_cluster_decoder().from_object(cluster);
  if (!decoded) return Acceptance::pending;
  return acceptance_of(*static_cast<const ocm::ManagedCluster*>(decoded->object.get()));
}

HubSelection::HubSelection(std::vector<Candidate> candidates, std::string_view current_server)
    : candidates_(std::move(candidates)), reasons_(candidates_.size()) {
  // The current hub comes first, those that failed recently come last; the others keep their order.
  std::vector<std::size_t> last;
  std::optional<std::size_t> stay;
  for (std::size_t index = 0; index < candidates_.size(); ++index) {
    const auto& candidate = candidates_[index];
    if (!candidate.unreadable.empty())
      reasons_[index] = candidate.unreadable;
    else if (candidate.demoted)
      last.push_back(index);
    else if (!stay && !current_server.empty() && candidate.server == current_server)
      stay = index;
    else
      order_.push_back(index);
  }
  if (stay) order_.insert(order_.begin(), *stay);
  order_.insert(order_.end(), last.begin(), last.end());
}

std::optional<std::size_t> HubSelection::next() {
  if (selected_ || probed_ == order_.size()) return std::nullopt;
  return order_[probed_++];
}

void HubSelection::report(std::size_t index, Verdict verdict) {
  if (verdict.valid && candidates_[index].fallback && !verdict.registered)
    verdict = {.reason = "the cluster was moved away from it, and its ManagedCluster is not there any more"};
  if (verdict.valid) {
    selected_ = index;
    verdict_ = std::move(verdict);
  } else {
    reasons_[index] = std::move(verdict.reason);
  }
}

std::string HubSelection::explain(std::string_view cluster) const {
  if (candidates_.empty()) return "no bootstrap kubeconfig for cluster " + std::string{cluster};
  std::string text = "no hub can be selected for cluster " + std::string{cluster} + ":";
  for (std::size_t index = 0; index < candidates_.size(); ++index)
    text += (index == 0 ? " " : "; ") + candidates_[index].name + ": " + reasons_[index];
  return text;
}

}  // namespace hubferry::klusterlet
