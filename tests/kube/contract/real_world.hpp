#pragma once

#include <memory>
#include <string>

#include "kube/contract/contract.hpp"

namespace hubferry::contract {

/// The real kube-apiserver of tests/real-kube/run, through our HTTP client. Throws when there is none.
std::unique_ptr<ContractWorld> make_real_world();

/// The admin's kubeconfig of that server.
std::string real_kubeconfig();

}  // namespace hubferry::contract
