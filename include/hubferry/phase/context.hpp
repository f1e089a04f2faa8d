#pragma once

#include <boost/asio/cancellation_state.hpp>
#include <cstddef>
#include <new>
#include <type_traits>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/types.hpp"
#include "hubferry/obs/log.hpp"
#include "hubferry/phase/phase.hpp"

namespace hubferry::phase {

struct HandlerNode;
struct HandlerRun;

/// What a handler knows of the run that it is in.
/// Lifetime: that of the handler's run.
class RunInfo {
 public:
  RunInfo(const HandlerRun& run, const HandlerNode& handler, async::asio::cancellation_state cancellation)
      : run_(run), handler_(handler), cancellation_(cancellation) {}

  [[nodiscard]] async::Clock& clock() const;
  /// With the resource's key as a field.
  [[nodiscard]] const obs::Logger& log() const;
  [[nodiscard]] const Key& key() const;
  [[nodiscard]] const Phase& phase() const;
  [[nodiscard]] const std::string& handler() const;

  /// Where the tables lead from this phase: when it is done, and when it has failed fatally.
  [[nodiscard]] const Phase& successor() const;
  [[nodiscard]] const Phase& error_successor() const;

  /// When the handler will be cancelled by its own timeout or one of those around it; async::never: by none.
  [[nodiscard]] async::TimePoint deadline() const;

  /// Writes what the handler has changed in the resource's status so far: before long waits, and progress within them.
  /// Conditional, as every status write: on a conflict the changes are re-applied to the latest version. A write that
  /// fails is not repeated: the next one, at the latest that of the handler's result, includes its changes.
  /// Components of a parallel composite may call it: one write at a time.
  [[nodiscard]] async::Awaitable<> save() const;

  /// True once a sibling failed fatally or the machine is being stopped. The next co_await throws then; check it in
  /// long stretches without one.
  [[nodiscard]] bool stopping() const { return cancellation_.cancelled() != async::asio::cancellation_type::none; }

 private:
  const HandlerRun& run_;
  const HandlerNode& handler_;
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

/// Storage for the Context of a handler's run, whatever its Services are: in the engine's own frame, instead of a
/// further one for each handler that waits.
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
