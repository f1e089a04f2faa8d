#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/verify_context.hpp>
#include <memory>
#include <string>

#include "hubferry/kube/config.hpp"
#include "hubferry/kube/openssl.hpp"
#include "hubferry/kube/server_url.hpp"

namespace hubferry::kube::http {

namespace asio = boost::asio;

/// Whom we trust and who we are in TLS handshakes with one server; and the last session, which makes the next
/// handshake cheap. TLS 1.2 or newer.
///
/// OpenSSL's context has 20 KB and the authorities: all clients of the process that trust the same ones share it. What
/// is a client's own (certificate, session) is given to each stream.
///
/// Executor: one loop. Lifetime: longer than the streams that were prepared by it.
class TlsContext {
 public:
  /// Throws ConfigError naming the part that cannot be read.
  TlsContext(const ClientConfig& config, const ServerUrl& url, const std::string& certificate_pem,
             const std::string& key_pem);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  asio::ssl::context& context() { return *context_; }

  /// Sets our certificate, the name to ask for and to check, and offers the last session. Before the handshake.
  void prepare(SSL* stream);
  [[nodiscard]] bool verifies() const { return verifies_; }

  /// Why the certificate at hand was rejected, as a message for people.
  [[nodiscard]] std::string explain_refusal(X509_STORE_CTX* store) const;

 private:
  static int keep_session(SSL* stream, SSL_SESSION* session);

  struct FreeChain {
    void operator()(STACK_OF(X509) * chain) const { sk_X509_pop_free(chain, X509_free); }
  };

  /// Throws ConfigError.
  void use_certificate(const ClientConfig& config, const std::string& certificate_pem, const std::string& key_pem);
  [[nodiscard]] bool give_certificate(SSL* stream) const;

  std::shared_ptr<asio::ssl::context> context_;
  openssl::Certificate certificate_;  // null: none
  std::unique_ptr<STACK_OF(X509), FreeChain> chain_;
  openssl::Key key_;
  bool verifies_;
  std::string authority_;    // host:port, for messages
  std::string server_name_;  // what the certificate must be issued for
  bool name_is_address_;
  SSL_SESSION* session_ = nullptr;  // owned
};

}  // namespace hubferry::kube::http
