#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include "sim/apiserver/core.hpp"
#include "sim/apiserver/object_validation.hpp"
#include "sim/apiserver/watch.hpp"

namespace hubferry::sim {

namespace {

using async::Awaitable;

// As in the HTTP client, for requests without a deadline.
constexpr std::chrono::seconds request_timeout{30};

kube::Error unreachable(const std::string& server) {
  return {kube::ErrorKind::unreachable, 0, {}, "connection to " + server + " refused", std::nullopt};
}

kube::Error no_answer(const std::string& server, bool writes) {
  return {writes ? kube::ErrorKind::ambiguous : kube::ErrorKind::unreachable,
          0,
          {},
          "connection to " + server + " reset by peer",
          std::nullopt};
}

kube::Error too_late(const std::string& server, bool writes) {
  return {writes ? kube::ErrorKind::ambiguous : kube::ErrorKind::unreachable,
          0,
          {},
          server + " did not answer in time",
          std::nullopt};
}

class DirectWatch final : public kube::WatchStream {
 public:
  DirectWatch(std::shared_ptr<Core> core, std::unique_ptr<Watch> watch, const kube::Decoder& decoder)
      : core_(std::move(core)), watch_(std::move(watch)), decoder_(decoder) {}

  Awaitable<kube::Result<std::vector<kube::WatchEvent>>> next() override {
    co_await async::asio::post(async::asio::deferred);
    auto items = co_await watch_->next();
    if (!items) co_return items.error().to_error();
    if (items->empty() && watch_->broken()) co_return no_answer(core_->options().name, false);
    std::vector<kube::WatchEvent> events;
    events.reserve(items->size());
    for (const auto& item : *items) {
      if (item.type == kube::WatchEventType::bookmark) {
        events.push_back(
            {item.type, {{}, std::string{item.object.resource_version()}, nullptr}, item.initial_events_end});
        continue;
      }
      auto decoded = decoder_.from_object(item.object);
      if (!decoded) co_return decoded.error();
      events.push_back({item.type, std::move(*decoded), false});
    }
    co_return events;
  }

 private:
  std::shared_ptr<Core> core_;
  std::unique_ptr<Watch> watch_;
  const kube::Decoder& decoder_;
};

class DirectApi final : public kube::Api {
 public:
  DirectApi(std::shared_ptr<Core> core, Identify identify) : core_(std::move(core)), identify_(std::move(identify)) {}

  [[nodiscard]] std::string_view name() const override { return core_->options().name; }

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    if (!kube::names_one_object(request)) co_return kube::unnamed(request);
    const auto verb = verb_name(request.verb);
    const kube::Resource resource = request.resource;
    const std::string subresource = request.subresource;
    kube::Key key = request.key;
    const bool writes = request.verb != kube::Verb::get;
    if (request.verb == kube::Verb::create && request.body.is_object() && subresource.empty())
      key.name = kube::string_at(request.body.get_object(), {"metadata", "name"});
    const auto user = identify_();
    const auto decision = decide(verb, resource, subresource, key);
    const auto deadline = request.deadline;
    auto latency = latency_of(decision);
    const auto arrival = async::later(core_->clock().now(), latency);
    if (!(co_await pass(latency, deadline))) {
      record(user, verb, resource, subresource, key, "timeout");
      // The request is in flight and cannot be recalled.
      if (writes && user && !decision.reset_before && decision.status == 0)
        core_->deliver_late(arrival, *user, std::move(request));
      co_return too_late(core_->options().name, writes);
    }
    if (decision.reset_before) {
      record(user, verb, resource, subresource, key, "unreachable");
      co_return unreachable(core_->options().name);
    }
    if (decision.compact) core_->compact();
    Outcome<kube::Object> outcome = errors::of_status(500, {});
    if (decision.status != 0)
      outcome = errors::of_status(decision.status, decision.retry_after_seconds);
    else if (!user)
      outcome = errors::unauthorized();
    else
      outcome = core_->execute(*user, std::move(request));
    if (outcome && key.name.empty()) key.name = outcome->name();
    if (is_recorded()) record(user, verb, resource, subresource, key, describe(outcome, decision.reset_after));
    core_->run_background_on(co_await async::asio::this_coro::executor);
    // The response is delayed too: others may act on the new state before the caller knows of it.
    co_await async::asio::post(async::asio::deferred);
    if (decision.reset_after) co_return no_answer(core_->options().name, writes);
    if (!outcome && writes) co_return kube::as_answer_to_write(outcome.error().to_error());
    if (!outcome) co_return outcome.error().to_error();
    co_return std::move(*outcome);
  }

  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                               const kube::Decoder& decoder) override {
    const kube::Key key{options.ns, {}};
    const auto user = identify_();
    const auto decision = decide("list", resource, {}, key);
    auto latency = latency_of(decision);
    if (!(co_await pass(latency, options.deadline))) co_return too_late(core_->options().name, false);
    if (decision.reset_before || decision.reset_after) {
      record(user, "list", resource, {}, key, "unreachable");
      co_return unreachable(core_->options().name);
    }
    if (decision.compact) core_->compact();
    Outcome<Page> page = errors::of_status(500, {});
    if (decision.status != 0)
      page = errors::of_status(decision.status, decision.retry_after_seconds);
    else if (!user)
      page = errors::unauthorized();
    else
      page = core_->list(*user, resource, options, decision.stale_versions);
    if (is_recorded())
      record(user, "list", resource, {}, key,
             page ? "ok items=" + std::to_string(page->items.size()) + " rv=" + std::to_string(page->version)
                  : std::to_string(page.error().code) + " " + page.error().reason);
    core_->run_background_on(co_await async::asio::this_coro::executor);
    co_await async::asio::post(async::asio::deferred);
    if (!page) co_return page.error().to_error();
    kube::ListPage answer;
    answer.resource_version = std::to_string(page->version);
    answer.continue_token = std::move(page->continue_token);
    answer.items.reserve(page->items.size());
    for (const auto& item : page->items) {
      auto decoded = decoder.from_object(item);
      if (!decoded) co_return decoded.error();
      answer.items.push_back(std::move(*decoded));
    }
    co_return answer;
  }

  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource, kube::WatchOptions options,
                                                                    const kube::Decoder& decoder) override {
    const kube::Key key{options.ns, {}};
    const auto user = identify_();
    const auto decision = decide("watch", resource, {}, key);
    auto latency = latency_of(decision);
    if (!(co_await pass(latency, {}))) co_return too_late(core_->options().name, false);
    if (decision.reset_before || decision.reset_after) {
      record(user, "watch", resource, {}, key, "unreachable");
      co_return unreachable(core_->options().name);
    }
    if (decision.compact) core_->compact();
    Outcome<std::unique_ptr<Watch>> opened = errors::of_status(500, {});
    if (decision.status != 0)
      opened = errors::of_status(decision.status, decision.retry_after_seconds);
    else if (!user)
      opened = errors::unauthorized();
    else
      opened = core_->watch(*user, resource, options);
    if (is_recorded())
      record(user, "watch", resource, {}, key,
             opened ? "ok from rv=" + options.resource_version
                    : std::to_string(opened.error().code) + " " + opened.error().reason);
    core_->run_background_on(co_await async::asio::this_coro::executor);
    co_await async::asio::post(async::asio::deferred);
    if (!opened) co_return opened.error().to_error();
    std::unique_ptr<kube::WatchStream> stream = std::make_unique<DirectWatch>(core_, std::move(*opened), decoder);
    co_return stream;
  }

  Awaitable<kube::Result<json::value>> get_path(std::string path) override {
    const auto user = identify_();
    const auto decision = decide("get", kube::Resource{}, {}, {});
    auto latency = latency_of(decision);
    if (!(co_await pass(latency, {}))) co_return too_late(core_->options().name, false);
    if (decision.reset_before || decision.reset_after) co_return unreachable(core_->options().name);
    if (decision.status != 0) co_return errors::of_status(decision.status, decision.retry_after_seconds).to_error();
    // As over HTTP: health and version need no credential.
    const bool is_public = path == "/readyz" || path == "/healthz" || path == "/livez" || path == "/version";
    if (!user && !is_public) co_return errors::unauthorized().to_error();
    auto answer = core_->path(path);
    if (!answer) co_return answer.error().to_error();
    co_return std::move(*answer);
  }

 private:
  [[nodiscard]] bool is_recorded() const { return core_->options().record_requests; }

  void record(const std::optional<User>& user, std::string_view verb, const kube::Resource& resource,
              const std::string& subresource, const kube::Key& key, std::string outcome) {
    static const User nobody{"nobody", {}, {}};
    core_->record(user ? *user : nobody, verb, resource, subresource, key, std::move(outcome));
  }

  Faults::Decision decide(std::string_view verb, const kube::Resource& resource, const std::string& subresource,
                          const kube::Key& key) {
    return core_->faults.decide({verb, resource.plural, subresource, key.ns, key.name});
  }

  async::Duration latency_of(const Faults::Decision& decision) {
    return decision.latency + core_->options().latency.draw(core_->random);
  }

  /// Waits for the latency, at least one turn of the loop. False if the deadline (or the default) came first.
  Awaitable<bool> pass(async::Duration latency, async::TimePoint deadline) {
    auto& clock = core_->clock();
    const auto arrival = async::later(clock.now(), latency);
    if (deadline == async::TimePoint{}) deadline = async::later(clock.now(), request_timeout);
    const bool late = deadline < arrival;
    if (latency > async::Duration{0})
      co_await clock.sleep_until(late ? deadline : arrival);
    else
      co_await async::asio::post(async::asio::deferred);
    co_return !late;
  }

  static std::string describe(const Outcome<kube::Object>& outcome, bool reset_after) {
    std::string text = outcome ? "ok" : std::to_string(outcome.error().code) + " " + outcome.error().reason;
    if (outcome && !outcome->resource_version().empty()) text += " rv=" + std::string{outcome->resource_version()};
    return reset_after ? text + ", then reset" : text;
  }

  std::shared_ptr<Core> core_;
  Identify identify_;
};

}  // namespace

std::unique_ptr<kube::Api> make_direct_api(std::shared_ptr<Core> core, Identify identify) {
  return std::make_unique<DirectApi>(std::move(core), std::move(identify));
}

std::unique_ptr<kube::Api> make_direct_api(std::shared_ptr<Core> core, User user) {
  return make_direct_api(std::move(core), [user = std::move(user)] { return std::optional{user}; });
}

}  // namespace hubferry::sim
