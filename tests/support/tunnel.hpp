#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hubferry::test {

/// A proxy on loopback that answers CONNECT and then passes bytes to a port of this machine, whatever host was asked
/// for.
class Tunnel {
 public:
  explicit Tunnel(int target_port) : target_port_(target_port) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no port for a proxy");
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread{[this] { accept_all(); }};
  }
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;
  ~Tunnel() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (auto& worker : workers_) worker.join();
    ::close(listener_);
  }

  [[nodiscard]] int port() const { return port_; }
  /// The heads of the requests so far.
  std::vector<std::string> heads() {
    const std::lock_guard lock{mutex_};
    return heads_;
  }

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  void accept_all() {
    while (!stopping_) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      workers_.emplace_back([this, client] { serve(client); });
    }
  }
  void serve(int client) {
    std::string head;
    char c = 0;
    while (head.find("\r\n\r\n") == std::string::npos && ::recv(client, &c, 1, 0) == 1) head += c;
    {
      const std::lock_guard lock{mutex_};
      heads_.push_back(head);
    }
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(target_port_);
    const std::string answer = "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n";
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL) > 0)
      relay(client, server);
    ::close(server);
    ::close(client);
  }
  void relay(int one, int other) const {
    std::array<pollfd, 2> ends{pollfd{one, POLLIN, 0}, pollfd{other, POLLIN, 0}};
    std::array<char, 4096> block{};
    while (!stopping_) {
      if (::poll(ends.data(), ends.size(), 20) < 0) return;
      for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends.at(i).revents == 0) continue;
        const auto size = ::recv(ends.at(i).fd, block.data(), block.size(), 0);
        if (size <= 0 || ::send(ends.at(1 - i).fd, block.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) < 0)
          return;
      }
    }
  }

  int target_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::vector<std::string> heads_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

}  // namespace hubferry::test
