#include "simulated_manager.hpp"

#include <algorithm>

#include "hubferry/async/wait_list.hpp"
#include "hubferry/kube/fence.hpp"

namespace hubferry::migration::test {

namespace {

using kube::Result;

/// Where everything of a stopped process waits.
class Gate {
 public:
  void close() { closed_ = true; }
  void open() {
    closed_ = false;
    waiters_.wake_all();
  }
  /// For good: what passes from now on is not sent.
  void kill() {
    closed_ = true;
    dead_ = true;
  }
  [[nodiscard]] bool dead() const { return dead_; }
  Awaitable<> pass() {
    while (closed_) co_await waiters_.wait();
  }

 private:
  bool closed_ = false;
  bool dead_ = false;
  async::WaitList waiters_;
};

class GatedClock final : public async::Clock {
 public:
  GatedClock(async::Clock& inner, Gate& gate, async::Duration skew) : inner_(inner), gate_(gate), skew_(skew) {}
  [[nodiscard]] async::TimePoint now() const override { return inner_.now() - lag(); }
  [[nodiscard]] async::WallTime wall_now() const override { return inner_.wall_now() + skew_; }
  Awaitable<> sleep_until(async::TimePoint when) override {
    if (!co_await try_sleep_until(when)) async::throw_cancelled();
  }
  Awaitable<bool> try_sleep_until(async::TimePoint when) override {
    // In steps while it is slow, and again if it has become slow meanwhile.
    do {
      auto until = when == async::never ? when : when + lag_;
      if (slow_since_) until = inner_.now() + std::min<async::Duration>(when - now(), std::chrono::seconds{1});
      if (!co_await inner_.try_sleep_until(until)) co_return false;
    } while (now() < when);
    co_await gate_.pass();
    co_return true;
  }

  /// From now on its time passes at a tenth of the speed, or again as that of others.
  void slow_down(bool slow) {
    lag_ = lag();
    slow_since_.reset();
    if (slow) slow_since_ = inner_.now();
  }
  void jump(async::Duration by) { skew_ += by; }
  /// How far it is behind. Its wall clock is not concerned.
  [[nodiscard]] async::Duration lag() const {
    return slow_since_ ? lag_ + (inner_.now() - *slow_since_) * 9 / 10 : lag_;
  }

 private:
  async::Clock& inner_;
  Gate& gate_;
  async::Duration skew_;
  async::Duration lag_{0};
  std::optional<async::TimePoint> slow_since_;
};

kube::Error not_sent() {
  return {kube::ErrorKind::unreachable, 0, {}, "the process is dead", std::nullopt};
}

class GatedStream final : public kube::WatchStream {
 public:
  GatedStream(std::unique_ptr<kube::WatchStream> inner, Gate& gate) : inner_(std::move(inner)), gate_(gate) {}
  Awaitable<Result<std::vector<kube::WatchEvent>>> next() override {
    co_await gate_.pass();
    if (gate_.dead()) co_return not_sent();
    auto events = co_await inner_->next();
    co_await gate_.pass();
    co_return events;
  }

 private:
  std::unique_ptr<kube::WatchStream> inner_;
  Gate& gate_;
};

std::string_view text_of(kube::Verb verb) {
  switch (verb) {
    case kube::Verb::get:
      return "get";
    case kube::Verb::create:
      return "create";
    case kube::Verb::update:
      return "update";
    case kube::Verb::patch:
      return "patch";
    case kube::Verb::apply:
      return "apply";
    case kube::Verb::remove:
      return "delete";
  }
  return "";
}

constexpr const char* leader_lease = "hubferry-manager";

/// The wire: nothing passes while the process is stopped, and as the HTTP client does, it sends nothing whose deadline
/// has passed.
class GatedApi final : public kube::Api {
 public:
  GatedApi(std::shared_ptr<kube::Api> inner, Gate& gate, GatedClock& clock, std::vector<SentWrite>& writes,
           const bool& lease_is_away)
      : inner_(std::move(inner)), gate_(gate), clock_(clock), writes_(writes), lease_is_away_(lease_is_away) {}

  Awaitable<Result<kube::Object>> call(kube::Request request) override {
    co_await gate_.pass();
    // The clusters' own leases stay in reach: what is done with them is what is tried out.
    const bool is_election = request.resource == kube::resources::leases && request.key.name == leader_lease;
    if (gate_.dead() || (lease_is_away_ && is_election)) co_return not_sent();
    if (request.deadline != async::TimePoint{} && clock_.now() >= request.deadline)
      co_return kube::Error{kube::ErrorKind::unreachable, 0, {}, "no time was left to send it", std::nullopt};
    const bool counts =
        request.verb != kube::Verb::get && request.resource.plural != "leases" && request.resource.plural != "events";
    if (counts)
      writes_.push_back({clock_.now(), std::string{text_of(request.verb)} + " " + request.resource.plural + " " +
                                           kube::to_string(request.key) + " on " + std::string{inner_->name()}});
    if (request.deadline != async::TimePoint{} && request.deadline != async::never) request.deadline += clock_.lag();
    auto answer = co_await inner_->call(std::move(request));
    co_await gate_.pass();
    co_return answer;
  }
  Awaitable<Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                         const kube::Decoder& decoder) override {
    co_await gate_.pass();
    if (gate_.dead()) co_return not_sent();
    if (options.deadline != async::TimePoint{} && options.deadline != async::never) options.deadline += clock_.lag();
    auto page = co_await inner_->list(std::move(resource), std::move(options), decoder);
    co_await gate_.pass();
    co_return page;
  }
  Awaitable<Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource, kube::WatchOptions options,
                                                              const kube::Decoder& decoder) override {
    co_await gate_.pass();
    if (gate_.dead()) co_return not_sent();
    auto stream = co_await inner_->watch(std::move(resource), std::move(options), decoder);
    co_await gate_.pass();
    if (!stream) co_return stream.error();
    co_return std::make_unique<GatedStream>(std::move(*stream), gate_);
  }
  Awaitable<Result<kube::json::value>> get_path(std::string path) override {
    co_await gate_.pass();
    if (gate_.dead()) co_return not_sent();
    auto answer = co_await inner_->get_path(std::move(path));
    co_await gate_.pass();
    co_return answer;
  }
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

 private:
  std::shared_ptr<kube::Api> inner_;
  Gate& gate_;
  GatedClock& clock_;
  std::vector<SentWrite>& writes_;
  const bool& lease_is_away_;
};

kube::LeaderElectionOptions election(const SimulatedManagerOptions& options) {
  kube::LeaderElectionOptions made;
  made.name = leader_lease;
  made.ns = options.lease_namespace;
  made.identity = options.identity;
  if (options.leader_elect) return made;
  made.takeover_after = 3 * made.retry_period;
  made.return_to_standby = true;
  return made;
}

}  // namespace

struct SimulatedManager::State {
  State(sim::VirtualWorld& of, SimulatedManagerOptions given)
      : world(of),
        options(std::move(given)),
        clock(of.clock(), gate, options.skew),
        random(std::hash<std::string>{}(options.identity)),
        env{clock, random, metrics, obs::Logger{}},
        global(gated(options.user.empty() ? std::shared_ptr<kube::Api>{std::shared_ptr<void>{}, &of.api("global")}
                                          : as_user("global"))),
        elector(*global, election(options), env),
        scope(of.loop().executor()) {
    scope.spawn(run());
  }

  std::shared_ptr<kube::Api> as_user(const std::string& server) {
    return world.server(server).api_as({options.user, {"system:masters", "system:authenticated"}, {}});
  }

  std::shared_ptr<kube::Api> connect_to(const kube::ClientConfig& config) {
    if (!options.user.empty())
      for (const auto& server : world.world().servers())
        if (config.server.starts_with("https://" + server + ".sim")) return as_user(server);
    return world.network().connect(config);
  }

  std::shared_ptr<kube::Api> gated(std::shared_ptr<kube::Api> api) {
    if (options.wire) api = options.wire(std::move(api));
    return std::make_shared<GatedApi>(std::move(api), gate, clock, writes, lease_is_away);
  }

  Awaitable<> run() {
    auto term = [this](kube::LeaderEpoch) { return lead(); };
    try {
      co_await elector.run(term);
    } catch (const kube::LeadershipLost& lost) {
      end = lost.what();
    }
  }

  /// As app/manager/manager_controllers.cpp does.
  Awaitable<> lead() {
    const auto fenced = kube::make_fenced_api(global, elector, env, hubs::is_destructive);
    auto connect = [this](const std::string&, const kube::ClientConfig& config) {
      return kube::make_fenced_api(gated(connect_to(config)), elector, env, hubs::is_destructive);
    };
    hubs::HubDirectoryOptions directory;
    directory.hub.connect_cluster = [connect](const kube::ClientConfig& config) { return connect({}, config); };
    hubs::HubDirectory hubs{*fenced, connect, std::move(directory), env};
    auto controller_options = options.controller;
    controller_options.fence = &elector;
    Controller controller{*fenced, hubs, std::move(controller_options), env};
    auto body = [&](async::TaskScope& work) -> Awaitable<> {
      work.spawn(hubs.run());
      auto inside = [&](async::TaskScope& workers) -> Awaitable<> {
        workers.spawn(controller.run());
        co_return;
      };
      co_await async::with_scope(inside);
      work.stop();
    };
    co_await async::with_scope(body);
  }

  sim::VirtualWorld& world;
  SimulatedManagerOptions options;
  Gate gate;
  GatedClock clock;
  async::Random random;
  obs::Metrics metrics;
  kube::Env env;
  std::vector<SentWrite> writes;
  bool lease_is_away = false;
  std::shared_ptr<kube::Api> global;
  kube::LeaderElector elector;
  std::string end;
  async::TaskScope scope;
};

SimulatedManager::SimulatedManager(sim::VirtualWorld& world, SimulatedManagerOptions options)
    : state_(std::make_unique<State>(world, std::move(options))) {}

SimulatedManager::~SimulatedManager() {
  stop();
}

void SimulatedManager::pause() {
  state_->gate.close();
}

void SimulatedManager::resume() {
  state_->gate.open();
}

void SimulatedManager::kill() {
  state_->gate.kill();
}

void SimulatedManager::deceive(bool deceived) {
  state_->clock.slow_down(deceived);
  state_->lease_is_away = deceived;
}

void SimulatedManager::jump(async::Duration by) {
  state_->clock.jump(by);
}

void SimulatedManager::stop() {
  state_->scope.stop();
  state_->gate.open();
  state_->world.run(state_->scope.join());
}

bool SimulatedManager::leads() const {
  return state_->elector.is_leader();
}

std::string SimulatedManager::leader() const {
  return state_->elector.leader();
}

const std::string& SimulatedManager::end() const {
  return state_->end;
}

const std::vector<SentWrite>& SimulatedManager::writes() const {
  return state_->writes;
}

std::size_t SimulatedManager::writes_since(async::TimePoint when) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(state_->writes, [&](const SentWrite& write) { return write.at >= when; }));
}

}  // namespace hubferry::migration::test
