#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hubferry/async/semaphore.hpp"
#include "kube/http/connection.hpp"

namespace hubferry::kube::http {

/// Keeps connections to one server for the next request: at most `most`, in use and idle together.
/// Callers beyond the limit wait, first come first served.
///
/// Executor: one loop. Lifetime: longer than its slots.
class ConnectionPool {
 public:
  /// The right to use one connection, returned on destruction; the connection itself only returns by put_back().
  class Slot {
   public:
    Slot() = default;
    explicit Slot(async::Semaphore::Permit permit) : permit_(std::move(permit)) {}

   private:
    async::Semaphore::Permit permit_;
  };

  ConnectionPool(async::Clock& clock, std::size_t most, async::Duration idle_limit);

  /// Waits for a free slot; nullopt if none became free until `deadline`.
  Awaitable<std::optional<Slot>> enter(TimePoint deadline);
  /// The connection used last, if there is one that the server has kept. Only with a slot.
  std::shared_ptr<Connection> take();
  /// Makes room for one more connection. Only with a slot.
  void make_room();
  /// Keeps it if it can be used again. Only with a slot.
  void put_back(std::shared_ptr<Connection> connection);
  /// Closes all idle connections.
  void clear();

  [[nodiscard]] std::size_t idle() const { return idle_.size(); }
  [[nodiscard]] std::size_t in_use() const { return slots_.total() - slots_.free(); }

 private:
  void drop(const Connection* connection);

  async::Clock& clock_;
  async::Duration idle_limit_;
  async::Semaphore slots_;
  std::size_t waiting_ = 0;
  std::vector<std::shared_ptr<Connection>> idle_;  // used last at the back
};

}  // namespace hubferry::kube::http
