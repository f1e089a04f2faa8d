#include "app/demo/mysql/writing_client.hpp"

#include <algorithm>

namespace hubferry::app {

using namespace std::chrono_literals;

std::vector<std::string> writing_client_setup() {
  return {"CREATE DATABASE app", "CREATE TABLE app.t (id BIGINT PRIMARY KEY)",
          "CREATE USER 'app'@'%' IDENTIFIED BY 'app'", "GRANT SELECT, INSERT, UPDATE, DELETE ON app.* TO 'app'@'%'"};
}

async::Awaitable<bool> WritingClient::write(std::int64_t number) {
  if (!connection_) {
    sql::Credentials credentials{"app", obs::Secret{"app"}};
    auto opened = co_await connector_.connect(address_, credentials, async::later(clock_.now(), 1s));
    if (!opened) co_return false;
    connection_ = std::move(*opened);
  }
  const auto statement = "INSERT INTO app.t VALUES (" + std::to_string(number) + ")";
  const auto answer = co_await connection_->query(statement, async::later(clock_.now(), 2s));
  if (!answer) connection_.reset();
  co_return answer.has_value();
}

async::Awaitable<> WritingClient::run() {
  for (;;) {
    const auto number = ++last_;
    const bool is_acknowledged = co_await write(number);
    if (is_acknowledged) {
      const auto now = clock_.now();
      if (!acknowledged_.empty()) longest_pause_ = std::max(longest_pause_, now - last_success_);
      last_success_ = now;
      acknowledged_.push_back(number);
    } else {
      ++refused_;
    }
    if (is_acknowledged != was_acknowledged_ && on_change) on_change(is_acknowledged);
    was_acknowledged_ = is_acknowledged;
    if (!is_acknowledged) co_await clock_.sleep_for(50ms);
    if (is_acknowledged && pause > 0s) co_await clock_.sleep_for(pause);
  }
}

}  // namespace hubferry::app
