// Two operators that were deployed apart, each the leader by its own Lease, on one namespace.
#include "failover_fixture.hpp"
#include "hubferry/mysql/operator_lease.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TwoOperatorsTest : public FailoverTest {
 protected:
  /// A manager that runs the operator.
  struct Deployment : sql::Connector {
    Deployment(TwoOperatorsTest& test, std::string name) : test(test), name(std::move(name)) { scope.spawn(run()); }
    Awaitable<> run() {
      kube::LeaderElectionOptions election;
      election.ns = "db";
      election.identity = name;
      auto work = [this](kube::Fence* fence) -> Awaitable<> {
        ControllerOptions options;
        options.fence = fence;
        options.readiness = &readiness;
        Controller controller{test.server.api(), *this, test.mysql, options, test.env};
        co_await controller.run();
      };
      co_await run_as_only_operator(test.server.api(), election, &readiness, test.env, work);
    }
    void stop() {
      scope.stop();
      test.loop.run(scope.join());
    }
    Awaitable<sql::Result<std::unique_ptr<sql::Connection>>> connect(sql::Address address, sql::Credentials credentials,
                                                                     async::TimePoint deadline) override {
      ++connections;
      return test.mysql.connect(std::move(address), std::move(credentials), deadline);
    }

    TwoOperatorsTest& test;
    std::string name;
    int connections = 0;
    obs::CheckState readiness{"not started yet"};
    async::TaskScope scope{test.loop.executor()};
  };
};

TEST_F(TwoOperatorsTest, TheSecondOneWaitsAndTakesOverWhenTheFirstOneEnds) {
  stop_operator();
  Deployment alone{*this, "alone"};
  given_running(R"({"failoverCoolDownSeconds": 0})");
  Deployment beside{*this, "beside-migrations"};
  kill_primary();
  run_for(2min);
  EXPECT_EQ(primary(), "demo-1") << status_text();
  EXPECT_EQ(events("FailoverSuccess"), 1U);
  EXPECT_EQ(beside.connections, 0) << "it touched a server";
  EXPECT_THAT(beside.readiness.check()().value_or("ready"), HasSubstr("another MySQL operator, alone, has the Lease"));
  alone.stop();
  kill_primary();
  run_for(3min);
  EXPECT_NE(primary(), "demo-1") << status_text();
  EXPECT_GT(beside.connections, 0);
  EXPECT_THAT(mysql.writable(), ElementsAre(primary()));
  EXPECT_EQ(beside.readiness.check()().value_or("ready"), "ready");
  beside.stop();
}

// As with manifests that do not grant it yet.
TEST_F(TwoOperatorsTest, WithoutTheRightToTheLeaseItWorksAllTheSameAndSaysSo) {
  stop_operator();
  server.faults().on({"get", "leases"}).fail(403);
  Deployment alone{*this, "alone"};
  given_running();
  EXPECT_TRUE(log.contains("another MySQL operator would not be noticed")) << status_text();
  alone.stop();
}

}  // namespace
}  // namespace hubferry::mysql::test
