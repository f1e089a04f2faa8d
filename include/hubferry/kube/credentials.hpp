#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/config.hpp"
#include "hubferry/kube/error.hpp"

namespace hubferry::kube {

/// What a client shows of itself in the TLS handshake.
struct ClientCertificate {
  std::string certificate_pem;  // the chain, leaf first
  std::string key_pem;

  bool operator==(const ClientCertificate&) const = default;
};

class CredentialSource;

/// Our credential for one API server, determined for each request: tokens are rotated under a running process.
///
/// A configuration's own token, password or certificate wins over its exec plugin, and a token file over a token, as
/// in client-go. A token file is looked at no more than once a second and read again when it has changed; while it
/// cannot be read, the last token (or the configuration's inline one) stays in use. An exec plugin runs when there is
/// no valid credential: its answer serves until ten seconds before it expires, callers that come meanwhile wait for the
/// same run, and a failure is the answer for one second, so that a broken plugin is not started for every request. It
/// has a minute, on a terminal ten, whatever the deadlines of its callers.
///
/// Lifetime: outlives its callers; `clock` outlives it.
/// Executor: all calls on one loop, the one of the server's connections.
/// Cancellation: terminal; a plugin that is running continues, until it ends or the Credentials do. Errors:
/// unauthorized, with a message that names the file or the plugin and holds no secret.
class Credentials {
 public:
  Credentials(const ClientConfig& config, async::Clock& clock);
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;
  ~Credentials();

  /// The value of the Authorization header: "Bearer …", "Basic …", or empty where a certificate, or nothing, says who
  /// we are. Await it before connecting: only then client_certificate() is that of the exec plugin's last answer.
  async::Awaitable<Result<std::string>> authorization_header();

  /// The certificate for new connections: the configuration's, or the exec plugin's. It may change with every call of
  /// authorization_header(); connections made with another one should not be reused.
  [[nodiscard]] std::optional<ClientCertificate> client_certificate() const;

  /// The configuration's certificate has been renewed.
  void replace_certificate(ClientCertificate certificate) { certificate_ = std::move(certificate); }

  /// The server answered 401: the next call reads the file or runs the plugin again. Runs forced in this way are at
  /// least a second apart, so that a server which rejects every credential does not make us start a process per
  /// request.
  void invalidate();
  /// The same, unless the credential has been renewed since `rejected_header` was handed out.
  void invalidate(std::string_view rejected_header);

 private:
  std::optional<ClientCertificate> certificate_;  // the configuration's own
  std::unique_ptr<CredentialSource> source_;
};

}  // namespace hubferry::kube
