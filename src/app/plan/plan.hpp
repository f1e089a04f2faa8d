#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"
#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/hubs/hubs.hpp"
#include "hubferry/kube/error.hpp"
#include "hubferry/kube/resource.hpp"

namespace hubferry::app {

/// What a migration asks for.
struct PlanRequest {
  std::string from;
  std::string to;
  std::optional<std::vector<std::string>> clusters;
  std::string placement;
  /// Of each stage, where the migration brings its own.
  std::optional<async::Duration> stage_timeout = {};
  /// What is wrong with it; empty: nothing.
  std::string timeout_problem = {};
};

/// Reads the request from a ManagedClusterMigration. Throws std::runtime_error that names the field.
PlanRequest plan_request_of(const kube::json::object& object);

/// Why something could not succeed.
struct PlanProblem {
  std::string hub;      // empty: it is the request itself
  std::string cluster;  // empty: it concerns all of them
  std::string reason;
  std::string message;
};

/// One object that would be copied.
struct PlannedObject {
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::size_t bytes = 0;
  bool with_status = false;
};

struct PlannedCluster {
  std::string name;
  std::vector<PlannedObject> objects;
};

/// What a migration would do.
struct Plan {
  PlanRequest request;
  std::vector<PlannedCluster> clusters;  // by name, as people count
  std::vector<PlanProblem> problems;     // those that concern no single cluster first, then by cluster
  async::Duration reading{0};            // how long it took to read what would be copied

  [[nodiscard]] bool can_succeed() const { return problems.empty() && !clusters.empty(); }
  [[nodiscard]] std::size_t objects() const;
  [[nodiscard]] std::size_t bytes() const;
  /// The objects by kind: "Secret (v1)".
  [[nodiscard]] std::map<std::string, std::size_t> kinds() const;
  /// The problems of one cluster.
  [[nodiscard]] std::vector<const PlanProblem*> problems_of(const std::string& cluster) const;
};

/// Does the target serve that kind?
using Serves = std::function<async::Awaitable<kube::Result<bool>>(kube::Resource)>;

/// Finds out what a migration would do, as the controller would, and changes nothing: both hubs are only read.
/// Problems are part of the plan, all at once: what is wrong with one hub keeps nobody from looking at the other.
/// `carried`: the kinds that `hubs` copy. Cancellation: terminal.
async::Awaitable<Plan> make_plan(hubs::Hubs& hubs, PlanRequest request, Serves target_serves, async::Clock& clock,
                                 const hubagent::CarriedResources& carried);

}  // namespace hubferry::app
