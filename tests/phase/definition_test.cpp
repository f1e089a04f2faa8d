#include "hubferry/phase/definition.hpp"

#include <gmock/gmock.h>

#include "phase_test.hpp"

namespace hubferry::phase::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DefinitionTest : public PhaseTest {
 protected:
  std::vector<std::string> problems() {
    try {
      definition.normalize();
    } catch (const DefinitionError& error) {
      for (const auto& problem : error.problems()) EXPECT_THAT(error.what(), HasSubstr(problem));
      return error.problems();
    }
    return {};
  }
};

TEST_F(DefinitionTest, TheTestsOwnDefinitionIsFine) {
  EXPECT_THAT(problems(), ElementsAre());
}

TEST_F(DefinitionTest, TheErrorOfAnEmptyDefinitionListsAllThatIsMissing) {
  definition = TestDefinition{};
  EXPECT_THAT(problems(), ElementsAre("fetch_resource is missing", "persist_status is missing",
                                      "there is no initial phase", "there is no terminal phase"));
}

TEST_F(DefinitionTest, AResourceWithoutStatusFieldsNeedsAccessors) {
  DefaultDefinition<World, int> plain;
  plain.initial = "a";
  plain.terminals = {{"z", Ending::success}};
  plain.normal = plain.error = {{"a", "z"}};
  plain.fetch_resource = [](World&, Key) -> Awaitable<Result<std::optional<int>>> { co_return std::optional<int>{}; };
  plain.persist_status = [](World&, int&) -> Awaitable<Written> { co_return Written::ok(); };
  EXPECT_THROW(plain.normalize(), DefinitionError);
  plain.get_phase = [](const int&) { return Phase{}; };
  plain.put_phase = [](int&, const Phase&) {};
  plain.get_state = [](const int&, const Phase&) { return State{}; };
  plain.put_state = [](int&, const Phase&, const State&) {};
  plain.normalize();
}

TEST_F(DefinitionTest, EveryPhaseThatIsNotTerminalNeedsBothTransitions) {
  definition.error.erase("precheck");
  definition.normal["migrate"] = "cleanup";
  EXPECT_THAT(problems(), testing::IsSupersetOf({"phase 'precheck': it is not terminal and has no error transition",
                                                 "phase 'cleanup': it is not terminal and has no normal transition",
                                                 "phase 'cleanup': it is not terminal and has no error transition"}));
}

TEST_F(DefinitionTest, TerminalPhasesGoNowhereAndDoNothing) {
  definition.normal["success"] = "initialize";
  handle("failed", leaf("never", always(done())));
  EXPECT_THAT(problems(), ElementsAre("phase 'success': it is terminal but has a normal transition",
                                      "phase 'failed': it is terminal but has a handler, which would never run"));
}

TEST_F(DefinitionTest, TheInitialPhaseIsNotTerminal) {
  definition.initial = "success";
  EXPECT_THAT(problems(), testing::Contains("phase 'success': it is the initial phase and cannot be terminal as well"));
}

TEST_F(DefinitionTest, AMachineMustBeAbleToEnd) {
  definition.normal["precheck"] = "precheck";
  EXPECT_THAT(problems(), ElementsAre("phase 'precheck': its normal transition leads back to itself"));
  definition.normal["precheck"] = "migrate";
  definition.normal["migrate"] = "initialize";
  definition.error = {{"initialize", "precheck"}, {"precheck", "migrate"}, {"migrate", "precheck"}};
  EXPECT_THAT(problems(), testing::Contains("phase 'migrate': no terminal phase can be reached from it"));
}

TEST_F(DefinitionTest, AHandlerForAPhaseThatTheTablesDoNotKnowIsATypo) {
  handle("migarte", leaf("x", always(done())));
  EXPECT_THAT(problems(), ElementsAre("phase 'migarte': it has a handler but no transitions"));
}

TEST_F(DefinitionTest, ComponentsNeedNamesOfTheirOwn) {
  handle("migrate", Handlers::serial(
                        {}, {leaf("a", always(done())), leaf("a", always(done())),
                             Handlers::parallel({}, {leaf("b", always(done()))}), Handlers::leaf({}, always(done()))}));
  EXPECT_THAT(problems(), ElementsAre("phase 'migrate', handler 'migrate': two of its components are named 'a'",
                                      "phase 'migrate', handler 'migrate': its component 3, a composite, has no name",
                                      "phase 'migrate', handler 'migrate': its component 4 has no name"));
}

TEST_F(DefinitionTest, CousinsMayShareAName) {
  handle("migrate", Handlers::serial({}, {Handlers::serial(named("a"), {leaf("x", always(done()))}),
                                          Handlers::serial(named("b"), {leaf("x", always(done()))})}));
  EXPECT_THAT(problems(), ElementsAre());
}

TEST_F(DefinitionTest, ALeafNeedsAFunctionAndAnObjectDetailARenderer) {
  Metadata detailed;
  detailed.view = View::object_detail;
  handle("precheck", Handlers::leaf({}, nullptr));
  handle("migrate", Handlers::leaf(detailed, always(done())));
  EXPECT_THAT(problems(), testing::Contains(HasSubstr("'migrate': its view is objectDetail")));
}

TEST_F(DefinitionTest, AComponentOfAParallelCompositeHasNoNextOneToMakeACheckpointBefore) {
  Metadata careful = named("careful");
  careful.checkpoint = true;
  handle("precheck", Handlers::parallel({}, {Handlers::serial(named("steps"), {Handlers::leaf(careful, always(done())),
                                                                               leaf("next", always(done()))})}));
  EXPECT_THAT(problems(), ElementsAre());
  handle("precheck", Handlers::parallel({}, {Handlers::leaf(careful, always(done()))}));
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("its component 'careful' asks for a checkpoint")));
}

TEST_F(DefinitionTest, ForcedTransitionsLeadFromAWorkingPhaseToOneThatExists) {
  definition.forced = {{"precheck", "nowhere"}, {"success", "initialize"}};
  EXPECT_THAT(problems(),
              ElementsAre("phase 'nowhere': a forced transition names it, but it does not exist",
                          "phase 'success': it is terminal but has a forced transition: declare a resumption"));
}

TEST_F(DefinitionTest, ResumptionsLeadFromATerminalPhaseBackToWorkUnderACondition) {
  const auto always_wanted = [](const Item&) { return true; };
  definition.resumptions = {{"failed", "migrate", "", always_wanted, {}},
                            {"precheck", "migrate", "", always_wanted, {}},
                            {"failed", "success", "", always_wanted, {}},
                            {"failed", "precheck", "", {}, {}}};
  EXPECT_THAT(problems(), ElementsAre("phase 'failed': its resumption has no condition (wanted)",
                                      "phase 'precheck': it has a resumption but is not terminal",
                                      "phase 'failed': its resumption leads to the terminal phase 'success'"));
}

TEST_F(DefinitionTest, ADelayMustBePositive) {
  definition.delay = 0s;
  EXPECT_THAT(problems(), ElementsAre("the requeue delay must be positive"));
}

TEST_F(DefinitionTest, RootsAreNamedAfterTheirPhaseUnlessTheyHaveAName) {
  handle("migrate", leaf("move everything", always(done())));
  definition.normalize();
  EXPECT_EQ(definition.handler_for("precheck")->name(), "precheck");
  EXPECT_EQ(definition.handler_for("migrate")->name(), "move everything");
  EXPECT_EQ(definition.handler_for("nowhere"), nullptr);
}

TEST_F(DefinitionTest, ForEachHandlerWalksAllMetadataInOrder) {
  handle("precheck", Handlers::parallel({.name = {}, .description = "checks", .view = View::checklist},
                                        {leaf("vpc", always(done())),
                                         Handlers::serial(named("disks"), {leaf("size", always(done()))})}));
  definition.normalize();
  std::vector<std::string> seen;
  for_each_handler(definition, [&](const Phase& phase, const HandlerNode& handler, std::size_t depth) {
    seen.push_back(phase + "/" + std::string(depth, '+') + handler.name() + "/" +
                   std::string{to_string(handler.metadata.view)});
  });
  EXPECT_THAT(seen, ElementsAre("initialize/initialize/none", "precheck/precheck/checklist", "precheck/+vpc/none",
                                "precheck/+disks/none", "precheck/++size/none", "migrate/migrate/none"));
}

/// Implements every function of the interface.
class CountDown final : public Definition<World, int> {
 public:
  CountDown() {
    tables_.initial = "counting";
    tables_.terminals = {{"zero", Ending::success}, {"broken", Ending::failure}};
    tables_.normal = {{"counting", "zero"}};
    tables_.error = {{"counting", "broken"}};
  }
  int value = 3;
  Phase phase_;
  State state_;

  const Tables& tables() const override { return tables_; }
  const HandlerNode* handler_for(const Phase& of) const override {
    return of == "counting" ? &handler_.node() : nullptr;
  }
  async::Duration requeue_delay() const override { return 1s; }
  Awaitable<Result<std::optional<int>>> fetch(World&, Key, bool) override { co_return std::optional<int>{value}; }
  Awaitable<Written> persist(World&, int& resource) override {
    value = resource;
    co_return Written::ok();
  }
  Phase phase(const int&) const override { return phase_; }
  void set_phase(int&, const Phase& to) override { phase_ = to; }
  State state(const int&, const Phase& of) const override { return of == "counting" ? state_ : State{}; }
  void set_state(int&, const Phase& of, const State& state) override {
    if (of == "counting") state_ = state;
  }
  bool is_modified(const int& resource) const override { return resource != value; }

 private:
  static Awaitable<ReconcileState> count(Context<World>&, int& resource, const State&) {
    co_return --resource == 0 ? done() : not_done();
  }
  Tables tables_;
  Handler<World, int> handler_ = Handler<World, int>::leaf({.name = "count"}, count);
};

TEST_F(DefinitionTest, TheInterfaceCanBeImplementedDirectly) {
  CountDown definition;
  definition.check();
  Machine<World, int> machine{definition, world, env()};
  for (int turn = 0; turn < 2; ++turn) EXPECT_EQ(loop.run(machine.reconcile(key)).outcome, Reconciled::Outcome::again);
  EXPECT_EQ(loop.run(machine.reconcile(key)).phase, "zero");
  EXPECT_EQ(definition.value, 0);
}

}  // namespace
}  // namespace hubferry::phase::test
