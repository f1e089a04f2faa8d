#pragma once

#include <memory>

#include "hubferry/kube/api.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

/// kube::Api straight into the store, as `user`.
std::unique_ptr<kube::Api> make_direct_api(std::shared_ptr<Core> core, User user);

}  // namespace hubferry::sim
