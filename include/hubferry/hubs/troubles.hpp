#pragma once

#include <map>
#include <string>

#include "hubferry/async/wait_list.hpp"

namespace hubferry::hubs {

/// What is wrong with hubs at this moment, as the requests to them show: messages for people, without secrets.
/// Executor: the control loop. Lifetime: outlives its waiters.
class Troubles {
 public:
  void set(const std::string& hub, std::string message) { messages_.insert_or_assign(hub, std::move(message)); }
  void clear(const std::string& hub) { messages_.erase(hub); }
  /// Empty: nothing is known to be wrong.
  [[nodiscard]] std::string find(const std::string& hub) const {
    const auto found = messages_.find(hub);
    return found == messages_.end() ? std::string{} : found->second;
  }

  /// A hub has a connection that it did not have, or answers again: what failed there may succeed now.
  void report_recovery() { recoveries_.wake_all(); }
  /// Returns after the next recovery of any hub. Cancellation: terminal.
  async::Awaitable<> recovered() { co_await recoveries_.wait(); }

 private:
  std::map<std::string, std::string> messages_;
  async::WaitList recoveries_;
};

}  // namespace hubferry::hubs
