#pragma once

#include <optional>
#include <string>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::ocm {

/// The signer of agents' certificates.
inline constexpr const char* agent_signer = "kubernetes.io/kube-apiserver-client";

/// What a CertificateSigningRequest of a cluster's agent asks for.
struct AgentRequest {
  std::string cluster;
  std::string agent;
  std::string common_name;
};

/// Recognizes a request if its label, its signer, its usages and the subject of its certificate agree; nullopt for any
/// other, which is left for an administrator. The comparison is exact: a cluster must not get the certificate of
/// another whose name begins with its own, nor one of another group.
std::optional<AgentRequest> read_agent_request(const kube::Object& request);

/// True if the request is approved or denied already.
bool is_decided(const kube::Object& request);

/// The condition that approves a request.
kube::json::object approval_condition(std::string_view reason, std::string_view message, async::WallTime now);

}  // namespace hubferry::ocm
