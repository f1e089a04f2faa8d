#include "kube/http/tls_transport.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <limits>
#include <new>

namespace hubferry::kube::http {

namespace {

using asio::ip::tcp;

// OpenSSL's own socket BIO would let the process die of SIGPIPE when the peer has closed the connection.

int bio_write(BIO* bio, const char* data, int size) {
  auto& socket = *static_cast<tcp::socket*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto count = ::send(socket.native_handle(), data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int bio_read(BIO* bio, char* data, int size) {
  auto& socket = *static_cast<tcp::socket*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto count = ::recv(socket.native_handle(), data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(count);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    auto* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hubferry socket");
    if (made == nullptr) throw std::bad_alloc{};
    BIO_meth_set_write(made, &bio_write);
    BIO_meth_set_read(made, &bio_read);
    BIO_meth_set_ctrl(made, &bio_control);
    return made;
  }();
  return method;
}

// Reads in a row that did not have to wait. A peer that sends faster than we parse must not have the loop for itself:
// not even the deadline would be noticed.
constexpr int most_reads_in_a_row = 16;

int as_size(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

TlsTransport::TlsTransport(tcp::socket socket, std::shared_ptr<TlsContext> tls)
    : tls_(std::move(tls)), socket_(std::move(socket)), ssl_(SSL_new(tls_->context().native_handle())) {
  if (ssl_ == nullptr) throw std::bad_alloc{};
  auto* bio = BIO_new(socket_method());
  if (bio == nullptr) throw std::bad_alloc{};
  BIO_set_data(bio, &socket_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
  SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Otherwise each record takes two reads: one for its length.
  SSL_set_read_ahead(ssl_.get(), 1);
}

TlsTransport::~TlsTransport() {
  // OpenSSL treats a stream that ends without close_notify as broken, and would not resume its session.
  SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

int TlsTransport::verified(int accepted, X509_STORE_CTX* store) {
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* transport = static_cast<TlsTransport*>(SSL_get_app_data(ssl));
  if (accepted == 0 && transport->refusal_.empty()) transport->refusal_ = transport->tls_->explain_refusal(store);
  return accepted;
}

Awaitable<> TlsTransport::handshake() {
  tls_->prepare(ssl_.get());
  if (tls_->verifies()) SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, &TlsTransport::verified);
  SSL_set_connect_state(ssl_.get());
  while (true) {
    ERR_clear_error();
    errno = 0;
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) {
      SSL_certs_clear(ssl_.get());
      co_return;
    }
    const auto failed = co_await wait_after(result, errno);
    if (failed) throw boost::system::system_error{failed};
  }
}

Awaitable<error_code> TlsTransport::wait_after(int result, int cause) {
  // Before anything else is called that could fail.
  const int state = SSL_get_error(ssl_.get(), result);
  const auto queued = ERR_get_error();
  if (!socket_.is_open()) co_return asio::error::operation_aborted;
  if (state == SSL_ERROR_WANT_READ || state == SSL_ERROR_WANT_WRITE) {
    const auto what = state == SSL_ERROR_WANT_READ ? tcp::socket::wait_read : tcp::socket::wait_write;
    auto [failed] = co_await socket_.async_wait(what, asio::as_tuple(asio::use_awaitable));
    if (!failed && !socket_.is_open()) failed = asio::error::operation_aborted;
    co_return failed;
  }
  if (state == SSL_ERROR_ZERO_RETURN) co_return asio::error::eof;
  if (state == SSL_ERROR_SSL && ERR_GET_REASON(queued) != SSL_R_UNEXPECTED_EOF_WHILE_READING)
    co_return error_code{static_cast<int>(queued), asio::error::get_ssl_category()};
  if (state == SSL_ERROR_SYSCALL && cause != 0 && BIO_eof(SSL_get_rbio(ssl_.get())) == 0)
    co_return error_code{cause, boost::system::system_category()};
  // The peer has closed its side without close_notify.
  co_return asio::ssl::error::stream_truncated;
}

Awaitable<Transport::IoResult> TlsTransport::read_some(asio::mutable_buffer buffer) {
  if (buffer.size() == 0) co_return IoResult{error_code{}, 0};
  if (++reads_in_a_row_ > most_reads_in_a_row) {
    reads_in_a_row_ = 0;
    co_await asio::post(socket_.get_executor(), asio::use_awaitable);
  }
  while (socket_.is_open()) {
    ERR_clear_error();
    errno = 0;
    const int result = SSL_read(ssl_.get(), buffer.data(), as_size(buffer.size()));
    if (result > 0) co_return IoResult{error_code{}, static_cast<std::size_t>(result)};
    reads_in_a_row_ = 0;
    const auto failed = co_await wait_after(result, errno);
    if (failed) co_return IoResult{failed, 0};
  }
  co_return IoResult{asio::error::operation_aborted, 0};
}

Awaitable<Transport::IoResult> TlsTransport::write(asio::const_buffer bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    if (!socket_.is_open()) co_return IoResult{asio::error::operation_aborted, written};
    ERR_clear_error();
    errno = 0;
    const int result =
        SSL_write(ssl_.get(), static_cast<const char*>(bytes.data()) + written, as_size(bytes.size() - written));
    if (result > 0) {
      written += static_cast<std::size_t>(result);
      continue;
    }
    const auto failed = co_await wait_after(result, errno);
    if (failed) co_return IoResult{failed, written};
  }
  co_return IoResult{error_code{}, written};
}

}  // namespace hubferry::kube::http
