#include "sim/ocm/hub_controller.hpp"

#include "hubferry/async/task_scope.hpp"

namespace hubferry::sim {

namespace {

kube::WorkQueueOptions queue_options(const HubContext& hub, const std::string& name) {
  kube::WorkQueueOptions options;
  options.name = hub.options.name + "/" + name;
  options.controller = name;
  options.most_delay = std::chrono::seconds{30};
  return options;
}

}  // namespace

HubController::HubController(HubContext& hub, const std::string& name)
    : hub_(hub), queue_(queue_options(hub, name), hub.env), name_(name) {}

void HubController::follow(ObjectCache& cache, ObjectCache::Handler handler) {
  subscriptions_.push_back(cache.subscribe(std::move(handler)));
}

Awaitable<> HubController::run() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(queue_.run());
    for (std::size_t worker = 0; worker < hub_.options.workers; ++worker) scope.spawn(work());
    co_return;
  };
  co_await async::with_scope(body);
}

Awaitable<> HubController::work() {
  while (auto key = co_await queue_.get()) {
    const auto done = co_await reconcile(*key);
    if (done) {
      queue_.forget(*key);
    } else {
      hub_.env.log.debug("trying again", {{"hub", hub_.options.name},
                                          {"controller", name_},
                                          {"object", kube::to_string(*key)},
                                          {"error", done.error().describe()}});
      queue_.add_rate_limited(*key);
    }
    queue_.done(*key);
    if (is_idle()) hub_.progress.wake_all();
  }
}

}  // namespace hubferry::sim
