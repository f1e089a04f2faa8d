#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "hubferry/kube/config.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::sim {

struct HttpOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  bool tls = true;
  /// Who asks without a credential. Nobody: 401.
  std::optional<User> anonymous;
  /// A watcher that takes nothing for this long is cut off.
  async::Duration write_timeout = std::chrono::seconds{30};
  /// Further clients wait until one of these has gone.
  std::size_t most_connections = 20'000;
};

/// A simulated server's frontend for real clients: HTTP(S) on a socket, into the same store as Server::api().
///
/// It listens from its construction on, and answers while serve() runs.
/// Lifetime: `server` outlives it. Executor: the loop of serve(), which must be the server's only one: with a frontend
/// in a thread of its own, all calls to the Server belong into that thread.
class HttpFrontend {
 public:
  /// Throws system_error when it cannot listen there.
  HttpFrontend(Server& server, async::Executor executor, HttpOptions options);
  HttpFrontend(const HttpFrontend&) = delete;
  HttpFrontend& operator=(const HttpFrontend&) = delete;
  ~HttpFrontend();

  /// Serves until cancelled; then all connections are closed before it returns.
  async::Awaitable<> serve();

  [[nodiscard]] std::uint16_t port() const;
  /// "https://127.0.0.1:6443"
  [[nodiscard]] std::string url() const;
  /// How `user` gets in: by a bearer token, or by a client certificate (TLS only).
  [[nodiscard]] kube::ClientConfig config_for(const User& user, bool by_certificate = false) const;
  /// The same as a kubeconfig file.
  [[nodiscard]] std::string kubeconfig_for(const User& user, bool by_certificate = false) const;
  [[nodiscard]] std::size_t connections() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
