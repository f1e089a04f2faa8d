#pragma once

#include "hubferry/async/types.hpp"

/// How long real hubs took, as recorded on Open Cluster Management v1.3.1 with Kubernetes 1.36.4 and the import
/// controllers of the multicluster engine 2.17 (branch backplane-2.17) and 5.x (main, August 2026), on two cores that
/// were busy. The limits of the suite are a multiple of it: a slower machine is no other behaviour.
namespace hubferry::behaviour::facts {

using async::Duration;
using namespace std::chrono_literals;

struct Fact {
  Duration seen;   // the longest of both versions
  Duration limit;  // how long the suite waits
};

/// Namespace, permissions, lease, bootstrap account, import Secret and works of an accepted cluster.
inline constexpr Fact import_prepared{2s, 30s};
/// A denial takes the agent's permission to renew its lease.
inline constexpr Fact denial_in_force{1s, 20s};
/// A deleted lease exists again.
inline constexpr Fact lease_created_again{200ms, 10s};
/// Available is Unknown this many lease periods after the last renewal; the hub may notice it one check later.
inline constexpr int lease_periods = 5;
/// With the gate ManagedClusterAutoApproval on; the controllers are rolled out anew first.
inline constexpr Fact auto_accepted{7s, 60s};
/// A request of a cluster's own bootstrap account is approved.
inline constexpr Fact import_account_approved{230ms, 15s};
/// The works of a cluster after its KlusterletConfig changed.
inline constexpr Fact config_applied{2s, 30s};
/// A KlusterletConfig's node placement, taken away.
inline constexpr Fact placement_replaced{4s, 30s};
/// All manifests are ReadOnly after disable-auto-import (5.x).
inline constexpr Fact made_read_only{900ms, 20s};
/// They are written again after its removal (5.x).
inline constexpr Fact written_again{2400ms, 30s};
/// A denied or unavailable cluster is deleted, and then its namespace.
inline constexpr Fact cluster_deleted{5s, 60s};
inline constexpr Fact namespace_deleted{12s, 90s};
/// A namespace goes after the ClusterDeployment that held it.
inline constexpr Fact held_namespace_deleted{7s, 60s};

/// A denied agent with two hubs has renewed its lease on the other, which approves it by itself.
inline constexpr Fact switched{8700ms, 90s};
/// A restarted agent has renewed its lease.
inline constexpr Fact restarted{3400ms, 60s};
/// An accepted agent that was denied, without another hub, renews its lease again.
inline constexpr Fact accepted_again{58s, 150s};

/// A work is on the cluster.
inline constexpr Fact work_applied{300ms, 30s};
/// A deleted work's objects are gone.
inline constexpr Fact work_deleted{7s, 60s};
/// A work with the same content on the new hub is a second owner.
inline constexpr Fact work_adopted{300ms, 30s};

/// How long the suite watches that something does not happen.
inline constexpr Duration watched{8s};

}  // namespace hubferry::behaviour::facts
