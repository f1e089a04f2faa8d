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
  /// The user of requests without a credential. Absent: 401.
  std::optional<User> anonymous;
  /// A client that does not read for this long is disconnected.
  async::Duration write_timeout = std::chrono::seconds{30};
  /// Further clients wait until one of these disconnects.
  std::size_t most_connections = 20'000;
};

/// Serves a simulated server to real clients: HTTP(S) on a socket, with the same store as Server::api().
///
/// It listens from construction, and answers while serve() runs.
/// Lifetime: `server` outlives it. Executor: the loop of serve(), which must be the server's only one: with a frontend
/// in a thread of its own, all calls to the Server must be made in that thread.
class HttpFrontend {
 public:
  /// Throws std::runtime_error if it cannot listen there.
  HttpFrontend(Server& server, async::Executor executor, HttpOptions options);
  HttpFrontend(const HttpFrontend&) = delete;
  HttpFrontend& operator=(const HttpFrontend&) = delete;
  ~HttpFrontend();

  /// Serves until cancelled; all connections are closed when it returns.
  async::Awaitable<> serve();

  [[nodiscard]] std::uint16_t port() const;
  /// "https://127.0.0.1:6443"
  [[nodiscard]] std::string url() const;
  /// A client configuration for `user`: with a bearer token, or with a client certificate (TLS only).
  [[nodiscard]] kube::ClientConfig config_for(const User& user, bool by_certificate = false) const;
  /// The same as a kubeconfig file.
  [[nodiscard]] std::string kubeconfig_for(const User& user, bool by_certificate = false) const;
  [[nodiscard]] std::size_t connections() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
