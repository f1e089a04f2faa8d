#pragma once

#include <optional>
#include <string>

#include "hubferry/kube/object.hpp"

namespace hubferry::sim {

/// A CertificateSigningRequest by which the agent of a cluster asks for its identity.
struct AgentRequest {
  std::string cluster;
  std::string agent;
  std::string common_name;
};

/// Whose request it is, when its label, its signer and its subject all say the same; else nothing, and it is left for
/// people to decide. Exact: a cluster must not get the certificate of another whose name begins with its own.
std::optional<AgentRequest> recognise_request(const kube::Object& request);

}  // namespace hubferry::sim
