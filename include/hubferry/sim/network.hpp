#pragma once

#include <map>
#include <memory>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

/// Simulated servers by their URLs: what a kubeconfig leads to, without sockets and on virtual time.
///
/// connect() gives the direct API of the server behind the configuration's URL. As over HTTPS,
/// - a URL that nobody has, or a CA that did not sign the server's certificate, makes every call `unreachable`;
/// - who asks is decided at each call, from the token or the client certificate: one that is unknown, expired, revoked
///   (a token whose ServiceAccount is gone) or from another server's CA gives `unauthorized`.
/// Token files, passwords and exec plugins are not known here.
///
/// Lifetime: servers and the network may go before the Apis that came from it. Executor: that of the servers.
class Network {
 public:
  /// A server may have several URLs: its first is the one that config_for() names.
  void add(const std::string& url, Server& server);

  [[nodiscard]] std::shared_ptr<kube::Api> connect(const kube::ClientConfig& config) const;

  /// How `user` reaches a server of this network; kube::to_kubeconfig() makes a file of it.
  /// Throws std::invalid_argument when the server was not added.
  [[nodiscard]] kube::ClientConfig config_for(const Server& server, const User& user,
                                              bool by_certificate = false) const;
  /// The same without a credential: where the server is, and what it must show.
  [[nodiscard]] kube::ClientConfig address_of(const Server& server) const;

 private:
  std::map<std::string, std::shared_ptr<Core>, std::less<>> servers_;  // by URL, in one spelling
  std::map<const Core*, std::string> urls_;
};

}  // namespace hubferry::sim
