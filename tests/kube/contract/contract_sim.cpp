// The contract on the simulated server, over HTTP and directly.
#include "kube/contract/sim_world.hpp"

namespace hubferry::contract {

const std::vector<Backend> backends{{"Direct", make_direct_sim_world}, {"Http", make_http_sim_world}};

INSTANTIATE_CONTRACT(backends);

}  // namespace hubferry::contract
