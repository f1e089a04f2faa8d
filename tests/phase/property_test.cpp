// Random machines in a random world, against a model of a few lines: whatever results, errors, delays, conflicts,
// lost responses and crashes happen, the machine ends as the handlers' final results say.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "hubferry/async/task_scope.hpp"
#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

/// The results of one leaf, run by run. The last one is repeated forever.
struct Script {
  enum class Word { not_done, network_error, thrown_network_error };
  std::vector<Word> words;
  bool ends_well = true;
  async::Duration delay{};
  bool suspends = false;

  unsigned runs = 0;
};

/// The tree as the model sees it.
struct Tree {
  HandlerKind kind = HandlerKind::leaf;
  std::string name;
  std::size_t at_most = 0;
  bool checkpoint = false;
  Script script;
  std::vector<Tree> components;

  /// The reference model: true if this handler succeeds.
  [[nodiscard]] bool ends_well() const {
    if (kind == HandlerKind::leaf) return script.ends_well;
    for (const auto& component : components)
      if (!component.ends_well()) return false;
    return !components.empty();
  }
};

struct Universe {
  explicit Universe(std::uint64_t seed) : random(seed) {}

  async::Random random;
  Store store;
  std::map<Phase, Tree> trees;
  int running = 0;  // handlers inside a run
  std::vector<std::string> complaints;
  int marks_by_others = 0;

  void complain(std::string what) { complaints.push_back(std::move(what)); }
};

using UniverseHandlers = Handler<Universe, Item>;
const Key the_key{"default", "one"};
const std::vector<Phase> running_phases = {"initialize", "precheck", "migrate"};

Tree random_tree(async::Random& random, unsigned depth, std::string name) {
  Tree tree;
  tree.name = std::move(name);
  tree.checkpoint = random.chance(0.3);
  if (depth == 0 || random.chance(0.4)) {
    for (auto words = random.below(4); words > 0; --words)
      tree.script.words.push_back(static_cast<Script::Word>(random.below(3)));
    tree.script.ends_well = !random.chance(0.1);
    tree.script.suspends = random.chance(0.6);
    tree.script.delay = std::chrono::milliseconds{random.below(3000)};
    return tree;
  }
  tree.kind = random.chance(0.5) ? HandlerKind::serial : HandlerKind::parallel;
  tree.at_most = random.chance(0.3) ? 1 + random.below(3) : 0;
  // Now and then a composite without components, which must end fatally.
  const auto count = random.chance(0.02) ? 0 : 1 + random.below(4);
  for (std::uint64_t at = 0; at < count; ++at)
    tree.components.push_back(random_tree(random, depth - 1, "c" + std::to_string(at)));
  // Only the steps of a serial composite have a next one to make a checkpoint before.
  if (tree.kind == HandlerKind::parallel)
    for (auto& component : tree.components) component.checkpoint = false;
  return tree;
}

/// Where the leaf's State is in the written status: the names from the root down.
const State& written_state(const Universe& universe, const Phase& phase, const std::vector<std::string>& path) {
  static const State nothing;
  const auto& states = universe.store.items.at(the_key).status.state;
  const auto root = states.find(phase);
  if (root == states.end()) return nothing;
  const State* at = &root->second;
  for (const auto& name : path) at = &at->component(name);
  return *at;
}

Awaitable<ReconcileState> play(Context<Universe>& context, Item& item, Script& script, std::vector<std::string> path) {
  auto& universe = context.services();
  if (written_state(universe, context.phase(), path).completed())
    universe.complain("a completed component runs again: " + context.handler());
  if (universe.store.items.at(the_key).status.phase != context.phase() &&
      !(universe.store.items.at(the_key).status.phase.empty() && context.phase() == "initialize"))
    universe.complain("a handler runs in a phase that has been left");
  if (context.stopping()) universe.complain("a handler is started although it is being stopped");
  ++universe.running;
  struct Leave {
    Universe& universe;
    ~Leave() { --universe.running; }
  } leave{universe};
  if (script.suspends) co_await context.clock().sleep_for(script.delay);
  const auto run = script.runs++;
  if (run < script.words.size()) {
    switch (script.words[run]) {
      case Script::Word::not_done:
        co_return not_done();
      case Script::Word::network_error:
        co_return failed(Error::network("try later"));
      case Script::Word::thrown_network_error:
        throw boost::system::system_error(boost::asio::error::timed_out);
    }
  }
  if (!script.ends_well) co_return failed("never");
  ++item.status.counter;
  co_return done();
}

UniverseHandlers to_handler(Tree& tree, std::vector<std::string> path, bool is_root) {
  if (!is_root) path.push_back(tree.name);
  Metadata metadata;
  if (!is_root) metadata.name = tree.name;
  metadata.at_most = tree.at_most;
  metadata.checkpoint = tree.checkpoint;
  if (tree.kind == HandlerKind::leaf) {
    auto* script = &tree.script;
    auto body = [script, path](Context<Universe>& context, Item& item, const State&) {
      return play(context, item, *script, path);
    };
    return UniverseHandlers::leaf(std::move(metadata), body);
  }
  std::vector<UniverseHandlers> components;
  for (auto& component : tree.components) components.push_back(to_handler(component, path, false));
  return tree.kind == HandlerKind::serial ? UniverseHandlers::serial(std::move(metadata), std::move(components))
                                          : UniverseHandlers::parallel(std::move(metadata), std::move(components));
}

/// Every completed component that was ever written stays so while its phase lasts.
void check_nothing_lost(Universe& universe, const State& before, const State& after, const std::string& where) {
  for (const auto& [name, component] : before.components) {
    if (component.completed() && !after.component(name).completed())
      universe.complain("a completed component is lost: " + where + "/" + name);
    check_nothing_lost(universe, component, after.component(name), where + "/" + name);
  }
}

class RandomMachine {
 public:
  explicit RandomMachine(std::uint64_t seed) : universe_(seed) {
    auto& random = universe_.random;
    for (const auto& phase : running_phases) universe_.trees[phase] = random_tree(random, 3, phase);
    definition_.fetch_resource = [](Universe& universe, Key key) -> Awaitable<Result<std::optional<Item>>> {
      if (universe.random.chance(0.05)) co_return Error::network("the server is busy");
      co_return co_await universe.store.fetch(std::move(key));
    };
    definition_.persist_status = [](Universe& universe, Item& item) { return persist(universe, item); };
    definition_.carry_changes = [](Item& fresh, const Item& mine) {
      fresh.status.counter = std::max(fresh.status.counter, mine.status.counter);
    };
    definition_.initial = "initialize";
    definition_.terminals = {{"success", Ending::success}, {"prefailed", Ending::failure}, {"failed", Ending::failure}};
    definition_.normal = {{"initialize", "precheck"}, {"precheck", "migrate"}, {"migrate", "success"}};
    definition_.error = {{"initialize", "prefailed"}, {"precheck", "prefailed"}, {"migrate", "failed"}};
    for (auto& [phase, tree] : universe_.trees) definition_.handlers.emplace(phase, to_handler(tree, {}, true));
    definition_.normalize();
    universe_.store.items[the_key];
  }

  /// The model: the first phase whose handler fails ends the machine.
  [[nodiscard]] Phase expected() const {
    for (const auto& phase : running_phases)
      if (!universe_.trees.at(phase).ends_well()) return definition_.error.at(phase);
    return "success";
  }

  std::vector<std::string> run() {
    for (unsigned life = 0; life < 500; ++life) {
      const bool ended = live_once();
      if (universe_.running != 0) universe_.complain("a handler still runs after its machine has ended");
      if (ended || !universe_.complaints.empty()) break;
    }
    const auto& item = universe_.store.items.at(the_key);
    if (item.status.phase != expected())
      universe_.complain("ended in '" + item.status.phase + "' instead of '" + expected() + "'");
    if (marks(item) != universe_.marks_by_others) universe_.complain("somebody else's write was lost");
    return universe_.complaints;
  }

 private:
  static int marks(const Item& item) {
    const auto found = item.status.state.find("by others");
    return found == item.status.state.end() ? 0 : static_cast<int>(found->second.extra.size());
  }

  static Awaitable<Written> persist(Universe& universe, Item& item) {
    auto& random = universe.random;
    auto& stored = universe.store.items.at(the_key);
    if (random.chance(0.15)) {
      // Somebody else writes first.
      ++universe.marks_by_others;
      stored.status.state["by others"].extra["mark " + std::to_string(universe.marks_by_others)] = true;
      ++stored.version;
    }
    if (random.chance(0.05)) co_return Written::failed(Error::network("503"));
    if (random.chance(0.05)) co_return Written::ambiguous();
    const Item before = stored;
    const auto written = co_await universe.store.persist(the_key, item);
    if (written.outcome != Written::Outcome::written) co_return written;
    if (before.status.phase == stored.status.phase)
      for (const auto& [phase, state] : before.status.state)
        check_nothing_lost(universe, state, stored.status.state[phase], phase);
    if (before.status.phase == stored.status.phase && before.status.state == stored.status.state &&
        before.status.counter == stored.status.counter)
      universe.complain("a write that changed nothing");
    if (random.chance(0.05)) {
      --item.version;  // the answer never came
      co_return Written::ambiguous();
    }
    co_return Written::ok();
  }

  /// A process that reconciles until the machine has ended, or dies at a random moment.
  bool live_once() {
    bool ended = false;
    const bool dies = universe_.random.chance(0.6);
    const auto lifetime = std::chrono::milliseconds{universe_.random.below(20000)};
    Machine<Universe, Item> machine{definition_, universe_, {loop_.clock(), universe_.random, metrics_, obs::Logger{}}};
    auto life = [&]() -> Awaitable<> {
      async::TaskScope scope{co_await async::asio::this_coro::executor};
      auto work = [&]() -> Awaitable<> {
        while (!ended) {
          const auto result = co_await machine.reconcile(the_key);
          ended = result.outcome == Reconciled::Outcome::terminal;
          if (!ended) co_await loop_.clock().sleep_for(result.after);
        }
        scope.stop();
      };
      auto die = [&]() -> Awaitable<> {
        co_await loop_.clock().sleep_for(lifetime);
        scope.stop();
      };
      scope.spawn(work());
      if (dies) scope.spawn(die());
      co_await scope.join();
    };
    loop_.run(life());
    return ended;
  }

  async::VirtualLoop loop_;
  obs::Metrics& metrics_ = shared_metrics();
  Universe universe_;
  DefaultDefinition<Universe, Item> definition_;

  static obs::Metrics& shared_metrics() {
    static obs::Metrics metrics;
    return metrics;
  }
};

/// HUBFERRY_SEED=n runs that one; HUBFERRY_CASES=n so many of them.
TEST(PhaseProperty, RandomMachinesEndAsTheirHandlersFinalResultsSay) {
  std::uint64_t first = 1;
  std::uint64_t cases = 2000;
  if (const char* text = std::getenv("HUBFERRY_CASES")) cases = std::strtoull(text, nullptr, 10);
  if (const char* text = std::getenv("HUBFERRY_SEED")) {
    first = std::strtoull(text, nullptr, 10);
    cases = 1;
  }
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    RandomMachine machine{seed};
    const auto complaints = machine.run();
    for (const auto& complaint : complaints) ADD_FAILURE() << "HUBFERRY_SEED=" << seed << ": " << complaint;
    if (!complaints.empty()) break;
  }
}

}  // namespace
}  // namespace hubferry::phase::test
