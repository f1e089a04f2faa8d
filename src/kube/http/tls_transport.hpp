#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "kube/http/tls_context.hpp"
#include "kube/http/transport.hpp"

namespace hubferry::kube::http {

/// TLS over a socket. OpenSSL reads from and writes to the socket itself and keeps no buffers while the connection
/// waits: asio::ssl::stream has four of 17 KiB for each, and an agent or a manager holds thousands of idle watches.
class TlsTransport final : public Transport {
 public:
  TlsTransport(asio::ip::tcp::socket socket, std::shared_ptr<TlsContext> tls);
  TlsTransport(const TlsTransport&) = delete;
  TlsTransport& operator=(const TlsTransport&) = delete;
  ~TlsTransport() override;

  /// Throws system_error; refusal() then says whether it was the certificate.
  Awaitable<> handshake();
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  Awaitable<IoResult> read_some(asio::mutable_buffer buffer) override;
  Awaitable<IoResult> write(asio::const_buffer bytes) override;
  /// OpenSSL frees its buffers after use, but allocates both again for each session ticket that comes.
  void release_buffers() override { SSL_free_buffers(ssl_.get()); }
  /// Decrypted, and received but not decrypted yet.
  [[nodiscard]] bool has_unread() override { return SSL_has_pending(ssl_.get()) == 1; }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  static int verified(int accepted, X509_STORE_CTX* store);

  asio::ip::tcp::socket& socket() override { return socket_; }
  /// Waits for what OpenSSL needs after a call returned `result` and set errno to `cause`; the error with which the
  /// operation ends, if it does.
  Awaitable<error_code> wait_after(int result, int cause);

  std::shared_ptr<TlsContext> tls_;
  asio::ip::tcp::socket socket_;
  std::unique_ptr<SSL, Free> ssl_;
  std::string refusal_;
  int reads_in_a_row_ = 0;
};

}  // namespace hubferry::kube::http
