#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hubferry::test {

/// A blocking client on the loopback interface that can misbehave: it sends exactly what and when the test says.
class TcpClient {
 public:
  /// Long enough never to matter on a busy machine.
  static constexpr auto timeout = std::chrono::seconds(60);

  explicit TcpClient(std::uint16_t port) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      const std::string why = std::strerror(errno);
      ::close(fd_);
      throw std::runtime_error("cannot connect: " + why);
    }
    const timeval limit{timeout.count(), 0};
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  TcpClient(const TcpClient&) = delete;
  TcpClient& operator=(const TcpClient&) = delete;
  TcpClient(TcpClient&& other) noexcept : fd_(other.fd_), received_(std::move(other.received_)) { other.fd_ = -1; }
  ~TcpClient() {
    if (fd_ >= 0) ::close(fd_);
  }

  /// False when the server has closed the connection.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const auto count = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EAGAIN) throw std::runtime_error("the server neither reads nor closes");
      if (count < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  void finish_sending() { shutdown(fd_, SHUT_WR); }

  /// All that comes until the server closes the connection.
  std::string receive_all() {
    while (receive_some()) {
    }
    return std::move(received_);
  }

  /// Waits for the server to close, throwing away what it sends.
  void await_close() { receive_all(); }

  /// One response, by its Content-Length; with `head` without a body.
  std::string receive_response(bool head = false) {
    std::size_t end = std::string::npos;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos)
      if (!receive_some()) throw std::runtime_error("the server closed before a whole header: '" + received_ + "'");
    std::size_t size = end + 4;
    const auto length = received_.find("Content-Length: ");
    if (!head && length != std::string::npos && length < end) size += std::stoul(received_.substr(length + 16));
    while (received_.size() < size)
      if (!receive_some()) throw std::runtime_error("the server closed before a whole body");
    auto response = received_.substr(0, size);
    received_.erase(0, size);
    return response;
  }

  std::string get(const std::string& target, const std::string& more_header = "") {
    send("GET " + target + " HTTP/1.1\r\nHost: test\r\n" + more_header + "\r\n");
    return receive_response();
  }

  /// True when the server has closed the connection already.
  bool closed_by_now() {
    pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&entry, 1, 0) > 0 && !receive_some();
  }

 private:
  bool receive_some() {
    pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
    if (poll(&entry, 1, static_cast<int>(limit)) <= 0)
      throw std::runtime_error("the server neither answers nor closes");
    char buffer[16384];
    const auto count = recv(fd_, buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  int fd_ = -1;
  std::string received_;
};

/// A port that was free a moment ago, for programs that cannot choose one themselves.
inline std::uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

}  // namespace hubferry::test
