#pragma once

#include <memory>

#include "hubferry/hubagent/hub.hpp"
#include "hubferry/hubagent/source_hub.hpp"
#include "hubferry/hubagent/target_hub.hpp"

namespace hubferry::hubagent {

/// The agents that do the work on a hub themselves, through its API server.
/// Orders on clusters need Hub::run() beside them. An order's agent must live until the order has ended.
std::shared_ptr<SourceHub> make_source_hub(std::shared_ptr<Hub> hub);
std::shared_ptr<TargetHub> make_target_hub(std::shared_ptr<Hub> hub);

}  // namespace hubferry::hubagent
