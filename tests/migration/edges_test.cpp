#include <fstream>
#include <sstream>

#include "hubferry/kube/edit.hpp"
#include "hubferry/migration/phases.hpp"
#include "hubferry/phase/decision.hpp"
#include "hubferry/phase/render.hpp"
#include "migration_test.hpp"

namespace hubferry::migration::test {
namespace {

/// When all tests of this program have run, every transition of the definition must have been taken by one of them.
class EveryEdgeIsTaken final : public testing::Environment {
 public:
  void TearDown() override {
    const auto& tests = *testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() != tests.total_test_count()) return;  // with a filter the others did not run
    const auto missing = edge_coverage().missing(phase_definition().tables());
    EXPECT_EQ(missing, "") << "no test takes these transitions of the migration's definition";
  }
};

const auto* const every_edge_is_taken = testing::AddGlobalTestEnvironment(new EveryEdgeIsTaken);

/// The server refuses to add a finalizer while `refusing`.
class RefusedFinalizerTest : public MigrationTest {
 protected:
  RefusedFinalizerTest() {
    global.add_admission(
        managed_cluster_migrations, [this](const sim::AdmissionReview& review) -> std::optional<std::string> {
          if (!refusing || review.before == nullptr || kube::has_finalizer(*review.before, names::finalizer))
            return std::nullopt;
          if (!kube::has_finalizer(kube::Object{review.after}, names::finalizer)) return std::nullopt;
          return "finalizers are not welcome here";
        });
  }

  bool refusing = false;
};

TEST_F(RefusedFinalizerTest, AMigrationThatCannotBeHeldFailsBeforeAnythingIsTouched) {
  refusing = true;
  given("m1", {"a"});
  live_until("m1", "Failed");
  expect_moved("m1", {}, {"a", "b", "c"});
}

TEST_F(RefusedFinalizerTest, ARequestedRollbackThatCannotBeHeldIsTriedUntilItCan) {
  hubs.faults["source.collect"] = {.error = FakeHubs::forbidden()};
  hubs.faults["source.roll_back"] = {.error = FakeHubs::forbidden()};
  given("m1", {"a"});
  std::vector<std::string> taken;
  options.on_transition = [&, record = options.on_transition](const phase::Transition& transition) {
    record(transition);
    taken.push_back(to_string(phase::Edge{transition.from, transition.to, transition.edge}));
  };
  live([&]() -> Awaitable<> {
    co_await reaches("m1", "Rollbacking");
    co_await annotate("m1", names::leave_annotation, "hub1,hub2");
    co_await reaches("m1", "Failed");
    co_await annotate("m1", names::leave_annotation, "");
    hubs.faults.clear();
    taken.clear();
    refusing = true;
    co_await annotate("m1", names::request_annotation, names::rollback_request);
    co_await sleep(30s);
    EXPECT_THAT(taken, testing::Contains("Failed -> Rollbacking (resume)"));
    EXPECT_THAT(taken, testing::Contains("Rollbacking -> Failed (error)"));
    EXPECT_LT(taken.size(), 20u);  // with pauses
    refusing = false;
    co_await holds([&] { return migration("m1").annotation(names::request_annotation).empty(); });
    co_await reaches("m1", "Failed");
  });
  EXPECT_THAT(condition("m1", "ResourceRolledBack"), HasSubstr("True ResourceRolledBack"));
  expect_moved("m1", {}, {"a", "b", "c"});
}

TEST(PhaseGraph, IsTheOneInTheArchitecturePage) {
  std::ifstream file{HUBFERRY_SOURCE_ROOT "/ARCHITECTURE.md"};
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_THAT(page.str(), HasSubstr("```mermaid\n" + phase::render_mermaid(phase_definition()) + "```\n"));
}

// No handler of Cleaning fails fatally; should the framework itself refuse one, the clusters have moved all the same.
TEST(CleaningEdge, AFatalErrorEndsInCompleted) {
  phase::ReconcileState broken = phase::failed("a bug");
  broken.phase = phases::cleaning;
  broken.handler = "verify";
  phase::judge(phase_definition(), broken);
  const auto decision = phase::decide(phase_definition(), phase::State{}, broken);
  EXPECT_EQ(decision.phase, phases::completed);
  edge_coverage().take({phases::cleaning, decision.phase, decision.edge});
}

}  // namespace
}  // namespace hubferry::migration::test
