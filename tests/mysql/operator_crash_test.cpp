// The operator dies in the middle of a failover.
#include "failover_fixture.hpp"

namespace hubferry::mysql::test {
namespace {

// The operator dies after each statement of a failover: the end is always the same.
TEST_F(FailoverTest, WhereverTheOperatorDiesItsSuccessorFinishesTheFailover) {
  given_running(R"({"failoverCoolDownSeconds": 0})");
  std::size_t survived = 0;
  for (std::size_t last = 1; last < 100; ++last) {
    const auto old = primary();
    const auto before = events("FailoverSuccess");
    std::size_t count = 0;
    bool died = false;
    bool is_failing_over = false;
    mysql.on_statement = [&](const std::string&, const std::string&) {
      is_failing_over = is_failing_over || condition("FailoverInProgress").starts_with("True");
      if (!is_failing_over || ++count != last) return;
      died = true;
      working->stop();
    };
    EXPECT_TRUE(mysql.write(mysql.at(old).address));
    const auto written = mysql.at(old).log.size();
    kill_primary();
    for (int i = 0; i < 240 && !died; ++i) run_for(500ms);
    mysql.on_statement = {};
    if (died) {
      stop_operator();
      start_operator();
    }
    run_for(3min);
    ASSERT_NE(primary(), old) << "died after statement " << last << status_text();
    expect_one_primary_with_replicas();
    ASSERT_EQ(condition("FailoverInProgress"), "False FailoverComplete") << last;
    ASSERT_GE(mysql.at(primary()).log.size(), written) << last;
    ASSERT_EQ(phase(), "Running");
    ASSERT_LE(events("FailoverSuccess"), before + 1);
    ++survived;
    if (!died) break;
  }
  EXPECT_GT(survived, 10U);
}

}  // namespace
}  // namespace hubferry::mysql::test
