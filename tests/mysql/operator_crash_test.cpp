// The operator dies in the middle of a failover.
#include "failover_fixture.hpp"
#include "relocator/dying_api.hpp"

namespace hubferry::mysql::test {
namespace {

using relocator::test::Death;

/// One failover after the other; in each the operator dies a step later.
class OperatorCrashTest : public FailoverTest {
 protected:
  /// `arm(step)`: the operator dies at that step, if there is one. Returns how many failovers it took until one had no
  /// such step.
  std::size_t fail_over_until_it_survives(const std::function<void(std::size_t step)>& arm,
                                          const std::function<bool()>& died) {
    for (std::size_t step = 1; step < 100; ++step) {
      const auto old = primary();
      const auto before = events("FailoverSuccess");
      EXPECT_TRUE(mysql.write(mysql.at(old).address));
      const auto written = mysql.at(old).log.size();
      arm(step);
      kill_primary();
      for (int i = 0; i < 180 && !died(); ++i) run_for(500ms);
      const bool has_died = died();
      mysql.on_statement = {};
      restart_operator();
      run_for(90s);
      const auto where = "died at step " + std::to_string(step) + ": " + status_text();
      EXPECT_NE(primary(), old) << where;
      expect_one_primary_with_replicas();
      EXPECT_EQ(condition("FailoverInProgress"), "False FailoverComplete") << where;
      EXPECT_GE(mysql.at(primary()).log.size(), written) << where;
      EXPECT_EQ(phase(), "Running") << where;
      EXPECT_EQ(events("FailoverSuccess"), before + 1) << where;
      if (!has_died || HasFailure()) return step;
    }
    return 100;
  }
  void restart_operator() {
    death->buried.set();
    stop_operator();
    death = std::make_unique<Death>();
    death->counts_events = true;
    api = std::make_unique<relocator::test::DyingApi>(std::shared_ptr<kube::Api>{&server.api(), [](auto*) {}}, *death);
    operators_api = api.get();
    start_operator();
  }
  ~OperatorCrashTest() override {
    death->buried.set();
    stop_operator();
  }

  std::unique_ptr<Death> death = std::make_unique<Death>();
  std::unique_ptr<kube::Api> api;
};

TEST_F(OperatorCrashTest, AfterWhicheverStatementTheOperatorDiesItsSuccessorFinishesTheFailover) {
  given_running(R"({"failoverCoolDownSeconds": 0})");
  bool died = false;
  const auto arm = [&](std::size_t step) {
    died = false;
    mysql.on_statement = [&, step, count = std::size_t{0}, began = false](const auto&, const auto&) mutable {
      began = began || condition("FailoverInProgress").starts_with("True");
      if (died || !began || ++count != step) return;
      died = true;
      working->stop();
    };
  };
  const auto failovers = fail_over_until_it_survives(arm, [&] { return died; });
  EXPECT_GT(failovers, 10U);
  EXPECT_LT(failovers, 100U);
}

// The record, the emptied endpoints, the deleted pod, the choice, the event, the endpoints, the end: each write took
// effect, or did not, and the operator does not get to know.
TEST_F(OperatorCrashTest, AtWhicheverWriteTheOperatorDiesItsSuccessorFinishesTheFailover) {
  restart_operator();
  given_running(R"({"failoverCoolDownSeconds": 0})");
  for (const auto moment : {Death::Moment::before, Death::Moment::after}) {
    const auto arm = [&](std::size_t step) {
      death->moment = moment;
      death->at = death->writes + step;
    };
    const auto failovers = fail_over_until_it_survives(arm, [&] { return death->dead.is_set(); });
    EXPECT_GT(failovers, 5U);
    EXPECT_LT(failovers, 100U);
  }
}

}  // namespace
}  // namespace hubferry::mysql::test
