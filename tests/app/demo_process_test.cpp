#include <gmock/gmock.h>

#include <filesystem>

#include "support/process.hpp"

namespace hubferry::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// `hubferry demo` as people start it, through a pipe, with a place for temporary files that must be empty afterwards.
class DemoProcess : public testing::Test {
 protected:
  std::unique_ptr<Process> demo(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{hubferry_binary(), "demo"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(command,
                                     Process::Options{.environment = {"TMPDIR=" + folder_.path()}, .error_fd = {}});
  }
  bool leaves_nothing() const { return std::filesystem::is_empty(folder_.path()); }

  TemporaryFolder folder_;
};

TEST_F(DemoProcess, MovesAllClustersAndSaysSo) {
  const auto play = demo({"--clusters", "6", "--migrations", "2"});
  EXPECT_EQ(play->wait(), 0) << play->out() << play->err();
  EXPECT_THAT(play->out(),
              AllOf(HasSubstr("Success: 6 of 6 clusters are Available on hub2, 0 on hub1"),
                    HasSubstr("move-2: Completed"), HasSubstr("\nMIGRATION   RESULT"),
                    ContainsRegex("http://127.0.0.1:[0-9]+/metrics"), HasSubstr("get mcm -A"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(play->err(), "");
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, ARefusedMigrationTouchesNothing) {
  const auto play = demo({"--clusters", "3", "--migrations", "1", "--fail", "validating"});
  EXPECT_EQ(play->wait(), 0) << play->out();
  EXPECT_THAT(play->out(), AllOf(HasSubstr("Success: 0 of 3 clusters are Available on hub2, 3 on hub1"),
                                 HasSubstr("no managed cluster no-such-cluster"), Not(HasSubstr("Rollbacking"))));
}

TEST_F(DemoProcess, WhatFailsWhenItIsDeployedIsRolledBack) {
  const auto play = demo({"--clusters", "3", "--migrations", "1", "--fail", "deploying"});
  EXPECT_EQ(play->wait(), 0) << play->out();
  EXPECT_THAT(play->out(), AllOf(HasSubstr("Success: 0 of 3 clusters are Available on hub2, 3 on hub1"),
                                 HasSubstr("move-1: Rollbacking")));
}

// The hardest one: the clusters have left, nobody takes them, and they must find their way back.
TEST_F(DemoProcess, ClustersThatNobodyTakesReturn) {
  const auto play = demo({"--clusters", "4", "--migrations", "1", "--fail", "registering"});
  EXPECT_EQ(play->wait(), 0) << play->out();
  EXPECT_THAT(play->out(), AllOf(HasSubstr("Success: 0 of 4 clusters are Available on hub2, 4 on hub1"),
                                 HasSubstr("move-1: Rollbacking"), HasSubstr("no cluster was lost")));
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, CtrlCLeavesNothingBehindWheneverItComes) {
  for (const auto* moment : {"Building", "Moving", "Registering", "MIGRATION"}) {
    const auto play = demo({"--clusters", "6", "--migrations", "1", "--keep"});
    play->await_output_text(moment);
    play->signal(SIGINT);
    const auto code = play->wait();
    EXPECT_TRUE(code == 130 || code == 0) << moment << code << play->err();
    EXPECT_EQ(play->err(), "") << moment;
    EXPECT_TRUE(leaves_nothing()) << moment;
  }
}

TEST_F(DemoProcess, ASecondCtrlCIsNoReasonToLeaveFilesEither) {
  const auto play = demo({"--clusters", "6", "--migrations", "1", "--keep"});
  play->await_output_text("Moving");
  play->signal(SIGSTOP);
  play->signal(SIGINT);
  play->signal(SIGTERM);
  play->signal(SIGCONT);
  play->wait();
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, MistakesExitWith2) {
  EXPECT_EQ(demo({"--clusters", "0"})->wait(), 2);
  EXPECT_EQ(demo({"--clusters", "2", "--migrations", "3"})->wait(), 2);
  const auto misspelt = demo({"--fail", "registring"});
  EXPECT_EQ(misspelt->wait(), 2);
  EXPECT_THAT(misspelt->err(), HasSubstr("did you mean registering?"));
}

}  // namespace
}  // namespace hubferry::test
