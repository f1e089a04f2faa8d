#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hubferry/async/semaphore.hpp"
#include "kube/http/connection.hpp"

namespace hubferry::kube::http {

/// Keeps connections to one server for the next request: no more than `most` in use and at rest together.
/// Callers beyond that wait their turn, first come first served.
///
/// Executor: one loop. Lifetime: longer than its places.
class ConnectionPool {
 public:
  /// The right to use one connection. Whatever happens to its holder, it comes back; the connection only by put_back().
  class Place {
   public:
    Place() = default;
    explicit Place(async::Semaphore::Permit permit) : permit_(std::move(permit)) {}

   private:
    async::Semaphore::Permit permit_;
  };

  ConnectionPool(async::Clock& clock, std::size_t most, async::Duration idle_limit);

  /// Waits for a place; none if there was none until `deadline`.
  Awaitable<std::optional<Place>> enter(TimePoint deadline);
  /// The connection used last, if there is one that the server has kept. Only with a place.
  std::shared_ptr<Connection> take();
  /// Makes room for one more connection. Only with a place.
  void make_room();
  /// Keeps it if it can be used again. Only with a place.
  void put_back(std::shared_ptr<Connection> connection);
  /// Closes all that are at rest.
  void clear();

  [[nodiscard]] std::size_t idle() const { return idle_.size(); }
  [[nodiscard]] std::size_t in_use() const { return places_.total() - places_.free(); }

 private:
  void drop(const Connection* connection);

  async::Clock& clock_;
  async::Duration idle_limit_;
  async::Semaphore places_;
  std::size_t waiting_ = 0;
  std::vector<std::shared_ptr<Connection>> idle_;  // used last at the back
};

}  // namespace hubferry::kube::http
