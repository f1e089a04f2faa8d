// What a phase machine costs: 10,000 machines of 5 phases with 8 handlers each, on one core and without I/O.
#include <cstdlib>
#include <string>

#include "hubferry/async/event.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/phase/default_definition.hpp"
#include "hubferry/phase/driver.hpp"
#include "report.hpp"

namespace {

using namespace hubferry;
using namespace hubferry::phase;

constexpr int phases = 5;
constexpr int handlers = 8;
constexpr int waiting_phase = 3;  // its last handler waits for the gate

struct Load {
  struct Status {
    Phase phase;
    States state;
  } status;
  Key key;
};

struct World {
  std::unordered_map<Key, Load> resources;
  async::Event gate;
  std::uint64_t writes = 0;
};

using LoadHandler = Handler<World, Load>;

Awaitable<ReconcileState> work(Context<World>&, Load&, const State&) {
  co_return done();
}

Awaitable<ReconcileState> wait_for_gate(Context<World>& context, Load&, const State&) {
  co_await context->gate.wait();
  co_return done();
}

DefaultDefinition<World, Load> make_definition(bool parallel) {
  DefaultDefinition<World, Load> definition;
  definition.fetch_resource = [](World& world, Key key) -> Awaitable<Result<std::optional<Load>>> {
    co_return std::optional<Load>{world.resources.at(key)};
  };
  definition.persist_status = [](World& world, Load& load) -> Awaitable<Written> {
    world.resources[load.key].status = load.status;
    ++world.writes;
    co_return Written::ok();
  };
  definition.initial = "phase-1";
  definition.terminals = {{"done", Ending::success}, {"failed", Ending::failure}};
  for (int at = 1; at <= phases; ++at) {
    const auto phase = "phase-" + std::to_string(at);
    definition.normal[phase] = at == phases ? "done" : "phase-" + std::to_string(at + 1);
    definition.error[phase] = "failed";
    std::vector<LoadHandler> components;
    for (int which = 1; which <= handlers; ++which) {
      const bool waits = at == waiting_phase && which == handlers;
      components.push_back(
          LoadHandler::leaf({.name = "handler-" + std::to_string(which)},
                            waits ? LoadHandler::Function{wait_for_gate} : LoadHandler::Function{work}));
    }
    definition.handlers.emplace(phase, parallel ? LoadHandler::parallel({}, std::move(components))
                                                : LoadHandler::serial({}, std::move(components)));
  }
  definition.normalize();
  return definition;
}

/// One world with its machines and the driver.
class Bench {
 public:
  Bench(std::size_t machines, bool parallel) : definition_(make_definition(parallel)) {
    for (std::size_t at = 0; at < machines; ++at) {
      const Key key{"default", "machine-" + std::to_string(at)};
      world_.resources[key].key = key;
      source_.add(key);
    }
  }

  /// All machines from beginning to end, nobody waits.
  double finish_all() {
    world_.gate.set();
    source_.close();
    const perf::Stopwatch watch;
    loop_.run(driver_.run());
    if (!all_done() || world_.writes != world_.resources.size() * phases) std::abort();
    return watch.cpu();
  }

  /// All machines up to where they wait; then the driver is stopped, and what that frees is what they cost.
  double bytes_per_waiting_machine() {
    double waiting = 0;
    auto life = [&]() -> Awaitable<> {
      async::TaskScope scope{co_await async::asio::this_coro::executor};
      scope.spawn(driver_.run());
      co_await loop_.clock().sleep_for(std::chrono::seconds{1});
      if (driver_.running() != world_.resources.size()) std::abort();
      waiting = perf::allocated_bytes();
      driver_.abort();
      co_await scope.join();
    };
    loop_.run(life());
    return (waiting - perf::allocated_bytes()) / static_cast<double>(world_.resources.size());
  }

 private:
  [[nodiscard]] bool all_done() const {
    for (const auto& [key, load] : world_.resources)
      if (load.status.phase != "done") return false;
    return true;
  }

  async::VirtualLoop loop_;
  async::Random random_{1};
  obs::Metrics metrics_;
  World world_;
  DefaultDefinition<World, Load> definition_;
  Machine<World, Load> machine_{definition_, world_, {loop_.clock(), random_, metrics_, obs::Logger{}}};
  MemoryKeySource source_{loop_.clock()};
  Driver driver_{machine_, source_, {.max_concurrent = 1'000'000, .grace = std::chrono::hours{1}}};
};

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t machines = 10'000;
  perf::Report report{"phase machines: 10,000 of 5 phases with 8 handlers each, one core, no I/O", argc, argv};
  for (const bool parallel : {false, true}) {
    const std::string kind = parallel ? "parallel: " : "serial: ";
    // Of three: the others on this machine are not what is measured.
    double best = 1e9;
    for (int round = 0; round < 3; ++round) best = std::min(best, Bench{machines, parallel}.finish_all());
    report.line(kind + "machines finished", machines / best, "1/s", parallel ? "" : "over 20,000");
    report.line(kind + "cost of a transition", best / (machines * phases) * 1e6, "us");
    report.line(kind + "cost of a handler's run", best / (machines * phases * handlers) * 1e6, "us");
    report.line(kind + "memory of a waiting machine", Bench{machines, parallel}.bytes_per_waiting_machine(), "bytes",
                "under 8192");
  }
  return 0;
}
