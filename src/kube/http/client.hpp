#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/token_bucket.hpp"
#include "hubferry/kube/credentials.hpp"
#include "hubferry/kube/error.hpp"
#include "hubferry/kube/http_api.hpp"
#include "hubferry/kube/server_url.hpp"
#include "kube/config/proxy.hpp"
#include "kube/http/client_metrics.hpp"
#include "kube/http/connection.hpp"
#include "kube/http/connection_pool.hpp"
#include "kube/http/wire_request.hpp"

namespace hubferry::kube::http {

/// Carries requests to one server and brings answers back: credentials, connections, rate limit and retries.
/// It knows HTTP, not objects.
///
/// Executor: all calls on `loop`. Lifetime: held by shared_ptr by everything that uses it.
/// Cancellation: terminal. Errors: classified, with a message that names method and path.
class Client {
 public:
  /// Throws ConfigError.
  Client(ClientConfig config, HttpApiOptions options, async::Executor loop, Env env);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  /// A successful answer, its body inflated. `deadline` zero: the default.
  Awaitable<Result<Answer>> perform(const WireRequest& request, TimePoint deadline);

  /// An answer whose body is yet to come, on a connection of its own.
  struct Stream {
    ConnectionPool::Slot slot;
    std::shared_ptr<Connection> connection;
  };
  Awaitable<Result<Stream>> open_stream(const WireRequest& request);

  /// After an answer that cannot be ours: no idle connection can be trusted.
  void close_idle() { requests_.clear(); }
  /// Counts an object that was left out of a list or watch, and logs the first of each path.
  void skipped(const WireRequest& request, const Error& error);

  [[nodiscard]] const HttpApiOptions& options() const { return options_; }
  [[nodiscard]] async::Clock& clock() const { return env_.clock; }

 private:
  enum class Mode { whole, stream };

  /// One attempt, and what came of it.
  struct Tried {
    Attempt attempt;
    Answer answer;
    std::optional<Loss> loss;
    bool distrusted = false;  // the server's certificate was refused, or ours
    Stream stream;
  };

  void choose_proxy();
  Awaitable<Result<Tried>> try_until_done(const WireRequest& request, TimePoint deadline, Mode mode);
  Awaitable<Tried> attempt(const WireRequest& request, const std::string& authorization, TimePoint deadline, Mode mode,
                           bool fresh_connection);
  /// Sends and receives on `connection`.
  Awaitable<std::optional<Loss>> exchange(std::shared_ptr<Connection> connection, const WireRequest& request,
                                          const std::string& authorization, TimePoint deadline, Mode mode,
                                          Answer& answer);
  Awaitable<Result<std::string>> authorize(TimePoint& deadline);
  /// Waits for the rate limit; false when `deadline` comes first.
  Awaitable<bool> admit(const WireRequest& request, TimePoint deadline);
  /// How long to wait before `step`; nullopt when there is no time for it.
  std::optional<async::Duration> pause_for(NextStep step, const Attempt& attempt, async::Backoff& backoff,
                                           TimePoint deadline);
  /// The largest body of its answer.
  [[nodiscard]] std::size_t answer_limit(const WireRequest& request) const;
  /// How long the body may pause while it is read past the deadline; zero: not at all. Lists are large.
  [[nodiscard]] async::Duration progress_limit(const WireRequest& request) const;
  /// A certificate that has changed needs new connections.
  void renew_certificate();
  /// The server rejected our certificate, or we rejected its: the files that the configuration was made from, or the
  /// system's authorities, may have been renewed. True when they have changed; new connections are opened then.
  bool renew_from_files();
  std::string request_text(const WireRequest& request, const std::string& authorization) const;

  ClientConfig config_;
  HttpApiOptions options_;
  Env env_;
  async::Executor loop_;
  async::Random random_;
  ServerUrl url_;
  std::optional<Proxy> proxy_;
  Credentials credentials_;
  std::shared_ptr<const ClientCertificate> certificate_;
  std::shared_ptr<TlsContext> tls_;  // null for a plain server
  std::string fixed_headers_;
  ClientMetrics metrics_;
  async::TokenBucket rate_limit_;
  ConnectionPool requests_;
  ConnectionPool watches_;
  std::set<std::string> skipped_paths_;  // that have been logged
};

/// The error with a message that begins with the request: "GET /api/v1/nodes: …".
Error about(const WireRequest& request, Error error);
Error about(const WireRequest& request, ErrorKind kind, std::string message);

/// What an answer other than success means.
Error error_from_answer(const WireRequest& request, const Answer& answer);
/// What it means that no (whole) answer came. Only a write can be ambiguous.
Error error_from_loss(const WireRequest& request, const Loss& loss);

}  // namespace hubferry::kube::http
