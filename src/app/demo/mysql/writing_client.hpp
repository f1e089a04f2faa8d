#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hubferry/sql/sql.hpp"

namespace hubferry::app {

/// An application that writes one row after the other into app.t, and opens a new connection where the last one broke.
/// It remembers which rows were acknowledged: those must never be missing.
class WritingClient {
 public:
  WritingClient(sql::Connector& connector, sql::Address address, async::Clock& clock)
      : connector_(connector), address_(std::move(address)), clock_(clock) {}

  /// Writes until cancelled.
  async::Awaitable<> run();

  [[nodiscard]] const std::vector<std::int64_t>& acknowledged() const { return acknowledged_; }
  /// Refused, or without an answer: whether those were written is not known.
  [[nodiscard]] std::size_t refused() const { return refused_; }
  [[nodiscard]] async::TimePoint last_success() const { return last_success_; }
  /// The longest time without an acknowledged write since the last call.
  async::Duration take_longest_pause() { return std::exchange(longest_pause_, async::Duration::zero()); }

  /// After each acknowledged write.
  async::Duration pause = async::Duration::zero();
  /// Called when writes are refused after they were acknowledged, and the other way round.
  std::function<void(bool is_acknowledged)> on_change = {};

 private:
  async::Awaitable<bool> write(std::int64_t number);

  sql::Connector& connector_;
  sql::Address address_;
  async::Clock& clock_;
  std::unique_ptr<sql::Connection> connection_;
  std::int64_t last_ = 0;
  std::vector<std::int64_t> acknowledged_;
  std::size_t refused_ = 0;
  bool was_acknowledged_ = true;
  async::TimePoint last_success_{};
  async::Duration longest_pause_{};
};

/// The statements, for an administrator, that WritingClient needs to have been executed.
std::vector<std::string> writing_client_setup();

}  // namespace hubferry::app
