#pragma once

#include "app/cli/terminal.hpp"
#include "app/plan/plan.hpp"

namespace hubferry::app {

/// The plan for people. `list_objects`: each object by name, not only how many.
std::vector<std::string> plan_text(const Plan& plan, bool list_objects, const Terminal& terminal);

/// {"possible", "from", "to", "problems", "clusters": [{"name", "objects": […], "problems": […]}], "estimate"}.
/// `problems` at the top are all of them; a cluster's are there again.
kube::json::object plan_json(const Plan& plan);

/// How long the manager needs to write what it would copy, going by how long reading it took. Clusters' own time to
/// change hubs is not in it: nobody knows that beforehand.
async::Duration writing_time(const Plan& plan);

/// "4.2 KiB"
std::string size_text(std::size_t bytes);

}  // namespace hubferry::app
