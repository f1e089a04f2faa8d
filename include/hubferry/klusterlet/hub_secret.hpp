#pragma once

#include <optional>
#include <string>

#include "hubferry/klusterlet/certificates.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::klusterlet {

/// What an agent holds of its hub: the content of `hub-kubeconfig-secret`, one member for each key. It is replaced as a
/// whole, never in parts.
struct HubSecret {
  std::string kubeconfig;   // names tls.crt and tls.key as files beside it
  std::string certificate;  // tls.crt
  obs::Secret key;          // tls.key
  std::string cluster_name;
  std::string agent_name;

  bool operator==(const HubSecret&) const = default;
};

/// The kubeconfig for the hub of this bootstrap kubeconfig: its server, authority and the name of its cluster stanza,
/// but not its credential.
std::string hub_kubeconfig(const kube::ClientConfig& bootstrap);

/// How to reach the hub with this secret. Throws kube::ConfigError.
kube::ClientConfig client_config(const HubSecret& secret);
/// The same for a secret that is known to be for the hub of this bootstrap kubeconfig: nothing is parsed again.
kube::ClientConfig client_config(const HubSecret& secret, const kube::ClientConfig& bootstrap);

/// Do both lead to the same hub? Server, authority, and the name of the cluster stanza, which lets an administrator
/// force a new registration with a hub that was rebuilt at the same address.
bool is_same_hub(const kube::ClientConfig& one, const kube::ClientConfig& other);

/// Why the secret cannot be used with the hub of `bootstrap`, in a sentence; nullopt when it can.
/// `config`: the secret's client_config().
std::optional<std::string> why_unusable(const HubSecret& secret, const kube::ClientConfig& config,
                                        const kube::ClientConfig& bootstrap, const Identity& identity, WallTime now);

}  // namespace hubferry::klusterlet
