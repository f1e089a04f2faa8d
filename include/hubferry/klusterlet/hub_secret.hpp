#pragma once

#include <optional>
#include <string>

#include "hubferry/klusterlet/certificates.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::klusterlet {

/// An agent's credential for its hub: the content of `hub-kubeconfig-secret`, one member per key. It is always replaced
/// as a whole.
struct HubSecret {
  std::string kubeconfig;   // refers to tls.crt and tls.key as files beside it
  std::string certificate;  // tls.crt
  obs::Secret key;          // tls.key
  std::string cluster_name;
  std::string agent_name;

  bool operator==(const HubSecret&) const = default;
};

/// The kubeconfig for the hub of this bootstrap kubeconfig: its server, CA and cluster name, but not its credential.
std::string hub_kubeconfig(const kube::ClientConfig& bootstrap);

/// The client configuration for the hub with this secret. Throws kube::ConfigError.
kube::ClientConfig client_config(const HubSecret& secret);
/// The same for a secret that is known to belong to the hub of this bootstrap kubeconfig, without parsing.
kube::ClientConfig client_config(const HubSecret& secret, const kube::ClientConfig& bootstrap);

/// The URL of a hub in the one spelling that tells it from others: another tool may write a slash at its end, the
/// default port or capital letters. Throws kube::ConfigError.
std::string hub_url(const std::string& server);

/// True if both configurations are for the same hub: same server and cluster name. By changing the cluster name an
/// administrator can force a new registration with a hub that was rebuilt at the same address.
bool is_same_hub(const kube::ClientConfig& one, const kube::ClientConfig& other);
/// True if they lead there in the same way: same CA and proxy. A rotated CA is no other hub, but needs a new client.
bool is_reached_alike(const kube::ClientConfig& one, const kube::ClientConfig& other);

/// Why the secret cannot be used with the hub of `bootstrap`; nullopt if it can be tried. Whether its certificate has
/// expired is for the hub to say: our clock may be wrong.
/// `config`: the secret's client_config().
std::optional<std::string> why_unusable(const HubSecret& secret, const kube::ClientConfig& config,
                                        const kube::ClientConfig& bootstrap, const Identity& identity,
                                        KeySource& keys = fresh_keys());

}  // namespace hubferry::klusterlet
