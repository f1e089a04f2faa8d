#include <gmock/gmock.h>

#include "hubferry/sim/crds.hpp"
#include "sim/served_test.hpp"
#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::app {
namespace {

using test::Process;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// `hubferry plan` as people start it, against a simulated global hub without hubs.
class PlanProcess : public testing::Test {
 protected:
  void install() {
    served_.run([](sim::Server& server, const kube::Env& env) { return sim::install_crds(server.api(), env); });
  }
  std::unique_ptr<Process> plan(const sim::User& user, const std::vector<std::string>& arguments) {
    const auto config = directory_.write("kubeconfig", served_.kubeconfig_for(user)).string();
    std::vector<std::string> command{test::hubferry_binary(), "plan", "--kubeconfig=" + config};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(command);
  }

  sim::Served served_;
  test::TemporaryDirectory directory_;
  const std::vector<std::string> move_{"--from=hub1", "--to=hub2", "--clusters=c"};
};

// A controller waits until it is let in; a person would wait for ever.
TEST_F(PlanProcess, MissingPermissionsOnTheGlobalHubAreReportedAtOnce) {
  install();
  const auto stranger = plan({.name = "stranger", .groups = {}, .uid = ""}, move_);
  EXPECT_EQ(stranger->wait(), 1);
  EXPECT_THAT(stranger->err(), AllOf(HasSubstr("forbidden"), HasSubstr("managedclusters")));
}

TEST_F(PlanProcess, AServerThatIsNotAGlobalHubIsReportedAtOnce) {
  const auto lost = plan(sim::admin(), move_);
  EXPECT_EQ(lost->wait(), 1);
  EXPECT_THAT(lost->err(), HasSubstr("does not serve ManagedClusters, so it is not a global hub"));
}

TEST_F(PlanProcess, AContextThatTheKubeconfigDoesNotHaveIsNamed) {
  install();
  const auto lost = plan(sim::admin(), {"--context=nowhere", "--from=hub1", "--to=hub2", "--clusters=c"});
  EXPECT_EQ(lost->wait(), 1);
  EXPECT_THAT(lost->err(), HasSubstr("nowhere"));
}

TEST_F(PlanProcess, AFileThatCannotBeReadIsNamedWithTheReason) {
  const auto missing = plan(sim::admin(), {"-f", "/nowhere/move.yaml"});
  EXPECT_EQ(missing->wait(), 1);
  EXPECT_EQ(missing->err(), "hubferry plan: cannot read /nowhere/move.yaml: No such file or directory\n");
  const auto directory = plan(sim::admin(), {"-f", "/"});
  EXPECT_EQ(directory->wait(), 1);
  EXPECT_EQ(directory->err(), "hubferry plan: cannot read /: Is a directory\n");
  const auto empty = plan(sim::admin(), {"-f", "/dev/null"});
  EXPECT_EQ(empty->wait(), 1);
  EXPECT_EQ(empty->err(), "hubferry plan: /dev/null: it must contain exactly one object, and is empty\n");
}

// Files come from others, too.
TEST_F(PlanProcess, AFileWithEndlessAliasesIsRejected) {
  const auto circle = directory_.write("circle.yaml", "a: &a [*a]\n").string();
  const auto endless = plan(sim::admin(), {"-f", circle});
  EXPECT_EQ(endless->wait(), 1);
  EXPECT_EQ(endless->err(),
            "hubferry plan: " + circle + ", line 1: nested too deeply, or an alias that holds itself\n");
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const auto item = "*a" + std::to_string(i - 1) + " ";
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) text += (n == 0 ? "" : ", ") + item;
    text += "]\n";
  }
  const auto bomb = plan(sim::admin(), {"-f", directory_.write("bomb.yaml", text).string()});
  EXPECT_EQ(bomb->wait(), 1);
  EXPECT_THAT(bomb->err(), HasSubstr("too many values: its aliases multiply"));
}

// As `migrate` takes them.
TEST_F(PlanProcess, ClustersAreArgumentsOrAList) {
  install();
  for (const auto& clusters : {std::vector<std::string>{"c", "d"}, {"--clusters=c,d"}, {"c", "--clusters=d", "c"}}) {
    std::vector<std::string> arguments{"--from=here", "--to=there"};
    arguments.insert(arguments.end(), clusters.begin(), clusters.end());
    const auto made = plan(sim::admin(), arguments);
    EXPECT_EQ(made->wait(), 1);
    EXPECT_THAT(made->out(), HasSubstr("Plan: here -> there, 2 clusters\n")) << made->err();
  }
  const auto both = plan(sim::admin(), {"-f", "/dev/null", "c"});
  EXPECT_EQ(both->wait(), 2);
}

// As `kubectl apply -f -` does.
TEST_F(PlanProcess, ReadsAMigrationFromStandardInput) {
  install();
  const auto config = directory_.write("kubeconfig", served_.kubeconfig_for(sim::admin())).string();
  Process shell{{"sh", "-c",
                 "echo '{apiVersion: global-hub.open-cluster-management.io/v1alpha1, kind: ManagedClusterMigration, "
                 "spec: {from: here, to: there, includedManagedClusters: [c]}}' | \"$0\" plan -f - \"$1\"",
                 test::hubferry_binary(), "--kubeconfig=" + config}};
  EXPECT_EQ(shell.wait(), 1);
  EXPECT_THAT(shell.out(), HasSubstr("Plan: here -> there"));
  Process other{
      {"sh", "-c", "echo 'kind: Other' | \"$0\" plan -f - \"$1\"", test::hubferry_binary(), "--kubeconfig=" + config}};
  EXPECT_EQ(other.wait(), 1);
  EXPECT_THAT(other.err(), StartsWith("hubferry plan: standard input: it does not contain a ManagedClusterMigration"));
}

}  // namespace
}  // namespace hubferry::app
