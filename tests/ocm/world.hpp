#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"
#include "ocm/differences.hpp"

namespace hubferry::behaviour {

using namespace kube;
using namespace std::chrono_literals;

/// What a hub has beside Open Cluster Management's own controllers.
enum class ImportController { none, mce_2_17, mce_5_x };

/// Two hubs, and a cluster that the first one manages: simulated, or real ones that somebody has started. As admin
/// everywhere.
class OcmWorld {
 public:
  virtual ~OcmWorld() = default;

  virtual Api& hub1() = 0;
  virtual Api& hub2() = 0;
  /// The managed cluster's name, and its own API server.
  [[nodiscard]] virtual const std::string& cluster() const = 0;
  virtual Api& cluster_api() = 0;
  /// The address of a hub, without a credential.
  virtual ClientConfig address_of(Api& hub) = 0;
  virtual std::shared_ptr<Api> connect(ClientConfig config) = 0;
  /// Restarts the cluster's agents, as if their pods were deleted.
  virtual Awaitable<> restart_agent() = 0;

  [[nodiscard]] virtual ImportController import_controller() const = 0;
  /// How long what a hub has deployed stays on a cluster that has left it.
  [[nodiscard]] virtual Duration eviction_grace() const = 0;
  [[nodiscard]] virtual bool differs(Difference difference) const = 0;
  virtual Env env() = 0;
  virtual void run(Awaitable<> task) = 0;
};

struct Backend {
  std::string name;
  std::function<std::shared_ptr<OcmWorld>()> make;

  friend void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }
};

}  // namespace hubferry::behaviour
