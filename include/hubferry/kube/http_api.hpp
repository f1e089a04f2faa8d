#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::kube {

namespace http {
class NameLookup;
}  // namespace http

/// How a client behaves towards one API server. The defaults suit a controller.
struct HttpApiOptions {
  std::string name;        // for logs and metrics; empty: the configuration's
  std::string user_agent;  // empty: "hubferry"
  std::string field_manager = "hubferry";

  /// Client-side rate limit; 0: none. Opening a watch counts, its events do not.
  double qps = 0;
  double burst = 100;

  /// Connections for requests; callers beyond that wait their turn. Each watch has a connection of its own.
  std::size_t max_connections = 32;
  std::size_t max_watches = 256;

  /// Resolving, connecting and the TLS handshake together.
  Duration connect_timeout = std::chrono::seconds{10};
  /// From the moment when the rate limit lets a call pass to its answer, retries included. A deadline in the request
  /// takes its place, and covers the rate limit too. A list may take longer while its page keeps coming.
  Duration request_timeout = std::chrono::seconds{30};
  /// A connection that has not been used for this long is closed. Below what servers and load balancers allow.
  Duration idle_connection = std::chrono::seconds{60};

  /// Attempts after the first one, where repeating is safe.
  unsigned max_retries = 3;
  /// If the server asks for a longer pause (Retry-After), the call fails at once and leaves the pause to the caller.
  Duration max_retry_after = std::chrono::seconds{10};

  /// The largest answer, after decompression. Collections come in pages, so a larger one is a fault, or an attack.
  std::size_t max_answer = 64UL * 1024 * 1024;
  /// The same for everything but lists: one object, which etcd limits to 1.5 MiB unless configured otherwise.
  std::size_t max_object = 8UL * 1024 * 1024;
  std::size_t max_watch_line = 32UL * 1024 * 1024;
  /// The server ends a watch at its timeout; a stream that is silent for this much longer is dead: a FIN may get lost.
  Duration watch_idle_margin = std::chrono::seconds{10};

  /// Looks up the server's name; null: the process's own, by the system's resolver.
  std::shared_ptr<http::NameLookup> names;
};

/// A client for one API server over HTTP/1.1, with TLS where the server's URL says https. Through a proxy, by CONNECT,
/// where the kubeconfig (`proxy-url`) or the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY) names one.
///
/// Throws ConfigError where the configuration cannot work: a URL or a certificate that cannot be read.
/// Executor: everything happens on `loop`; calls may come from any other.
/// Lifetime: `loop` and what `env` refers to must outlive it; its calls must have returned and its watch streams be
/// destroyed before it is. May be destroyed on any thread.
/// `env.random` is used once, here, to seed a generator for the loop.
std::unique_ptr<Api> make_http_api(ClientConfig config, HttpApiOptions options, async::Executor loop, Env env);

}  // namespace hubferry::kube
