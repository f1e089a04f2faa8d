#pragma once

#include <string>

#include "hubferry/kube/config.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

/// Where the server is found under `url`, and what it must show; without a credential.
kube::ClientConfig describe_server(Core& core, const std::string& url);

/// Lets `user` in: by a token that is valid for ever, or by a client certificate.
void add_credential(kube::ClientConfig& config, Core& core, const User& user, bool by_certificate);

}  // namespace hubferry::sim
