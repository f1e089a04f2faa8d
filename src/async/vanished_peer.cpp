#include "hubferry/async/vanished_peer.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

namespace hubferry::async {

void notice_vanished_peer(asio::ip::tcp::socket& socket) {
  // Three probes, ten seconds apart, after half a minute of silence; the same limit holds for unacknowledged data, for
  // which the kernel would retry for a quarter of an hour.
  constexpr int idle_seconds = 30;
  constexpr int probe_seconds = 10;
  constexpr int probes = 3;
  constexpr int most_milliseconds = (idle_seconds + probes * probe_seconds) * 1000;
  // Failures are no reason to go without a connection: the stream's own limits are still there.
  const auto set = [&](int level, int option, int value) {
    static_cast<void>(::setsockopt(socket.native_handle(), level, option, &value, sizeof value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle_seconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, probe_seconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, probes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, most_milliseconds);
}

}  // namespace hubferry::async
