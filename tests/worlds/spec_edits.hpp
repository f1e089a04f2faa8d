#pragma once

#include <string>
#include <vector>

#include "hubferry/sim/virtual_world.hpp"

namespace hubferry::worlds {

/// What people may make of the spec of a migration between these hubs: each field, with values that are valid and
/// others that are not. Merge patches.
std::vector<boost::json::object> spec_edits(const std::string& source, const std::string& target);

/// How much of a migration's spec the API server checks.
enum class Checks {
  all,
  no_rules,   // as one that knows no CEL: what it lets through then, the manager has to bear
  no_schema,  // any value in any field, as of an older or an edited CRD
};
/// Takes the other checks out of the CRD of migrations. Throws std::runtime_error.
void weaken_checks(sim::VirtualWorld& world, Checks left);

}  // namespace hubferry::worlds
