// For each flow of a migration, the process is killed at each of its writes: before it, after it, and while it is in
// flight; with a successor at once, after a Lease, after an hour; or the answer is lost. A part of the points is run by
// default: see stride_of_matrix().
#include <gtest/gtest.h>

#include "flow_world.hpp"
#include "hubferry/migration/phases.hpp"
#include "hubferry/migration/resource.hpp"

namespace hubferry::worlds {
namespace {

namespace phases = migration::phases;

struct Flow {
  const char* name;
  std::function<void(FlowWorld&)> arrange;
  const char* ending;  // of the run without a crash
  FlowWorld::Victim victim = FlowWorld::Victim::manager;
  std::size_t index = 0;
};

void PrintTo(const Flow& flow, std::ostream* out) {
  *out << flow.name;
}

/// A person gives up on clusters whose agents are away, and later, when they are back, asks for the rollback again.
Awaitable<> leave_then_retry(FlowWorld& flow) {
  co_await flow.sleep(15min);
  std::string places;
  for (const auto& name : {flow.names[0], flow.names[1]}) places += "hub1/" + name + ",hub2/" + name + ",";
  places.pop_back();
  co_await flow.annotate(migration::names::leave_annotation, places + ",global-hub,hub1,hub2");
  co_await flow.phase_reached(phases::failed);
  for (const auto& name : flow.names) flow.switch_on(name);
  co_await flow.annotate(migration::names::leave_annotation, "");
  co_await flow.annotate(migration::names::request_annotation, migration::names::rollback_request);
  co_await flow.sleep(5min);
}

/// The target has lost a cluster that had arrived, and a person wants it back.
Awaitable<> lose_and_want_back(FlowWorld& flow) {
  flow.invariants.excuse(flow.names[1]);
  co_await flow.delete_copy(flow.names[1]);
  co_await flow.annotate(migration::names::request_annotation, migration::names::rollback_request);
}

Flow cancel_in(const char* name, const char* phase) {
  return {name, [phase](FlowWorld& flow) { flow.on_phase(phase, [&flow] { flow.spawn(flow.delete_migration()); }); },
          "gone"};
}

std::vector<Flow> flows() {
  std::vector<Flow> all{
      {"Migrate", [](FlowWorld&) {}, "Completed"},
      {"PartialFailure",
       [](FlowWorld& flow) {
         flow.on_phase(phases::registering, [&flow] { flow.switch_off(flow.names[1]); });
         flow.on_phase(phases::rollbacking, [&flow] { flow.spawn(flow.switch_on_later()); });
       },
       "Failed"},
      {"RollbackFromInitializing",
       [](FlowWorld& flow) {
         flow.world.server("hub1").faults().on({.verb = "create", .resource = "klusterletconfigs"}).always().fail(422);
       },
       "Failed"},
      {"RollbackFromDeploying",
       [](FlowWorld& flow) {
         flow.world.server("hub2")
             .faults()
             .on({.verb = "create", .resource = "klusterletaddonconfigs"})
             .always()
             .fail(422);
       },
       "Failed"},
      {"RollbackFromRegistering",
       [](FlowWorld& flow) {
         flow.on_phase(phases::registering, [&flow] { flow.switch_off_both(); });
         flow.on_phase(phases::rollbacking, [&flow] { flow.spawn(flow.switch_on_later()); });
       },
       "Failed"},
      {"RollbackFromCleaning",
       [](FlowWorld& flow) { flow.on_phase(phases::cleaning, [&flow] { flow.spawn(lose_and_want_back(flow)); }); },
       "Failed"},
      {"Retry",
       [](FlowWorld& flow) {
         flow.on_phase(phases::registering, [&flow] { flow.switch_off_both(); });
         flow.on_phase(phases::rollbacking, [&flow] { flow.spawn(leave_then_retry(flow)); });
       },
       "Failed"},
      {"CancelInPending",
       [](FlowWorld& flow) {
         flow.controller.max_concurrent = 0;  // it waits for a slot
         flow.on_phase(phases::pending, [&flow] { flow.spawn(flow.delete_migration()); });
       },
       "gone"},
      cancel_in("CancelInValidating", phases::validating),
      cancel_in("CancelInInitializing", phases::initializing),
      cancel_in("CancelInDeploying", phases::deploying),
      cancel_in("CancelInRegistering", phases::registering),
      {"CancelInRollbacking",
       [](FlowWorld& flow) {
         flow.on_phase(phases::registering, [&flow] { flow.switch_off_both(); });
         flow.on_phase(phases::rollbacking, [&flow] {
           flow.spawn(flow.delete_migration());
           flow.spawn(flow.switch_on_later());
         });
       },
       "gone"},
      cancel_in("CancelInCleaning", phases::cleaning),
      {"TheAgentsSwitch", [](FlowWorld&) {}, "Completed", FlowWorld::Victim::agents},
  };
  for (std::size_t index = 0; index < all.size(); ++index) all[index].index = index;
  return all;
}

class CrashMatrixTest : public testing::TestWithParam<Flow> {};

TEST_P(CrashMatrixTest, NoCrashLosesACluster) {
  // A prime, so that each kind of point has its turn; half a minute of a debug build.
  CrashMatrix matrix{stride_of_matrix(331), GetParam().index * 29};
  FlowWorld flow{matrix, GetParam().victim};
  GetParam().arrange(flow);
  flow.run();
  EXPECT_EQ(flow.invariants.phase_of("m1"), GetParam().ending);
  EXPECT_EQ(matrix.failures(), "");
  std::cout << GetParam().name << ": " << matrix.writes() << " writes, " << matrix.points() << " of "
            << matrix.candidates() << " points\n";
}

INSTANTIATE_TEST_SUITE_P(Flows, CrashMatrixTest, testing::ValuesIn(flows()),
                         [](const auto& flow) { return flow.param.name; });

}  // namespace
}  // namespace hubferry::worlds
