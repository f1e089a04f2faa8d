#include "support/scripted_server.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <stdexcept>

namespace hubferry::test {

namespace {

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

SSL_CTX* make_context(const Identity& identity) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  const std::unique_ptr<BIO, BioFree> certificate_bio{
      BIO_new_mem_buf(identity.certificate_pem.data(), static_cast<int>(identity.certificate_pem.size()))};
  X509* certificate = PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(context, certificate);
  X509_free(certificate);
  const std::unique_ptr<BIO, BioFree> key_bio{
      BIO_new_mem_buf(identity.key_pem.data(), static_cast<int>(identity.key_pem.size()))};
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr);
  SSL_CTX_use_PrivateKey(context, key);
  EVP_PKEY_free(key);
  static constexpr unsigned char session_context[] = "test";
  SSL_CTX_set_session_id_context(context, session_context, sizeof session_context);
  // Asks clients who they are, and believes everybody.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  return context;
}

std::string pem_of(X509* certificate) {
  const std::unique_ptr<BIO, BioFree> bio{BIO_new(BIO_s_mem())};
  PEM_write_bio_X509(bio.get(), certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::size_t content_length(std::string_view head) {
  const auto at = head.find("Content-Length: ");
  if (at == std::string_view::npos) return 0;
  std::size_t length = 0;
  std::from_chars(head.data() + at + 16, head.data() + head.size(), length);
  return length;
}

}  // namespace

void Session::shake_hands() {
  if (server_.tls_ == nullptr || tls_ != nullptr) return;
  tls_ = SSL_new(server_.tls_);
  SSL_set_fd(tls_, fd_);
  if (SSL_accept(tls_) == 1) return;
  // A close with unread data would be a reset, and could overtake the alert.
  shutdown(fd_, SHUT_WR);
  wait_until_gone();
  throw Gone{};
}

bool Session::resumed() {
  shake_hands();
  return SSL_session_reused(tls_) == 1;
}

std::string Session::client_certificate_pem() {
  shake_hands();
  X509* certificate = SSL_get1_peer_certificate(tls_);
  if (certificate == nullptr) return {};
  auto pem = pem_of(certificate);
  X509_free(certificate);
  return pem;
}

std::size_t Session::read_some(char* data, std::size_t size) {
  shake_hands();
  const auto got = tls_ != nullptr ? SSL_read(tls_, data, static_cast<int>(size)) : recv(fd_, data, size, 0);
  if (got <= 0) throw Gone{};
  return static_cast<std::size_t>(got);
}

std::string Session::read_request() {
  char data[65536];
  while (true) {
    const auto head_end = pending_.find("\r\n\r\n");
    if (head_end != std::string::npos) {
      const std::size_t size = head_end + 4 + content_length(std::string_view{pending_}.substr(0, head_end + 2));
      if (pending_.size() >= size) {
        std::string request = pending_.substr(0, size);
        pending_.erase(0, size);
        const std::lock_guard lock{server_.mutex_};
        server_.requests_.push_back(request);
        return request;
      }
    }
    const auto got = read_some(data, sizeof data);
    pending_.append(data, got);
  }
}

std::string Session::read_raw() {
  char data[65536];
  const auto got = recv(fd_, data, sizeof data, 0);
  if (got <= 0) throw Gone{};
  return {data, static_cast<std::size_t>(got)};
}

void Session::send(std::string_view bytes) {
  shake_hands();
  if (tls_ == nullptr) {
    send_raw(bytes);
  } else if (!bytes.empty() && SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size())) <= 0) {
    throw Gone{};
  }
}

void Session::send_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) throw Gone{};
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void Session::reply(int status, std::string_view body, std::string_view headers) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " x\r\n" + std::string{headers} +
                     "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  text += body;
  send(text);
}

void Session::start_chunked(std::string_view headers) {
  send("HTTP/1.1 200 OK\r\n" + std::string{headers} + "Transfer-Encoding: chunked\r\n\r\n");
}

void Session::chunk(std::string_view bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  std::string text = size;
  text += bytes;
  send(text + "\r\n");
}

void Session::reset() {
  const linger at_once{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  throw Gone{};
}

void Session::close(bool farewell) {
  if (tls_ != nullptr && farewell) SSL_shutdown(tls_);
  shutdown(fd_, SHUT_WR);
}

void Session::wait_until_gone() {
  char data[65536];
  while (recv(fd_, data, sizeof data, 0) > 0) {
  }
}

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)) {
  start();
}

ScriptedServer::ScriptedServer(const Identity& identity, Script script)
    : script_(std::move(script)), tls_(make_context(identity)) {
  start();
}

ScriptedServer::ScriptedServer(const Identity& identity, Accepts accepts, Script script)
    : script_(std::move(script)), accepts_(std::move(accepts)), tls_(make_context(identity)) {
  const auto verify = [](X509_STORE_CTX* store, void* self) {
    return static_cast<ScriptedServer*>(self)->accepts_(pem_of(X509_STORE_CTX_get0_cert(store))) ? 1 : 0;
  };
  SSL_CTX_set_verify(tls_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(tls_, verify, this);
  start();
}

void ScriptedServer::start() {
  std::signal(SIGPIPE, SIG_IGN);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, 512) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("cannot listen on loopback");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

ScriptedServer::~ScriptedServer() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock{mutex_};
    for (const int fd : sockets_) shutdown(fd, SHUT_RDWR);
  }
  for (auto& thread : threads_) thread.join();
  ::close(listener_);
  if (tls_ != nullptr) SSL_CTX_free(tls_);
}

std::string ScriptedServer::url() const {
  return (tls_ != nullptr ? "https" : "http") + ("://127.0.0.1:" + std::to_string(port_));
}

std::vector<std::string> ScriptedServer::requests() const {
  const std::lock_guard lock{mutex_};
  return requests_;
}

bool ScriptedServer::wait_until_idle() {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, std::chrono::seconds{20}, [this] { return open_ == 0; });
}

void ScriptedServer::accept_loop() {
  while (!stopping_) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock{mutex_};
    sockets_.push_back(fd);
    ++open_;
    most_open_ = std::max(most_open_.load(), open_.load());
    threads_.emplace_back([this, fd, index = accepted_++] { serve(fd, index); });
  }
}

void ScriptedServer::serve(int fd, int index) {
  Session session{*this, fd, index};
  try {
    script_(session);
  } catch (const Session::Gone&) {
  }
  if (session.tls_ != nullptr) SSL_free(session.tls_);
  const std::lock_guard lock{mutex_};
  std::erase(sockets_, fd);
  ::close(fd);
  --open_;
  changed_.notify_all();
}

}  // namespace hubferry::test
