#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "hubferry/async/clock.hpp"
#include "hubferry/hubagent/bundle.hpp"
#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/migration/validation.hpp"

namespace hubferry::app {

/// Reads the spec of a ManagedClusterMigration. Throws std::runtime_error if it is another kind, or if
/// spec.includedManagedClusters is not a list of strings.
migration::MigrationSpec plan_spec_of(const kube::json::object& object);

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
  std::vector<hubagent::StayingObject> staying{};  // the user's objects that would not be copied
};

/// The effect of a migration.
struct Plan {
  migration::MigrationSpec spec;
  std::vector<PlannedCluster> clusters;      // by name, in natural order
  std::vector<migration::Problem> problems;  // those of no single cluster first, then by cluster
  async::Duration reading{0};                // time to read the objects to copy

  [[nodiscard]] bool can_succeed() const { return problems.empty() && !clusters.empty(); }
  [[nodiscard]] std::size_t objects() const;
  [[nodiscard]] std::size_t bytes() const;
  /// The objects by kind: "Secret (v1)".
  [[nodiscard]] std::map<std::string, std::size_t> kinds() const;
};

/// Whether the target serves that kind.
using Serves = std::function<async::Awaitable<kube::Result<bool>>(kube::Resource)>;

/// Validates a migration by the controller's own rules, and reads what it would copy. Both hubs are only read. Reports
/// all problems at once: a problem of one hub does not keep the other from being checked. `carried`: the kinds that
/// `hubs` copy. Cancellation: terminal.
async::Awaitable<Plan> make_plan(hubs::Hubs& hubs, migration::MigrationSpec spec, Serves target_serves,
                                 async::Clock& clock, const hubagent::CarriedResources& carried);

/// The plan as text. `list_objects`: list each object, not only the counts, and each cluster and problem of long lists,
/// which are grouped otherwise.
std::vector<std::string> plan_text(const Plan& plan, bool list_objects, const Terminal& terminal);

/// {"possible", "from", "to", "problems", "clusters": [{"name", "objects": […], "staying": […], "problems": […]}],
/// "estimate"}.
/// The top-level `problems` include those of the clusters.
kube::json::object plan_json(const Plan& plan);

/// Estimated time to write the copied objects, from the time to read them. The time that the agents need to switch hubs
/// is unknown and not included.
async::Duration writing_time(const Plan& plan);

/// "4.2 KiB"
std::string size_text(std::size_t bytes);

}  // namespace hubferry::app
