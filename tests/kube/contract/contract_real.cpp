// The contract on a real kube-apiserver.
#include "kube/contract/real_world.hpp"

namespace hubferry::contract {

const std::vector<Backend> backends{{"KubeApiserver", make_real_world}};

INSTANTIATE_CONTRACT(backends);

}  // namespace hubferry::contract
