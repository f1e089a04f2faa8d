#include "hubs/connections.hpp"

#include <algorithm>

namespace hubferry::hubs {

void Connections::put(const std::string& hub, std::shared_ptr<Connection> connection) {
  auto& entry = entries_[hub];
  auto old = std::exchange(entry.connection, std::move(connection));
  entry.why_not.clear();
  if (old != nullptr) old->closed.set();
}

void Connections::drop(const std::string& hub, std::string why) {
  auto& entry = entries_[hub];
  auto old = std::exchange(entry.connection, nullptr);
  entry.why_not = std::move(why);
  if (old == nullptr) return;
  old->note(false);
  old->closed.set();
}

void Connections::drop_all(const std::string& why) {
  for (auto& [hub, entry] : entries_) drop(hub, why);
}

Result<std::shared_ptr<Connection>> Connections::find(const std::string& hub) const {
  const auto found = entries_.find(hub);
  if (found != entries_.end() && found->second.connection != nullptr) return found->second.connection;
  const bool known = found != entries_.end() && !found->second.why_not.empty();
  return Error{ErrorKind::unreachable, 0, "HubUnreachable",
               known ? found->second.why_not : "there is no way to hub " + hub, std::nullopt};
}

std::size_t Connections::open() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const auto& entry) { return entry.second.connection != nullptr; }));
}

namespace {

Awaitable<> note_first_answer(std::shared_ptr<Connection> connection) {
  co_await connection->hub->clusters().wait_synced();
  connection->note(true);
}

}  // namespace

Awaitable<> follow(std::shared_ptr<Connection> connection) {
  auto body = [&](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(connection->hub->run());
    scope.spawn(note_first_answer(connection));
    co_await connection->closed.wait();
    scope.stop();
  };
  co_await async::with_scope(std::move(body));
}

Awaitable<> detail::stop_when_closed(std::shared_ptr<Connection> connection, async::TaskScope& scope) {
  co_await connection->closed.wait();
  scope.stop();
}

}  // namespace hubferry::hubs
