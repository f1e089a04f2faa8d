#include "klusterlet/hub_selection.hpp"

#include <array>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::klusterlet {

namespace {

struct Permission {
  const kube::Resource& resource;
  const char* verb;
};

// In the order in which Open Cluster Management checks them.
const auto& needed_permissions() {
  using kube::resources::certificate_signing_requests;
  static const std::array<Permission, 6> permissions{{{ocm::managed_clusters, "create"},
                                                      {ocm::managed_clusters, "get"},
                                                      {certificate_signing_requests, "create"},
                                                      {certificate_signing_requests, "get"},
                                                      {certificate_signing_requests, "list"},
                                                      {certificate_signing_requests, "watch"}}};
  return permissions;
}

}  // namespace

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

namespace {

Verdict verdict_on(const kube::Object& cluster, const std::string& name) {
  if (acceptance_of_object(cluster) != Acceptance::denied) return {.valid = true, .registered = true};
  return {.reason = "it denies the cluster: hubAcceptsClient is false in ManagedCluster " + name};
}

}  // namespace

async::Awaitable<Verdict> probe(kube::Api& api, std::string cluster) {
  const auto& permissions = needed_permissions();
  std::vector<std::string> refusals(permissions.size());
  std::optional<kube::Result<kube::Object>> found;
  kube::Key key{{}, std::move(cluster)};
  auto review = [&](std::size_t index) -> async::Awaitable<> {
    const auto& permission = permissions[index];
    kube::Key any;
    auto allowed = co_await api.may(permission.verb, permission.resource, any);
    if (!allowed)
      refusals[index] = allowed.error().describe();
    else if (!*allowed)
      refusals[index] =
          std::string{"its credential is not allowed to "} + permission.verb + " " + permission.resource.display_name();
  };
  auto read = [&]() -> async::Awaitable<> { found.emplace(co_await api.get(ocm::managed_clusters, key)); };
  auto others = [&](async::TaskScope& scope) -> async::Awaitable<> {
    for (std::size_t index = 1; index < permissions.size(); ++index) scope.spawn(review(index));
    scope.spawn(read());
    co_return;
  };
  // One alone: thousands of agents do this while a hub is unreachable.
  co_await review(0);
  if (!refusals[0].empty()) co_return Verdict{.reason = std::move(refusals[0])};
  co_await async::with_scope(others);
  for (auto& refusal : refusals)
    if (!refusal.empty()) co_return Verdict{.reason = std::move(refusal)};
  if (*found) co_return verdict_on(**found, key.name);
  const auto& error = found->error();
  if (error.kind == kube::ErrorKind::not_found) co_return Verdict{.valid = true};
  co_return Verdict{.reason = error.describe()};
}

async::Awaitable<kube::Result<Verdict>> probe_with_certificate(kube::Api& api, std::string cluster) {
  kube::Key key{{}, std::move(cluster)};
  auto found = co_await api.get(ocm::managed_clusters, key);
  if (!found) co_return found.error();
  co_return verdict_on(*found, key.name);
}

}  // namespace hubferry::klusterlet
