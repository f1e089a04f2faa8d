#include "kube/http/connection_pool.hpp"

#include <algorithm>

#include "hubferry/async/deadline.hpp"

namespace hubferry::kube::http {

ConnectionPool::ConnectionPool(async::Clock& clock, std::size_t most, async::Duration idle_limit)
    : clock_(clock), idle_limit_(idle_limit), slots_(std::max<std::size_t>(most, 1)) {}

Awaitable<std::optional<ConnectionPool::Slot>> ConnectionPool::enter(TimePoint deadline) {
  // No waiters: the permit is available at once, and a timer would cost more than all the rest.
  if (waiting_ == 0 && slots_.free() > 0) co_return Slot{co_await slots_.acquire()};

  struct Counted {
    std::size_t& count;
    explicit Counted(std::size_t& c) : count(c) { ++count; }
    ~Counted() { --count; }
  } counted{waiting_};
  auto permit = co_await async::before_deadline(clock_, deadline, slots_.acquire());
  if (!permit) co_return std::nullopt;
  co_return Slot{std::move(*permit)};
}

std::shared_ptr<Connection> ConnectionPool::take() {
  while (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->unpark()) return connection;
    connection->close();
  }
  return nullptr;
}

void ConnectionPool::make_room() {
  // Slots in use have a connection each, or are about to open one.
  while (!idle_.empty() && idle_.size() + in_use() > slots_.total()) {
    idle_.front()->close();
    idle_.erase(idle_.begin());
  }
}

void ConnectionPool::put_back(std::shared_ptr<Connection> connection) {
  if (!connection->reusable()) {
    connection->close();
    return;
  }
  const TimePoint until = async::later(clock_.now(), idle_limit_);
  connection->park(until, [this, raw = connection.get()] { drop(raw); });
  idle_.push_back(std::move(connection));
}

void ConnectionPool::clear() {
  for (const auto& connection : idle_) connection->close();
  idle_.clear();
}

void ConnectionPool::drop(const Connection* connection) {
  std::erase_if(idle_, [&](const auto& kept) { return kept.get() == connection; });
}

}  // namespace hubferry::kube::http
