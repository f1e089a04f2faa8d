#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/verify_context.hpp>
#include <memory>
#include <string>

#include "hubferry/kube/config.hpp"
#include "hubferry/kube/credentials.hpp"
#include "hubferry/kube/server_url.hpp"

namespace hubferry::kube::http {

namespace asio = boost::asio;

/// Whom we trust and who we are in TLS handshakes with one server; and the last session, which makes the next
/// handshake cheap. TLS 1.2 or newer.
///
/// OpenSSL's context has 20 KB and the authorities: all clients of the process that trust the same ones share it. What
/// is a client's own (certificate, session) is given to each stream; the certificate for the handshake only, since
/// parsed it takes 6 KB, and there may be thousands of clients that wait.
///
/// Executor: one loop. Lifetime: longer than the streams that were prepared by it.
class TlsContext {
 public:
  /// `certificate`: ours; null: none. Throws ConfigError naming the part that cannot be read.
  TlsContext(const ClientConfig& config, const ServerUrl& url, std::shared_ptr<const ClientCertificate> certificate);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  asio::ssl::context& context() { return *context_; }

  /// Sets our certificate, the name to ask for and to check, and offers the last session. Before the handshake.
  void prepare(SSL* stream);
  [[nodiscard]] bool verifies() const { return verifies_; }
  /// True if it trusts the system's authorities, and those have changed since.
  [[nodiscard]] bool is_outdated() const;

  /// Why the certificate at hand was rejected, as a message for people.
  [[nodiscard]] std::string explain_refusal(X509_STORE_CTX* store) const;

 private:
  static int keep_session(SSL* stream, SSL_SESSION* session);

  std::string system_authorities_;  // which version of them it trusts; empty: not those
  std::shared_ptr<asio::ssl::context> context_;
  std::shared_ptr<const ClientCertificate> certificate_;
  bool verifies_;
  std::string authority_;    // host:port, for messages
  std::string server_name_;  // what the certificate must be issued for
  bool name_is_address_;
  SSL_SESSION* session_ = nullptr;  // owned
};

}  // namespace hubferry::kube::http
