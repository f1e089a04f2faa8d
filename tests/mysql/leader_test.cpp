// What must hold whatever else is under way: one leader, one failover.
#include "failover_fixture.hpp"
#include "hubferry/kube/fence.hpp"

namespace hubferry::mysql::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A term of leadership that the test ends.
class EndingTerm final : public kube::Fence {
 public:
  [[nodiscard]] kube::LeaderEpoch epoch() const override { return {"test", 1}; }
  [[nodiscard]] async::TimePoint until() const override { return end; }
  [[nodiscard]] async::Duration least_time() const override { return 1s; }
  Awaitable<bool> confirm() override { co_return is_confirmed; }
  Awaitable<bool> outrank(std::int64_t) override { co_return true; }
  async::TimePoint end = async::never;
  bool is_confirmed = true;
};

bool is_reading(const std::string& statement) {
  return statement.starts_with("SELECT ") || statement.starts_with("SHOW ");
}

class LeaderTest : public LastCopyTest {
 protected:
  ~LeaderTest() override { stop_operator(); }
  void start_operator_with_a_term() {
    stop_operator();
    ControllerOptions options;
    options.fence = &term;
    controller = std::make_unique<Controller>(server.api(), mysql, mysql, options, env);
    working = std::make_unique<async::TaskScope>(loop.executor());
    working->spawn(controller->run());
  }
  void record_changes() {
    mysql.on_statement = [this](const std::string& pod, const std::string& statement) {
      if (!is_reading(statement)) changes.push_back(pod + ": " + statement);
    };
  }
  std::vector<std::string> changes;
  EndingTerm term;
};

// A process that was paused in a failover would make a server writable that its successor has fenced since then.
TEST_F(LeaderTest, AfterTheEndOfItsTermItChangesNothingOnTheServers) {
  start_operator_with_a_term();
  given_running();
  kill_primary();
  run_until_chosen("demo-1");
  record_changes();
  term.end = loop.clock().now();
  run_for(2min);
  EXPECT_THAT(changes, IsEmpty());
  EXPECT_THAT(mysql.writable(), IsEmpty()) << status_text();
  term.end = async::never;
  run_for(3min);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-1")) << status_text();
}

// It would take the endpoint and the pod from a primary that its successor has made.
TEST_F(LeaderTest, AfterTheEndOfItsTermItDeletesNoPodAndMovesNoEndpoint) {
  start_operator_with_a_term();
  given_running();
  mysql.at("demo-0").hangs = true;
  for (int i = 0; i < 120000 && !condition("FailoverInProgress").starts_with("True"); ++i) run_for(1ms);
  ASSERT_TRUE(condition("FailoverInProgress").starts_with("True")) << status_text();
  const auto uid = std::string{server.object(kinds::pods, {"db", "demo-0"})->uid()};
  term.end = loop.clock().now();
  server.forget_requests();
  run_for(2min);
  EXPECT_EQ(server.object(kinds::pods, {"db", "demo-0"})->uid(), uid);
  EXPECT_THAT(writers(), ElementsAre("demo-0"));
  EXPECT_THAT(writes_since_forgotten(), IsEmpty());
  term.end = async::never;
  run_for(3min);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-1")) << status_text();
}

// The Lease has another holder, though this term has not ended by the clock of this process.
TEST_F(LeaderTest, WithoutTheLeaseItDeletesNoPod) {
  start_operator_with_a_term();
  given_running();
  const auto uid = std::string{server.object(kinds::pods, {"db", "demo-0"})->uid()};
  term.is_confirmed = false;
  mysql.at("demo-0").hangs = true;
  run_for(2min);
  EXPECT_EQ(server.object(kinds::pods, {"db", "demo-0"})->uid(), uid) << status_text();
  EXPECT_EQ(primary(), "demo-0");
  term.is_confirmed = true;
  run_for(3min);
  EXPECT_THAT(mysql.writable(), ElementsAre("demo-1")) << status_text();
}

// Scenario 40.
TEST_F(LeaderTest, WhileAFailoverIsRecordedNoOtherPathChangesAServer) {
  given_last_copy_on_demo_2();
  cut_off_demo_2();
  mysql.at("demo-0").away = true;
  for (int i = 0; i < 120 && condition_message("FailoverInProgress").find("waiting for demo-2") == std::string::npos;
       ++i)
    run_for(1s);
  ASSERT_THAT(condition_message("FailoverInProgress"), HasSubstr("waiting for demo-2")) << status_text();
  // Each of these would be corrected at any other time.
  mysql.at("demo-1").read_only = false;
  mysql.at("demo-1").semi_sync = true;
  mysql.at("demo-1").replica->sql = false;
  patch(R"({"spec": {"readOnly": true, "semiSync": false, "rootPassword": "second", "config": "max_connections=9"}})");
  record_changes();
  run_for(40s);
  for (const auto& change : changes) EXPECT_THAT(change, testing::EndsWith("STOP SLAVE IO_THREAD")) << status_text();
  EXPECT_FALSE(changes.empty()) << "the failover itself goes on";
  EXPECT_FALSE(mysql.at("demo-1").read_only);
}

}  // namespace
}  // namespace hubferry::mysql::test
