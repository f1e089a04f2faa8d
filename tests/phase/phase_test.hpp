#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/phase/default_definition.hpp"
#include "hubferry/phase/machine.hpp"

namespace hubferry::phase::test {

using namespace std::chrono_literals;

/// A resource without Kubernetes.
struct Item {
  struct Status {
    Phase phase;
    States state;
    int counter = 0;  // a field of the handlers' own
  } status;
  unsigned version = 0;
};

/// Where Items are kept, as an API server would: a write needs the version that was read.
struct Store {
  std::map<Key, Item> items;
  std::vector<Item> writes;  // in their order, all keys
  unsigned reads = 0;
  /// Asked before each write: an answer is given instead of writing.
  std::function<std::optional<Written>(Item&)> before_write;
  std::function<std::optional<Written>(Item&)> after_write;

  Awaitable<Result<std::optional<Item>>> fetch(Key key) {
    ++reads;
    const auto found = items.find(key);
    co_return found == items.end() ? std::nullopt : std::optional<Item>{found->second};
  }

  Awaitable<Written> persist(const Key& key, Item& item) {
    if (before_write)
      if (auto answer = before_write(item)) co_return *answer;
    const auto found = items.find(key);
    if (found == items.end()) co_return Written::gone();
    if (found->second.version != item.version) co_return Written::conflict();
    ++item.version;
    found->second = item;
    writes.push_back(item);
    if (after_write)
      if (auto answer = after_write(item)) co_return *answer;
    co_return Written::ok();
  }
};

/// What the handlers of these tests get as services.
struct World {
  Store store;
  std::vector<std::string> ran;  // handlers, in the order of their runs
};

using Handlers = Handler<World, Item>;
using TestContext = Context<World>;
using TestDefinition = DefaultDefinition<World, Item>;

/// The machine of the seed's unit tests: initialize -> precheck -> migrate -> success; failures end in prefailed or
/// failed. Handlers are the tests' business.
class PhaseTest : public testing::Test {
 protected:
  PhaseTest() {
    const Key key{"default", "one"};
    definition.fetch_resource = [](World& world, Key of) { return world.store.fetch(std::move(of)); };
    definition.persist_status = [key](World& world, Item& item) { return world.store.persist(key, item); };
    definition.initial = "initialize";
    definition.terminals = {{"success", Ending::success}, {"prefailed", Ending::failure}, {"failed", Ending::failure}};
    definition.normal = {{"initialize", "precheck"}, {"precheck", "migrate"}, {"migrate", "success"}};
    definition.error = {{"initialize", "prefailed"}, {"precheck", "prefailed"}, {"migrate", "failed"}};
    handle("initialize", Handlers::leaf({}, always(done())));
    handle("precheck", Handlers::leaf({}, always(done())));
    handle("migrate", Handlers::leaf({}, always(done())));
    world.store.items[key];
  }

  void handle(const Phase& phase, Handlers handler) { definition.handlers.insert_or_assign(phase, std::move(handler)); }

  static Metadata named(std::string name) {
    Metadata metadata;
    metadata.name = std::move(name);
    return metadata;
  }

  static Handlers::Function always(ReconcileState result) {
    return [result](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
      context->ran.push_back(context.handler());
      co_return result;
    };
  }
  static Handlers::Function after(async::Duration delay, ReconcileState result = done()) {
    return [delay, result](TestContext& context, Item&, const State&) -> Awaitable<ReconcileState> {
      context->ran.push_back(context.handler());
      co_await context.clock().sleep_for(delay);
      co_return result;
    };
  }
  static Handlers leaf(std::string name, Handlers::Function function) {
    return Handlers::leaf(named(std::move(name)), std::move(function));
  }

  Reconciled reconcile_once() {
    definition.normalize();
    Machine<World, Item> machine{definition, world, env()};
    return loop.run(machine.reconcile(key));
  }

  /// As a driver would, until the machine has ended or `most` reconciles.
  Reconciled reconcile_to_the_end(unsigned most = 100) {
    definition.normalize();
    Machine<World, Item> machine{definition, world, env()};
    for (unsigned turn = 0; turn < most; ++turn) {
      auto result = loop.run(machine.reconcile(key));
      if (result.outcome != Reconciled::Outcome::again) return result;
      loop.run_for(result.after);
    }
    ADD_FAILURE() << "the machine does not come to an end";
    return {};
  }

  kube::Env env() { return {loop.clock(), random, metrics, obs::Logger{}}; }
  Item& item() { return world.store.items.at(key); }
  const State& state(const Phase& phase) { return item().status.state[phase]; }
  async::Duration passed() { return loop.clock().now() - async::TimePoint{}; }

  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  World world;
  TestDefinition definition;
  const Key key{"default", "one"};
};

}  // namespace hubferry::phase::test
