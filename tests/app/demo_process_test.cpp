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

TEST_F(DemoProcess, MigratesAllClustersAndReportsIt) {
  const auto run = demo({"--clusters", "6", "--migrations", "2"});
  EXPECT_EQ(run->wait(), 0) << run->out() << run->err();
  EXPECT_THAT(run->out(),
              AllOf(HasSubstr("Success: 6 of 6 clusters are Available on hub2, 0 on hub1"),
                    HasSubstr("move-2: Completed"), HasSubstr("\nMIGRATION  RESULT"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(run->out(), AllOf(Not(HasSubstr("get mcm")), HasSubstr("With --keep everything stays running")))
      << "what is gone is no place to look";
  EXPECT_EQ(run->err(), "");
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, KeepLeavesEverythingRunning) {
  const auto run = demo({"--clusters", "2", "--migrations", "1", "--keep"});
  run->await_output_text(log_name);  // the last line
  EXPECT_THAT(run->out(),
              AllOf(HasSubstr("  export KUBECONFIG=" + directory_.path().string()),
                    HasSubstr("  " + std::filesystem::canonical(test::hubferry_binary()).string() + " status\n"),
                    HasSubstr("  kubectl get mcm -A\n"), ContainsRegex("curl http://127.0.0.1:[0-9]+/metrics")));
  run->signal(SIGHUP);
  EXPECT_EQ(run->wait(), 0) << run->err();
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, APlanReportsAllProblemsAndExitsWith1) {
  const auto run = demo({"--clusters", "2", "--migrations", "1", "--fail", "deploying", "--keep"});
  run->await_output_text(log_name);
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

TEST_F(DemoProcess, ClusterDeploymentsAreRelocatedAndNothingIsDestroyed) {
  const auto run = demo({"--relocate", "--clusters", "4"});
  EXPECT_EQ(run->wait(), 0) << run->out() << run->err();
  EXPECT_THAT(run->out(), AllOf(HasSubstr("cluster-3: relocating: Hive is paused on hub1\n"),
                                HasSubstr("Success: 4 of 4 ClusterDeployments are on hub2, 0 on hub1, 0 clusters were "
                                          "deprovisioned")));
}

TEST_F(DemoProcess, WithoutMariaDbItSaysWhatToInstall) {
  Process run{{hubferry_binary(), "demo", "--mysql"},
              Process::Options{.environment = {"PATH=/nowhere", "TMPDIR=" + directory_.path().string()}}};
  EXPECT_EQ(run.wait(), 1) << run.out();
  EXPECT_THAT(run.err(), AllOf(HasSubstr("these programs were not found: "), HasSubstr("mariadb-install-db"),
                               HasSubstr("apt-get install mariadb-server prometheus-mysqld-exporter")));
  EXPECT_TRUE(leaves_nothing());
  const auto both = demo({"--mysql", "--relocate"});
  EXPECT_EQ(both->wait(), 2);
}

// As `hubferry demo | head -1` does.
TEST_F(DemoProcess, AClosedOutputLeavesNoFilesAndNoError) {
  Process shell{{"sh", "-c", "{ \"$0\" demo --clusters 3 --migrations 1 --keep; echo code $? >&2; } | head -1",
                 hubferry_binary()},
                Process::Options{.environment = {"TMPDIR=" + directory_.path().string()}, .error_fd = {}}};
  EXPECT_EQ(shell.wait(), 0);
  EXPECT_EQ(shell.err(), "code 141\n");
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, AfterAFailureOnlyTheLogIsKept) {
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

TEST_F(DemoProcess, ARejectedMigrationChangesNothing) {
  const auto run = demo({"--clusters", "3", "--migrations", "1", "--fail", "validating"});
  EXPECT_EQ(run->wait(), 0) << run->out();
  EXPECT_THAT(run->out(), AllOf(HasSubstr("Success: 0 of 3 clusters are Available on hub2, 3 on hub1"),
                                HasSubstr("no managed cluster no-such-cluster"), Not(HasSubstr("Rollbacking"))));
}

TEST_F(DemoProcess, ClustersThatFailInDeployingAreRolledBack) {
  const auto run = demo({"--clusters", "3", "--migrations", "1", "--fail", "deploying"});
  EXPECT_EQ(run->wait(), 0) << run->out();
  EXPECT_THAT(run->out(), AllOf(HasSubstr("Success: 0 of 3 clusters are Available on hub2, 3 on hub1"),
                                HasSubstr("move-1: Rollbacking"), HasSubstr("\nmove-1 failed: ResourceInvalid: "),
                                HasSubstr("\n  cluster-00001: ResourceInvalid: ")));
}

// The hardest one: the clusters are detached, cannot register on the target, and must return to the source.
TEST_F(DemoProcess, ClustersThatCannotRegisterAreRolledBack) {
  const auto run = demo({"--clusters", "4", "--migrations", "1", "--fail", "registering"});
  EXPECT_EQ(run->wait(), 0) << run->out();
  EXPECT_THAT(run->out(), AllOf(HasSubstr("Success: 0 of 4 clusters are Available on hub2, 4 on hub1"),
                                HasSubstr("move-1: Rollbacking"), HasSubstr("no cluster was lost")));
  EXPECT_TRUE(leaves_nothing());
}

TEST_F(DemoProcess, CtrlCAtAnyTimeLeavesNoFiles) {
  for (const auto* moment : {"Starting", "Moving", "Registering", "MIGRATION"}) {
    const auto run = demo({"--clusters", "6", "--migrations", "1", "--keep"});
    run->await_output_text(moment);
    run->signal(SIGINT);
    const auto code = run->wait();
    EXPECT_TRUE(code == 130 || code == 0) << moment << code << run->err();
    EXPECT_EQ(run->err(), "") << moment;
    EXPECT_TRUE(leaves_nothing()) << moment;
  }
}

TEST_F(DemoProcess, ASecondCtrlCLeavesNoFilesEither) {
  const auto run = demo({"--clusters", "6", "--migrations", "1", "--keep"});
  run->await_output_text("Moving");
  run->signal(SIGSTOP);
  run->signal(SIGINT);
  run->signal(SIGTERM);
  run->signal(SIGCONT);
  run->wait();
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
