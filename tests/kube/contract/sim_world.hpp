#pragma once

#include <memory>

#include "kube/contract/contract.hpp"

namespace hubferry::contract {

/// The simulated server by kube::Api in the same thread, on virtual time.
std::unique_ptr<ContractWorld> make_direct_sim_world();
/// The simulated server over HTTPS on loopback, by our own client.
std::unique_ptr<ContractWorld> make_http_sim_world();

}  // namespace hubferry::contract
