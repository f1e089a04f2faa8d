#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "hubferry/relocator/plan.hpp"

namespace hubferry::app {

/// The plan as text. `list_objects`: list each object, not only their number.
std::vector<std::string> relocation_plan_text(const relocator::RelocationPlan& plan, bool list_objects,
                                              const Terminal& terminal);

/// {"possible", "relocator", "problem", "clusterDeployments": [{"namespace", "name", "objects", "problem",
/// "onDestination", "missingSelectorSyncSets"}]}
kube::json::object relocation_plan_json(const relocator::RelocationPlan& plan);

}  // namespace hubferry::app
