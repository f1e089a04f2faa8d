#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/server_client.hpp"
#include "hubferry/hubagent/migration_ref.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::app {

/// A hub as the global hub knows it.
struct RegisteredHub {
  std::string name;
  bool has_cluster = false;            // there is a ManagedCluster of that name
  bool is_hub = false;                 // and it is a hub
  bool is_global_hub = false;          // the global hub itself
  bool available = false;              // its ManagedCluster is Available
  std::vector<std::string> secrets{};  // with its kubeconfig; the manager uses the first
  std::optional<kube::ClientConfig> config{};
  std::string problem{};  // why there is no usable kubeconfig; never holds a credential
};

/// The hubs, and whatever has a hub's Secret; by name, in natural order. Throws std::runtime_error without access.
async::Awaitable<std::vector<RegisteredHub>> read_hubs(kube::Api& global);

/// Throws std::runtime_error if there is none of that name.
const RegisteredHub& select_hub(const std::vector<RegisteredHub>& hubs, const std::string& name);

/// A connection with the kubeconfig that the manager uses. Null without one. May throw kube::ConfigError.
std::shared_ptr<kube::Api> connect_to(ServerClient& client, const RegisteredHub& hub);

/// The names of a hub's clusters with these labels, sorted; never the hub itself. Throws std::runtime_error if the hub
/// cannot be read, or if there is none.
async::Awaitable<hubagent::ClusterNames> select_clusters(ServerClient& client, std::string hub, std::string selector);

}  // namespace hubferry::app
