#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

/// What each cluster consists of.
enum class FleetKind {
  mixed,  // as years of use leave it: some clusters were installed by Hive, some run on bare metal
  small,  // ManagedCluster and KlusterletAddonConfig, and nothing else that moves with it
  telco,  // installed by Hive from an image on three machines: ClusterDeployment, ImageClusterInstall, BareMetalHosts,
          // firmware settings, twelve Secrets
};

/// A fleet of managed clusters with the objects that hubs have for them.
struct FleetPlan {
  std::size_t clusters = 0;
  FleetKind kind = FleetKind::mixed;
  /// More Secrets for each cluster, which move with it.
  std::size_t secrets = 0;
  std::string prefix = "cluster-";
  std::size_t first = 1;  // cluster-00001
  std::uint64_t seed = 1;
  /// Of a mixed fleet: the shares of clusters that Hive installed (ClusterDeployment, its Secrets), and of those on
  /// bare metal (BareMetalHosts, their BMC Secrets, firmware settings, ImageClusterInstall).
  double installed = 0.1;
  double bare_metal = 0.1;
  /// How many clusters are created concurrently.
  std::size_t parallel = 16;
};

/// One cluster's objects, in the order in which they are created.
struct FleetObject {
  kube::Resource resource;
  kube::json::object object;
  kube::json::object status;  // empty: not written
};

/// The names of the plan's clusters, in order.
std::vector<std::string> fleet_names(const FleetPlan& plan);

/// All objects of one cluster of the plan: its namespace, ManagedCluster (joined and available), KlusterletAddonConfig,
/// Secrets and ConfigMaps, and those of its kind of installation. The same plan, index and time give the same objects.
std::vector<FleetObject> fleet_objects(const FleetPlan& plan, std::size_t index, async::WallTime now);

/// Creates them all; existing objects are not changed. The hub's controllers add the rest (permissions, leases,
/// import), and agents keep the clusters available. Errors: throws std::runtime_error that names the first object that
/// could not be created.
kube::Awaitable<> create_fleet(kube::Api& hub, FleetPlan plan, kube::Env env);

}  // namespace hubferry::sim
