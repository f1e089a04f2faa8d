#pragma once

#include <boost/asio/cancellation_state.hpp>
#include <cstddef>
#include <new>
#include <type_traits>

#include "hubferry/async/clock.hpp"
#include "hubferry/obs/log.hpp"
#include "hubferry/phase/phase.hpp"

namespace hubferry::phase {

/// What the framework tells every handler about the run it is in.
/// Lifetime: that of the handler's run.
class RunInfo {
 public:
  RunInfo(async::Clock& clock, const obs::Logger& log, const Key& key, const Phase& phase, const std::string& handler,
          async::asio::cancellation_state cancellation)
      : clock_(clock), log_(log), key_(key), phase_(phase), handler_(handler), cancellation_(cancellation) {}

  [[nodiscard]] async::Clock& clock() const { return clock_; }
  /// Names the resource already.
  [[nodiscard]] const obs::Logger& log() const { return log_; }
  [[nodiscard]] const Key& key() const { return key_; }
  [[nodiscard]] const Phase& phase() const { return phase_; }
  [[nodiscard]] const std::string& handler() const { return handler_; }

  /// True once a sibling failed or the machine is being stopped. The next co_await throws then; ask in long stretches
  /// without one.
  [[nodiscard]] bool stopping() const { return cancellation_.cancelled() != async::asio::cancellation_type::none; }

 private:
  async::Clock& clock_;
  const obs::Logger& log_;
  const Key& key_;
  const Phase& phase_;
  const std::string& handler_;
  async::asio::cancellation_state cancellation_;
};

/// What a handler gets: the run it is in, and the services (clients, settings) that the definition's author chose.
template <typename Services>
class Context : public RunInfo {
 public:
  Context(const RunInfo& info, Services& services) : RunInfo(info), services_(services) {}

  [[nodiscard]] Services& services() const { return services_; }
  Services* operator->() const { return &services_; }

 private:
  Services& services_;
};

/// Where the engine keeps the Context of a handler's run, whatever its Services are: beside its own frame, instead of
/// in one more for each handler that waits.
struct ContextRoom {
  alignas(Context<int>) std::byte bytes[sizeof(Context<int>)];

  template <typename Services>
  Context<Services>& emplace(const RunInfo& info, Services& services) {
    using Made = Context<Services>;
    static_assert(sizeof(Made) <= sizeof(ContextRoom) && std::is_trivially_destructible_v<Made>);
    return *new (bytes) Made(info, services);
  }
};

}  // namespace hubferry::phase
