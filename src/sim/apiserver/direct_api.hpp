#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "hubferry/kube/api.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

/// Says who is asking, at each call; nobody: unauthorized. The core outlives it.
using Identify = std::function<std::optional<User>()>;

/// kube::Api straight into the store.
std::unique_ptr<kube::Api> make_direct_api(std::shared_ptr<Core> core, Identify identify);
std::unique_ptr<kube::Api> make_direct_api(std::shared_ptr<Core> core, User user);

}  // namespace hubferry::sim
