#pragma once

#include <memory>
#include <string>

#include "hubferry/hubagent/source_hub.hpp"
#include "hubferry/hubagent/target_hub.hpp"

namespace hubferry::hubs {

/// What the global hub knows of a hub.
struct HubInfo {
  std::string name;
  bool exists = false;     // there is a ManagedCluster of that name
  bool available = false;  // its condition ManagedClusterConditionAvailable is True; the global hub itself always is
  bool is_hub = false;     // it carries a hub's marks
  /// How clusters reach its API server: from its ManagedCluster's client configuration, else from its kubeconfig.
  std::string server_url;
  std::string ca_pem;
};

/// The hubs there are, and the way to each: orders go to `source()` and `target()`, wherever their agents run.
/// Executor: the control loop. Lifetime: the pointers it gives out stay valid; orders to a hub that has since gone fail
/// as unreachable.
class Hubs {
 public:
  virtual ~Hubs() = default;

  /// Waits for the first look at the global hub; then answers from the cache.
  virtual async::Awaitable<HubInfo> find(std::string hub) = 0;
  /// Errors: not_found for no such hub; unreachable for one without a usable way to it. The message says what is
  /// missing, for people.
  virtual kube::Result<std::shared_ptr<hubagent::SourceHub>> source(const std::string& hub) = 0;
  virtual kube::Result<std::shared_ptr<hubagent::TargetHub>> target(const std::string& hub) = 0;
};

}  // namespace hubferry::hubs
