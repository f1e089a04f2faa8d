#pragma once

#include <map>
#include <set>

#include "hubagent/klusterlet_work.hpp"
#include "hubagent/requests.hpp"
#include "hubagent/sign_of_life.hpp"
#include "hubferry/kube/wait_for_object.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

/// When a cluster counts as arrived on the target. Its ManagedCluster is the one that this migration created (by our
/// label), without any status: Joined and Available on it can only come from the cluster itself. To exclude outdated
/// conditions, a sign of life after the cut-over is required too: the agent has renewed its lease since. On a hub with
/// ACM, which creates one for every cluster, the agent must also have applied the
/// klusterlet's ManifestWork, which gives it this hub's own bootstrap kubeconfig; elsewhere only if there is one. A
/// work whose manifests are ReadOnly is reported as Applied although nothing was applied: it proves nothing. What is
/// applied restarts the agent, so its lease must have been renewed after that. Everywhere it must have applied the
/// copied works that it had applied on the source: until then it may still process the source's, and would delete what
/// they deployed when the source is cleaned.
namespace hubferry::hubagent {

/// As far as the ManagedCluster shows: it is the migration's, accepted, and its agent has joined.
bool has_joined(const ocm::ManagedCluster& cluster, const MigrationRef& migration);
/// Joined, and Available.
bool is_available(const ocm::ManagedCluster& cluster, const MigrationRef& migration);

/// What a hub requires of a cluster's klusterlet work before the cluster counts as arrived.
enum class WorkRule { none, applied_if_exists, applied };
Awaitable<Result<WorkRule>> work_rule(const Hub& hub);
/// True if the agent has applied the current version of the work; null: there is none.
bool satisfies(WorkRule rule, const KlusterletWork* work);

/// Removes the migration's disable-auto-import from a cluster that has joined: as long as it is there, the import
/// controller may keep its works ReadOnly.
Awaitable<Result<>> enable_import(Hub& hub, MigrationRef migration, std::string cluster);

/// Gets null when there is no such work.
using WorkPredicate = std::function<bool(const KlusterletWork* work)>;
/// Waits until `predicate` holds for the klusterlet's ManifestWork. By the hub's shared watch where that runs: what it
/// shows is not newer than the server, so the first look may be at what was; then the work is read after each turn.
/// Takes slots of its own.
Awaitable<Result<>> wait_for_klusterlet_work(Hub& hub, MigrationRef migration, std::string cluster,
                                             WorkPredicate predicate);
/// Waits until there is one. The hub's import controller creates it soon: the shared watch is given a turn to show it
/// before anything is read.
Awaitable<Result<>> wait_for_klusterlet_work(Hub& hub, MigrationRef migration, std::string cluster);

/// Waits until the agent has applied the copied works that it had applied on the source; one that is deleted meanwhile
/// is not waited for. One list, then a watch for each that is missing. Takes slots of its own.
Awaitable<Result<>> wait_for_copied_works(Hub& hub, MigrationRef migration, std::string cluster);

/// The clusters for which the migration has copied works, by one list of the hub; absent: it has too many, or they may
/// not be listed. No more are copied while clusters arrive.
Awaitable<std::optional<std::set<std::string>>> clusters_with_copied_works(const Hub& hub, MigrationRef migration);

/// True if the agent has applied all of that already: the klusterlet's ManifestWork as `rule` wants it, and, with
/// `copied`, the copied ones. At most one request. The klusterlet's may be as the hub's shared watch shows it: Cleaning
/// proves it anew. Takes a slot of its own.
Awaitable<Result<bool>> has_applied_works(Hub& hub, MigrationRef migration, std::string cluster, WorkRule rule,
                                          bool copied);

/// Waits until the cluster's lease proves that its agent is here. Takes slots of its own.
Awaitable<Result<>> wait_for_sign_of_life(Hub& hub, MigrationRef migration, std::string cluster, async::WallTime since);

/// ManagedClusters and Leases of many clusters, by one list of each. What is not in it may exist nevertheless.
struct ListedClusters {
  async::TimePoint at{};  // it is used for a few seconds
  std::map<std::string, Object> clusters;
  std::map<std::string, Object> leases;
};
/// True if one list of all clusters of a migration is better than to read `wanted` of them one by one.
bool is_worth_listing(const Hub& hub, const MigrationRef& migration, std::size_t wanted);
/// Leaves out lists that would return much more than is wanted.
Awaitable<ListedClusters> list_for_arrival(Hub& hub, MigrationRef migration, std::size_t wanted);

/// The first of the criteria: is_available().
Awaitable<Result<>> check_available(const Hub& hub, MigrationRef migration, std::string cluster,
                                    const ListedClusters& listed);

/// All criteria at once, read from the API server, or listed just before. Errors: cluster_not_found;
/// cluster_not_available, with what is missing; for one whose agent has renewed its lease after `since`:
/// cluster_unhealthy, works_not_applied; unknown, for one whose lease is ahead and says nothing yet (SeenLeases).
Awaitable<Result<>> check_arrival(const Hub& hub, MigrationRef migration, std::string cluster, async::WallTime since,
                                  WorkRule rule, const ListedClusters& listed);

/// Watches the clusters of a hub renew their leases: the one sign of life that a hub cannot give on a cluster's behalf.
/// (The hub creates a lease, with the time of its creation; after that only the cluster renews it.)
/// Lifetime: outlives run() and all waiters.
class Heartbeats {
 public:
  using Leases = kube::Cache<Object>;

  /// `shared`: the hub's shared watch, if it runs. What it shows may be from before this call: where a renewal must be
  /// from now on, a watch of its own begins with a list that is not.
  explicit Heartbeats(Hub& hub, std::shared_ptr<Leases> shared = nullptr);

  /// Watches the leases until cancelled: one watch for all clusters.
  Awaitable<> run();
  /// As far as seen: false may be outdated. False for a lease that is ahead.
  [[nodiscard]] bool is_alive(const std::string& cluster, async::WallTime since, async::WallTime now) const;
  Awaitable<> wait_for_lease(std::string cluster);
  /// How often the agent has started since run() did, as far as seen: an agent that runs renews its lease once in a
  /// period, one that has just started does so at once.
  [[nodiscard]] std::size_t starts(const std::string& cluster) const;
  /// Waits for a renewal after this call.
  Awaitable<> wait_for_renewal(std::string cluster);
  /// Waits until there is another lease, or this one was renewed.
  Awaitable<> wait_for_renewal(std::string cluster, Object known);

 private:
  async::Clock& clock_;
  bool shared_;  // somebody else runs it
  std::shared_ptr<Leases> leases_;
  std::map<std::string, std::size_t> starts_;
};

}  // namespace hubferry::hubagent
