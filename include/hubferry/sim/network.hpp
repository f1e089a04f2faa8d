#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::klusterlet {
class KeySource;
}

namespace hubferry::sim {

class KeyPool;

/// Simulated servers by URL: connects kubeconfigs to servers without sockets, on virtual time.
///
/// connect() returns the direct API of the server with the configuration's URL. As over HTTPS,
/// - an unknown URL, or a CA that did not sign the server's certificate, makes every call `unreachable`;
/// - each call is authenticated, by the token or the client certificate: one that is unknown, expired, revoked (a token
///   whose ServiceAccount was deleted) or from another server's CA gives `unauthorized`.
/// Token files, passwords and exec plugins are not supported.
///
/// Lifetime: the Apis may outlive the network and its servers. Executor: that of the servers.
class Network {
 public:
  Network();

  /// A server may have several URLs: config_for() uses the first.
  void add(const std::string& url, Server& server);

  [[nodiscard]] std::shared_ptr<kube::Api> connect(const kube::ClientConfig& config) const;

  /// What stands between the clients and a server, such as faults of the network: applied to each new connection.
  using Intercept = std::function<std::shared_ptr<kube::Api>(std::shared_ptr<kube::Api> connection)>;
  void intercept(Intercept intercept) { intercept_ = std::move(intercept); }

  /// A client configuration for `user`; kube::to_kubeconfig() makes a file of it.
  /// Throws std::invalid_argument if the server was not added.
  [[nodiscard]] kube::ClientConfig config_for(const Server& server, const User& user,
                                              bool by_certificate = false) const;
  /// The same without a credential: only URL and CA.
  [[nodiscard]] kube::ClientConfig address_of(const Server& server) const;

  /// For the agents of simulated clusters: they share some keys, which the servers recognize.
  [[nodiscard]] klusterlet::KeySource& keys() const;
  /// Makes these keys now, for worlds that are cloned, instead of each when it is first used.
  void make_keys();

 private:
  std::shared_ptr<KeyPool> keys_;
  std::map<std::string, std::shared_ptr<Core>, std::less<>> servers_;  // by normalized URL
  std::map<const Core*, std::string> urls_;
  Intercept intercept_;
};

}  // namespace hubferry::sim
