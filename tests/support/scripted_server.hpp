#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/certificates.hpp"

namespace hubferry::test {

class ScriptedServer;

/// One connection, as a script sees it: blocking calls on a thread of its own.
/// Reading and sending throw Gone when the client or the server has gone: a script just ends then.
class Session {
 public:
  struct Gone {};

  /// The next request, head and body; throws Gone when none comes.
  std::string read_request();
  /// Some raw bytes from the socket, TLS or not.
  std::string read_raw();
  void send(std::string_view bytes);
  /// Raw bytes, past TLS.
  void send_raw(std::string_view bytes);
  /// A whole answer with a Content-Length. `headers`: "Name: value\r\n" each.
  void reply(int status, std::string_view body, std::string_view headers = "Content-Type: application/json\r\n");
  /// The head of an answer in chunks, and single chunks; an empty one ends it.
  void start_chunked(std::string_view headers = "Content-Type: application/json\r\n");
  void chunk(std::string_view bytes);
  /// RST.
  void reset();
  /// FIN, after close_notify with TLS if `farewell`.
  void close(bool farewell = true);
  /// Until the client closes; what it still sends is dropped.
  void wait_until_gone();
  /// How many connections came before this one.
  [[nodiscard]] int index() const { return index_; }
  /// TLS: the handshake was shortened by an earlier session.
  [[nodiscard]] bool resumed();
  /// TLS: the client's certificate as PEM; empty where it showed none.
  [[nodiscard]] std::string client_certificate_pem();

 private:
  friend class ScriptedServer;
  Session(ScriptedServer& server, int fd, int index) : server_(server), fd_(fd), index_(index) {}
  void shake_hands();
  std::size_t read_some(char* data, std::size_t size);

  ScriptedServer& server_;
  int fd_;
  int index_;
  SSL* tls_ = nullptr;
  std::string pending_;  // read beyond the last request
};

/// A server on loopback that does what its script says, byte by byte.
class ScriptedServer {
 public:
  using Script = std::function<void(Session&)>;

  explicit ScriptedServer(Script script);
  /// With TLS.
  ScriptedServer(const Identity& identity, Script script);
  /// With TLS; clients whose certificate (PEM, empty: none) `accepts` does not like are refused by an alert.
  using Accepts = std::function<bool(const std::string& client_certificate_pem)>;
  ScriptedServer(const Identity& identity, Accepts accepts, Script script);
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  /// Ends all sessions and waits for them.
  ~ScriptedServer();

  [[nodiscard]] std::string url() const;
  [[nodiscard]] int port() const { return port_; }
  /// Connections accepted so far.
  [[nodiscard]] int accepted() const { return accepted_; }
  /// Sessions that have not ended.
  [[nodiscard]] int open() const { return open_; }
  /// The most sessions at one time.
  [[nodiscard]] int most_open() const { return most_open_; }
  /// All requests read so far, in order of arrival.
  [[nodiscard]] std::vector<std::string> requests() const;
  /// Waits until no session is left; false when that takes unreasonably long.
  bool wait_until_idle();

 private:
  friend class Session;
  void start();
  void accept_loop();
  void serve(int fd, int index);

  Script script_;
  Accepts accepts_;
  SSL_CTX* tls_ = nullptr;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> accepted_ = 0;
  std::atomic<int> open_ = 0;
  std::atomic<int> most_open_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> requests_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace hubferry::test
