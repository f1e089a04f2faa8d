#include "wire.hpp"

#include <array>
#include <functional>
#include <map>

#include "hubferry/async/clock.hpp"

namespace hubferry::worlds {

namespace {

using async::Awaitable;
using kube::Result;

// As in the HTTP client, for requests without a deadline.
constexpr std::chrono::seconds request_timeout{30};

kube::Error unreachable(std::string_view server) {
  return {kube::ErrorKind::unreachable, 0, {}, "connection to " + std::string{server} + " refused", std::nullopt};
}

kube::Error no_answer(std::string_view server, bool writes) {
  return {writes ? kube::ErrorKind::ambiguous : kube::ErrorKind::unreachable,
          0,
          {},
          "no answer from " + std::string{server},
          std::nullopt};
}

kube::Error status_error(const sim::Faults::Decision& decision, bool writes) {
  auto error = kube::error_from_status(decision.status, "");
  if (decision.retry_after_seconds) error.retry_after = std::chrono::seconds{*decision.retry_after_seconds};
  return writes ? kube::as_answer_to_write(std::move(error)) : error;
}

/// Those of one object stay in order.
void reorder(std::vector<kube::WatchEvent>& events) {
  std::multimap<kube::Key, kube::WatchEvent, std::greater<>> sorted;
  for (auto& event : events) sorted.emplace(event.decoded.key, std::move(event));
  events.clear();
  for (auto& [key, event] : sorted) events.push_back(std::move(event));
}

class FaultyStream final : public kube::WatchStream {
 public:
  FaultyStream(std::unique_ptr<kube::WatchStream> inner, Wire& wire, async::Clock& clock, std::string server,
               kube::Resource resource, bool begins_with_list)
      : inner_(std::move(inner)),
        wire_(wire),
        clock_(clock),
        server_(std::move(server)),
        resource_(std::move(resource)),
        listed_(!begins_with_list),
        generation_(wire.generation) {}

  Awaitable<Result<std::vector<kube::WatchEvent>>> next() override {
    for (;;) {
      auto arrived = co_await receive();
      // An empty list is the end of the watch: where all were lost, the next ones are waited for.
      if (!arrived || !arrived->empty() || ended_) co_return arrived;
    }
  }

 private:
  Awaitable<Result<std::vector<kube::WatchEvent>>> receive() {
    // Time for more than one to come.
    if (wire_.reorders) co_await clock_.sleep_for(std::chrono::seconds{2});
    auto events = co_await inner_->next();
    // A connection that is stuck says nothing; its reader learns of it when it breaks.
    while (wire_.stalled && generation_ == wire_.generation) co_await clock_.sleep_for(std::chrono::seconds{1});
    if (wire_.down || generation_ != wire_.generation) co_return no_answer(server_, false);
    if (!events) co_return events.error();
    ended_ = events->empty();
    if (wire_.reorders) reorder(*events);
    std::vector<kube::WatchEvent> arrived;
    for (auto& event : *events) {
      const auto& key = event.decoded.key;
      const auto decision = wire_.faults.decide_event({"watch", resource_.plural, {}, key.ns, key.name});
      if (decision.latency > async::Duration{0}) co_await clock_.sleep_for(decision.latency);
      if (decision.cut) co_return no_answer(server_, false);
      listed_ = listed_ || event.initial_events_end;
      // A list is complete, or it is none.
      if (decision.drop && listed_ && event.type != kube::WatchEventType::bookmark) continue;
      if (wire_.repeats && event.type != kube::WatchEventType::bookmark) arrived.push_back(event);
      arrived.push_back(std::move(event));
    }
    co_return arrived;
  }

  std::unique_ptr<kube::WatchStream> inner_;
  Wire& wire_;
  async::Clock& clock_;
  std::string server_;
  kube::Resource resource_;
  bool listed_;  // no event is one of a list any more
  bool ended_ = false;
  int generation_;
};

class FaultyApi final : public kube::Api {
 public:
  FaultyApi(std::shared_ptr<kube::Api> inner, Wire& wire, async::Clock& clock, std::function<void(Awaitable<>)> spawn)
      : inner_(std::move(inner)), wire_(wire), clock_(clock), spawn_(std::move(spawn)) {}

  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

  Awaitable<Result<kube::Object>> call(kube::Request request) override {
    static constexpr std::array verbs{"get", "create", "update", "patch", "apply", "delete"};
    const bool writes = request.verb != kube::Verb::get;
    const auto decision = wire_.faults.decide({verbs[static_cast<std::size_t>(request.verb)], request.resource.plural,
                                               request.subresource, request.key.ns, request.key.name});
    if (wire_.down || decision.reset_before) co_return unreachable(name());
    const auto deadline = request.deadline != async::TimePoint{} ? request.deadline : clock_.now() + request_timeout;
    const auto arrival = clock_.now() + decision.latency;
    if (arrival > deadline) {
      // It cannot be recalled.
      if (writes && decision.status == 0) spawn_(deliver(inner_, std::move(request), arrival));
      co_await clock_.sleep_until(deadline);
      co_return no_answer(name(), writes);
    }
    if (decision.latency > async::Duration{0}) co_await clock_.sleep_until(arrival);
    if (decision.status != 0) co_return status_error(decision, writes);
    if (wire_.before_arrival) co_await wire_.before_arrival(request);
    auto answer = co_await inner_->call(std::move(request));
    if (decision.reset_after) co_return no_answer(name(), writes);
    co_return answer;
  }

  Awaitable<Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                         const kube::Decoder& decoder) override {
    const auto decision = wire_.faults.decide({"list", resource.plural, {}, options.ns, {}});
    if (auto failure = co_await fail_read(decision, options.deadline)) co_return *failure;
    co_return co_await inner_->list(std::move(resource), std::move(options), decoder);
  }

  Awaitable<Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource, kube::WatchOptions options,
                                                              const kube::Decoder& decoder) override {
    const auto decision = wire_.faults.decide({"watch", resource.plural, {}, options.ns, {}});
    if (auto failure = co_await fail_read(decision, {})) co_return *failure;
    const bool begins_with_list = options.send_initial_events;
    auto stream = co_await inner_->watch(resource, std::move(options), decoder);
    if (!stream) co_return stream.error();
    co_return std::make_unique<FaultyStream>(std::move(*stream), wire_, clock_, std::string{name()},
                                             std::move(resource), begins_with_list);
  }

  Awaitable<Result<kube::json::value>> get_path(std::string path) override {
    const auto decision = wire_.faults.decide({"get", {}, {}, {}, {}});
    if (auto failure = co_await fail_read(decision, {})) co_return *failure;
    co_return co_await inner_->get_path(std::move(path));
  }

 private:
  static Awaitable<> deliver_at(std::shared_ptr<kube::Api> inner, async::Clock& clock, kube::Request request,
                                async::TimePoint arrival) {
    co_await clock.sleep_until(arrival);
    request.deadline = {};
    (void)co_await inner->call(std::move(request));
  }
  Awaitable<> deliver(std::shared_ptr<kube::Api> inner, kube::Request request, async::TimePoint arrival) {
    return deliver_at(std::move(inner), clock_, std::move(request), arrival);
  }

  Awaitable<std::optional<kube::Error>> fail_read(sim::Faults::Decision decision, async::TimePoint deadline) {
    if (wire_.down || decision.reset_before) co_return unreachable(name());
    if (deadline == async::TimePoint{}) deadline = clock_.now() + request_timeout;
    const auto arrival = clock_.now() + decision.latency;
    if (decision.latency > async::Duration{0}) co_await clock_.sleep_until(std::min(arrival, deadline));
    if (arrival > deadline || decision.reset_after) co_return no_answer(name(), false);
    if (decision.status != 0) co_return status_error(decision, false);
    co_return std::nullopt;
  }

  std::shared_ptr<kube::Api> inner_;
  Wire& wire_;
  async::Clock& clock_;
  std::function<void(Awaitable<>)> spawn_;
};

}  // namespace

std::shared_ptr<kube::Api> make_faulty_api(std::shared_ptr<kube::Api> inner, Wire& wire, async::Clock& clock,
                                           std::function<void(async::Awaitable<>)> spawn) {
  return std::make_shared<FaultyApi>(std::move(inner), wire, clock, std::move(spawn));
}

}  // namespace hubferry::worlds
