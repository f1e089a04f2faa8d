#pragma once

#include <boost/asio/ip/address.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hubferry/async/clock.hpp"

namespace hubferry::kube::http {

namespace asio = boost::asio;

/// Looks up the addresses of servers, and remembers what it found.
///
/// The system's resolver blocks for as long as its configuration says, and cannot be interrupted. So a name has a
/// thread of its own while it is looked up (up to a limit; further names wait), callers of one name share it, and a
/// caller that is cancelled leaves it behind: neither other names nor the end of the process wait for a name server
/// that is dead. A name that cannot be looked up now, or not soon, has the addresses of the last time.
///
/// Thread-safe. Lifetime: threads may outlive it; its callers may not.
class NameLookup {
 public:
  using Addresses = std::vector<asio::ip::address>;
  /// Called on a thread of its own; may block.
  using Resolve = std::function<Addresses(const std::string& host, async::error_code& error)>;

  explicit NameLookup(Resolve resolve);
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;
  ~NameLookup();

  /// The one that all clients share, by the system's resolver.
  static NameLookup& of_process();

  /// In the order in which they should be tried: the one that worked last, then both families in turn (RFC 8305), at
  /// last those that were of no use. Errors: system_error. Cancellation: terminal, at once.
  async::Awaitable<Addresses> find(std::string host, async::Clock& clock);

  /// A connection to `address` works: it comes first from now on.
  void prefer(const std::string& host, const asio::ip::address& address);
  /// `address` accepts connections that are of no use, such as one without an answer to the TLS handshake: it comes
  /// last until one works.
  void avoid(const std::string& host, const asio::ip::address& address);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hubferry::kube::http
