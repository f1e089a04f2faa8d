#pragma once

namespace hubferry::sim {

/// Holds a deleted ManagedCluster until everything that the hub made for it is gone.
inline constexpr const char* cleanup_finalizer = "cluster.open-cluster-management.io/api-resource-cleanup";

inline constexpr const char* unreachable_taint = "cluster.open-cluster-management.io/unreachable";
inline constexpr const char* unavailable_taint = "cluster.open-cluster-management.io/unavailable";
inline constexpr const char* skip_clock_check_annotation =
    "registration.open-cluster-management.io/skip-clock-sync-check";

}  // namespace hubferry::sim
