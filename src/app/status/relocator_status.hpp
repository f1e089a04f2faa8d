#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::app {

/// All relocators, one per line.
std::vector<std::string> relocator_table(const std::vector<kube::Object>& relocators, const Terminal& terminal);

/// One relocator: its conditions, and those of `deployments` that it matches or moves, with their condition.
std::vector<std::string> relocator_details(const kube::Object& relocator, const std::vector<kube::Object>& deployments,
                                           const Terminal& terminal);

}  // namespace hubferry::app
