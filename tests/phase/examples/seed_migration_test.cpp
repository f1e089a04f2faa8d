// The migration of the seed's unit tests, as a definition of its own and with its own names: initialize, precheck with
// nested parallel checks, migrate in order.
#include <gtest/gtest.h>

#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/phase/default_definition.hpp"
#include "hubferry/phase/machine.hpp"

namespace hubferry::phase::test::seed_migration {
namespace {

using namespace std::chrono_literals;

struct Migration {
  struct Status {
    Phase phase;
    States state;
  } status;
};

struct Resources {
  std::map<std::string, Migration*> by_name;
};

using MigrationContext = Context<Resources>;
using Handlers = Handler<Resources, Migration>;

const Phase initialize = "初始化";
const Phase precheck = "资源预检";
const Phase migrate = "资源迁移";
const Phase success = "迁移成功";
const Phase prefailed = "预检失败";
const Phase migration_failed = "迁移失败";

Awaitable<ReconcileState> at_once(MigrationContext& context, Migration&, const State&) {
  context.log().info("done at once");
  co_return done();
}
Awaitable<ReconcileState> in_a_second(MigrationContext& context, Migration&, const State&) {
  co_await context.clock().sleep_for(1s);
  co_return done();
}

class SeedMigrationTest : public testing::Test {
 protected:
  SeedMigrationTest() {
    definition.delay = 5s;
    // Straight into memory: the resource that a handler sees is the one that is kept.
    definition.fetch_resource = [](Resources& resources, Key key) -> Awaitable<Result<std::optional<Migration>>> {
      co_return std::optional<Migration>{*resources.by_name.at(key.name)};
    };
    definition.persist_status = [this](Resources&, Migration& changed) -> Awaitable<Written> {
      migration = changed;
      co_return Written::ok();
    };
    definition.initial = initialize;
    definition.terminals = {
        {success, Ending::success}, {prefailed, Ending::failure}, {migration_failed, Ending::failure}};
    definition.normal = {{initialize, precheck}, {precheck, migrate}, {migrate, success}};
    definition.error = {{initialize, prefailed}, {precheck, prefailed}, {migrate, migration_failed}};
    definition.handlers.emplace(initialize, Handlers::leaf({}, at_once));
  }

  void with_parallel_precheck() {
    auto network = Handlers::parallel({.name = "网络预检"}, {Handlers::leaf({.name = "私有网络预检"}, in_a_second),
                                                             Handlers::leaf({.name = "子网预检"}, in_a_second)});
    definition.handlers.insert_or_assign(
        precheck, Handlers::parallel({}, {Handlers::leaf({.name = "实例预检"}, in_a_second), std::move(network),
                                          Handlers::leaf({.name = "存储预检"}, in_a_second)}));
  }
  void with_migration(Handlers::Function storage) {
    definition.handlers.insert_or_assign(
        migrate, Handlers::serial({.name = "资源迁移"}, {Handlers::leaf({.name = "实例迁移"}, at_once),
                                                         Handlers::leaf({.name = "存储迁移"}, std::move(storage)),
                                                         Handlers::leaf({.name = "网络迁移"}, at_once)}));
  }

  Phase reconcile_and_wait() {
    definition.normalize();
    resources.by_name["m"] = &migration;
    Machine<Resources, Migration> machine{definition, resources, {loop.clock(), random, metrics, obs::Logger{}}};
    for (;;) {
      const auto result = loop.run(machine.reconcile({"default", "m"}));
      if (result.outcome != Reconciled::Outcome::again) return migration.status.phase;
      loop.run_for(result.after);
    }
  }

  async::VirtualLoop loop;
  async::Random random{1};
  obs::Metrics metrics;
  Migration migration;
  Resources resources;
  DefaultDefinition<Resources, Migration> definition;
};

TEST_F(SeedMigrationTest, WithNoHandlerForPrecheckEndsInPrefailed) {
  EXPECT_EQ(reconcile_and_wait(), prefailed);
  EXPECT_TRUE(migration.status.state[initialize].completed());
  EXPECT_TRUE(migration.status.state[precheck].done);
  EXPECT_TRUE(migration.status.state[precheck].failed);
  EXPECT_TRUE(migration.status.state[precheck].fatal);
}

TEST_F(SeedMigrationTest, WithAnEmptyPrecheckEndsInPrefailed) {
  definition.handlers.insert_or_assign(precheck, Handlers::serial({}, {}));
  EXPECT_EQ(reconcile_and_wait(), prefailed);
  EXPECT_TRUE(migration.status.state[precheck].error.starts_with("invalid composite handler"));
}

TEST_F(SeedMigrationTest, AParallelPrecheckPassesInOneSecondAndTheMissingMigrationFails) {
  with_parallel_precheck();
  EXPECT_EQ(reconcile_and_wait(), migration_failed);
  EXPECT_TRUE(migration.status.state[precheck].completed());
  EXPECT_EQ(loop.clock().now() - async::TimePoint{}, 1s);
}

TEST_F(SeedMigrationTest, TheNormalCodePathSucceeds) {
  with_parallel_precheck();
  with_migration(at_once);
  EXPECT_EQ(reconcile_and_wait(), success);
  for (const auto& phase : {initialize, precheck, migrate}) EXPECT_TRUE(migration.status.state[phase].completed());
}

TEST_F(SeedMigrationTest, AFailureOfTheStorageLeavesTheNetworkUntouched) {
  with_parallel_precheck();
  with_migration([](MigrationContext&, Migration&, const State&) -> Awaitable<ReconcileState> {
    co_return failed("failed to migrate storage");
  });
  EXPECT_EQ(reconcile_and_wait(), migration_failed);
  const auto& state = migration.status.state[migrate];
  EXPECT_TRUE(state.component("存储迁移").fatal);
  EXPECT_TRUE(state.component("网络迁移").never_ran());
}

TEST_F(SeedMigrationTest, TheStorageNoticesItsFormerFailure) {
  with_parallel_precheck();
  with_migration([](MigrationContext&, Migration&, const State& last) -> Awaitable<ReconcileState> {
    EXPECT_FALSE(last.fatal);
    co_return last.failed ? failed("failed to migrate storage") : failed(Error::network("connection closed"));
  });
  EXPECT_EQ(reconcile_and_wait(), migration_failed);
  EXPECT_TRUE(migration.status.state[migrate].component("存储迁移").fatal);
  EXPECT_EQ(loop.clock().now() - async::TimePoint{}, 6s);
}

}  // namespace
}  // namespace hubferry::phase::test::seed_migration
