#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hubferry/async/wait_list.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::klusterlet {

using async::Awaitable;
using async::Duration;

/// Kinds of the managed cluster.
extern const kube::Resource cluster_claims;  // cluster.open-cluster-management.io/v1alpha1
extern const kube::Resource nodes;

/// What an agent reports about its own cluster in the ManagedCluster's status, besides health and version.
struct ClusterFacts {
  using Claim = std::pair<std::string, std::string>;  // name and value
  using Quantities = std::map<std::string, std::string>;
  struct Resources {
    Quantities capacity;     // the sum over all nodes
    Quantities allocatable;  // the sum over those that are schedulable

    bool operator==(const Resources&) const = default;
  };

  /// Absent: not known, the hub keeps what it has.
  std::optional<std::vector<Claim>> claims;  // in the order in which they are reported
  std::optional<Resources> resources;

  bool operator==(const ClusterFacts&) const = default;

  /// Puts them into the status of a ManagedCluster; true if that changed it. Entries of `capacity` that are not ours
  /// stay: other components may add some.
  bool put_into(kube::json::object& status) const;
};

struct ClusterFactsOptions {
  /// At most this many ClusterClaims are reported besides the reserved ones.
  std::size_t most_custom_claims = 20;
  /// Claims whose names end so are reserved too.
  std::vector<std::string> reserved_suffixes;
  /// Changes within this time are reported together: nodes of a cluster often change one after another, and each report
  /// is a write on the hub.
  Duration settle = std::chrono::seconds{5};
};

/// Follows the ClusterClaims and Nodes of the agent's own cluster by watches; only what is reported of them is kept.
///
/// ClusterClaims with the label open-cluster-management.io/spoke-only stay on the cluster. The reserved ones (id.k8s.io
/// and those of open-cluster-management.io) come first and are never left out. A cluster without the CRD of
/// ClusterClaims has none to report. Without permission the facts stay absent.
///
/// Lifetime: the api and what `env` refers to outlive it; it outlives its agents. Executor: the agents' loop.
/// Cancellation: terminal. Errors: retried, never thrown.
class ClusterFactsWatch {
 public:
  ClusterFactsWatch(kube::Api& own_cluster, ClusterFactsOptions options, kube::Env env);
  ClusterFactsWatch(const ClusterFactsWatch&) = delete;
  ClusterFactsWatch& operator=(const ClusterFactsWatch&) = delete;
  ~ClusterFactsWatch();

  Awaitable<> run();

  [[nodiscard]] const ClusterFacts& facts() const { return facts_; }
  /// Counts changes of facts(); 0: none known yet.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// Returns as soon as version() is no longer `seen`.
  Awaitable<> wait_for_change(std::uint64_t seen);

 private:
  class Caches;

  Awaitable<> follow_claims();
  Awaitable<> publish();
  [[nodiscard]] std::vector<ClusterFacts::Claim> claims_to_report();
  [[nodiscard]] ClusterFacts::Resources sum_of_nodes() const;

  kube::Api& api_;
  ClusterFactsOptions options_;
  kube::Env env_;
  std::unique_ptr<Caches> caches_;
  ClusterFacts facts_;
  std::uint64_t version_ = 0;
  async::WaitList waiters_;
  std::size_t left_out_ = 0;  // claims beyond the limit, as last logged
};

}  // namespace hubferry::klusterlet
