#include <gmock/gmock.h>

#include <filesystem>

#include "support/descriptors.hpp"
#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* log_name = "manager.log\n";

/// `hubferry demo` as people start it, through a pipe, with a place for temporary files that must be empty afterwards.
class DemoProcess : public testing::Test {
 protected:
  std::unique_ptr<Process> demo(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{hubferry_binary(), "demo"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(
        command, Process::Options{.environment = {"TMPDIR=" + directory_.path().string()}, .error_fd = {}});
  }
  bool leaves_nothing() const { return std::filesystem::is_empty(directory_.path()); }

  TemporaryDirectory directory_;
};

TEST_F(DemoProcess, MovesAllClustersAndSaysSo) {
  const auto play = demo({"--clusters", "6", "--migrations", "2"});
  EXPECT_EQ(play->wait(), 0) << play->out() << play->err();
  EXPECT_THAT(play->out(),
              AllOf(HasSubstr("Success: 6 of 6 clusters are Available on hub2, 0 on hub1"),
                    HasSubstr("move-2: Completed"), HasSubstr("\nMIGRATION  RESULT"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(play->out(), AllOf(Not(HasSubstr("get mcm")), HasSubstr("With --keep everything stays running")))
      << "what is gone is no place to look";
  EXPECT_EQ(play->err(), "");
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, WhatIsKeptCanBeLookedAt) {
  const auto play = demo({"--clusters", "2", "--migrations", "1", "--keep"});
  play->await_output_text(log_name);  // the last line
  EXPECT_THAT(play->out(),
              AllOf(HasSubstr("  export KUBECONFIG=" + directory_.path().string()), HasSubstr("  hubferry status\n"),
                    HasSubstr("  kubectl get mcm -A\n"), ContainsRegex("curl http://127.0.0.1:[0-9]+/metrics")));
  play->signal(SIGHUP);
  EXPECT_EQ(play->wait(), 0) << play->err();
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, InItAPlanTellsAllProblemsByItsExitCodeToo) {
  const auto play = demo({"--clusters", "2", "--migrations", "1", "--fail", "deploying", "--keep"});
  play->await_output_text(log_name);
  const auto config = std::filesystem::directory_iterator(directory_.path())->path() / "global.kubeconfig";
  const auto plan = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> command{hubferry_binary(), "plan",      "--kubeconfig=" + config.string(),
                                     "--from=hub1",     "--to=hub2", "--output=json"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(command);
  };
  const auto good = plan({"--clusters=cluster-00001"});
  EXPECT_EQ(good->wait(), 0) << good->out() << good->err();
  const auto bad = plan({"--clusters=cluster-00001,nobody,nothing"});
  EXPECT_EQ(bad->wait(), 1);
  EXPECT_THAT(bad->out(), AllOf(HasSubstr("\n  \"possible\": false,\n"), HasSubstr("\n  \"problems\": [\n    {\n"),
                                HasSubstr("no managed cluster nobody"), HasSubstr("no managed cluster nothing")));
  const auto lost = plan({"--clusters=cluster-00001", "--carried-resources=/nowhere/file"});
  EXPECT_EQ(lost->wait(), 1);
  EXPECT_EQ(lost->err(), "hubferry plan: cannot read /nowhere/file: No such file or directory (--carried-resources)\n");
  Process kubectl{{"kubectl", "--kubeconfig=" + config.string(), "get", "mcm"}};
  EXPECT_EQ(kubectl.wait(), 0) << kubectl.err();
  EXPECT_THAT(kubectl.out(), AllOf(ContainsRegex("CLUSTERS +FAILED +REASON +AGE"),
                                   ContainsRegex("move-1 +Failed .* 0/2 +2 +ResourceInvalid ")));
}

// As `hubferry demo | head -1` does.
TEST_F(DemoProcess, NobodyReadingIsNoReasonToLeaveFilesOrToComplain) {
  Process shell{{"sh", "-c", "{ \"$0\" demo --clusters 3 --migrations 1 --keep; echo code $? >&2; } | head -1",
                 hubferry_binary()},
                Process::Options{.environment = {"TMPDIR=" + directory_.path().string()}, .error_fd = {}}};
  EXPECT_EQ(shell.wait(), 0);
  EXPECT_EQ(shell.err(), "code 141\n");
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, OfAFailureTheLogIsLeftAndNothingElse) {
  HUBFERRY_SKIP_WHERE_DESCRIPTORS_ARE_NEEDED();
  // Too few file descriptors for so many connections.
  Process shell{{"sh", "-c", "ulimit -n 20; exec \"$0\" demo --clusters 3 --migrations 1", hubferry_binary()},
                Process::Options{.environment = {"TMPDIR=" + directory_.path().string()}, .error_fd = {}}};
  EXPECT_EQ(shell.wait(), 1);
  EXPECT_THAT(shell.err(),
              AllOf(HasSubstr("Too many open files\nThe manager's log was kept: " + directory_.path().string()),
                    HasSubstr(log_name)));
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) left.push_back(entry.path());
  ASSERT_EQ(left.size(), 1U);
  EXPECT_THAT(shell.err(), HasSubstr(left.front().string()));
  EXPECT_TRUE(std::filesystem::is_regular_file(left.front()));
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
                                 HasSubstr("move-1: Rollbacking"), HasSubstr("\nmove-1 failed: ResourceInvalid: "),
                                 HasSubstr("\n  cluster-00001: ResourceInvalid: ")));
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
  for (const auto* moment : {"Starting", "Moving", "Registering", "MIGRATION"}) {
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
