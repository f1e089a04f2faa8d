#pragma once

#include <memory>
#include <string>

#include "app/cli/command.hpp"
#include "hubferry/hubagent/carried_resources.hpp"

namespace hubferry::app {

/// The flag --carried-resources: manager and plan must mean the same by it.
void add_carried_resources_flag(Command& command, std::string& file);

/// What that file adds to what always moves with a cluster; see parse_carried_resources(). Null: no file is named.
/// Throws kube::ConfigError, naming file and field.
std::shared_ptr<const hubagent::CarriedResources> read_carried_resources(const std::string& file);

}  // namespace hubferry::app
