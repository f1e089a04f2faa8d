#pragma once

#include <list>
#include <memory>

#include "hubferry/async/event.hpp"
#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "hubs/flow_limit.hpp"

namespace hubferry::hubs {

/// Admits requests to one hub, as many at once as FlowLimit allows. What a cut-over or a lease waits for comes before
/// bulk copies, which still get every eighth turn. Executor: one loop. Cancellation: a caller that is cancelled while
/// it waits leaves the queue.
class FlowGate {
 public:
  enum class Priority { urgent, bulk };

  /// The right to have a request in flight, returned on destruction.
  class [[nodiscard]] Permit {
   public:
    explicit Permit(FlowGate& gate) : gate_(&gate) {}
    Permit(Permit&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    FlowGate* gate_;
  };

  FlowGate(std::size_t most, obs::Gauge& limit_gauge);

  async::Awaitable<Permit> enter(Priority priority);

  /// What became of a request that holds a permit.
  void answered(async::TimePoint now, async::Duration took);
  void refused(async::TimePoint now);

  [[nodiscard]] std::size_t limit() const { return limit_.limit(); }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }

 private:
  /// Lives in the frame of its caller.
  struct Waiter {
    async::Event admitted;
  };
  using Queue = std::list<Waiter*>;

  void leave();
  void admit_waiting();

  FlowLimit limit_;
  obs::Gauge& limit_gauge_;
  std::size_t in_flight_ = 0;
  std::size_t turns_ = 0;
  Queue urgent_;
  Queue bulk_;
};

/// A hub's Api behind a FlowGate. Watches pass: they take no time of the server while nothing happens.
/// Lifetime: outlives its requests.
class FlowApi final : public kube::Api {
 public:
  FlowApi(std::shared_ptr<kube::Api> inner, const std::string& hub, const kube::Env& env);

  async::Awaitable<kube::Result<kube::Object>> call(kube::Request request) override;
  async::Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                                      const kube::Decoder& decoder) override;
  async::Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource,
                                                                           kube::WatchOptions options,
                                                                           const kube::Decoder& decoder) override;
  async::Awaitable<kube::Result<kube::json::value>> get_path(std::string path) override;
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

 private:
  std::shared_ptr<kube::Api> inner_;
  async::Clock& clock_;
  FlowGate gate_;
};

}  // namespace hubferry::hubs
