#include "hubferry/sim/hub_controllers.hpp"

#include <algorithm>

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/event.hpp"
#include "hubferry/async/task_scope.hpp"
#include "sim/ocm/hub_controller.hpp"

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
      hub_.env.log.debug("reconcile failed, retrying", {{"hub", hub_.options.name},
                                                        {"controller", name_},
                                                        {"object", kube::to_string(*key)},
                                                        {"error", done.error().describe()}});
      queue_.add_rate_limited(*key);
    }
    queue_.done(*key);
    if (is_idle()) hub_.progress.wake_all();
  }
}

class HubControllers::State {
 public:
  State(kube::Api& api, HubOptions options, kube::Env env) : hub_(api, std::move(options), std::move(env)) {
    controllers_.push_back(make_acceptance(hub_));
    controllers_.push_back(make_deletion(hub_));
    controllers_.push_back(make_certificate_approval(hub_));
    controllers_.push_back(make_availability(hub_));
    controllers_.push_back(make_clock_check(hub_));
    controllers_.push_back(make_taints(hub_));
    if (hub_.imports()) controllers_.push_back(make_import(hub_));
    controllers_.push_back(make_placement(hub_));
  }

  Awaitable<> run() {
    co_await install();
    auto body = [this](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(hub_.follow());
      co_await hub_.wait_synced();
      for (const auto& controller : controllers_) scope.spawn(controller->run());
      started_.set();
    };
    co_await async::with_scope(body);
  }

  Awaitable<> wait_settled() {
    co_await started_.wait();
    while (!std::ranges::all_of(controllers_, [](const auto& one) { return one->is_idle(); }))
      co_await hub_.progress.wait();
  }

 private:
  Awaitable<> install() {
    async::Backoff backoff{{}, hub_.env.clock, hub_.env.random};
    while (true) {
      auto done = co_await install_hub(hub_.api, hub_.options);
      if (done) co_return;
      hub_.env.log.warn("installing the hub failed, retrying",
                        {{"hub", hub_.options.name}, {"error", done.error().describe()}});
      co_await backoff.pause();
    }
  }

  HubContext hub_;
  std::vector<std::unique_ptr<HubController>> controllers_;
  async::Event started_;
};

HubControllers::HubControllers(kube::Api& hub, HubOptions options, kube::Env env)
    : state_(std::make_unique<State>(hub, std::move(options), std::move(env))) {}

HubControllers::~HubControllers() = default;

kube::Awaitable<> HubControllers::run() {
  return state_->run();
}

kube::Awaitable<> HubControllers::wait_settled() {
  return state_->wait_settled();
}

}  // namespace hubferry::sim
