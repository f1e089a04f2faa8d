#include "klusterlet/probe.hpp"

#include <array>

namespace hubferry::klusterlet {

namespace {

struct Right {
  const kube::Resource& resource;
  const char* verb;
};

// In the order in which Open Cluster Management asks.
const auto& needed_rights() {
  using kube::resources::certificate_signing_requests;
  static const std::array<Right, 6> rights{{{ocm::managed_clusters, "create"},
                                            {ocm::managed_clusters, "get"},
                                            {certificate_signing_requests, "create"},
                                            {certificate_signing_requests, "get"},
                                            {certificate_signing_requests, "list"},
                                            {certificate_signing_requests, "watch"}}};
  return rights;
}

}  // namespace

async::Awaitable<Verdict> probe(kube::Api& api, std::string cluster) {
  for (const auto& right : needed_rights()) {
    kube::Key any;
    auto allowed = co_await api.may(right.verb, right.resource, any);
    if (!allowed) co_return Verdict{false, allowed.error().describe(), false};
    if (!*allowed)
      co_return Verdict{
          false, std::string{"its credential may not "} + right.verb + " " + right.resource.display_name(), false};
  }
  kube::Key key{{}, std::move(cluster)};
  auto found = co_await api.get(ocm::managed_clusters, key);
  if (!found && found.error().kind == kube::ErrorKind::not_found) co_return Verdict{true, {}, false};
  if (!found) co_return Verdict{false, found.error().describe(), false};
  if (acceptance_of_object(*found) == Acceptance::denied)
    co_return Verdict{false, "it denies us: hubAcceptsClient is false in ManagedCluster " + key.name, false};
  co_return Verdict{true, {}, true};
}

}  // namespace hubferry::klusterlet
