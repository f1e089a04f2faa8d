#include <gmock/gmock.h>

#include <fstream>

#include "app/cli/server_client.hpp"
#include "hubferry/migration/resource.hpp"
#include "migration_samples.hpp"
#include "sim/served_test.hpp"
#include "support/process.hpp"
#include "support/real_loop.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::app {
namespace {

using test::Process;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// `hubferry status` as people start it, against a simulated global hub.
class StatusProcess : public testing::Test {
 protected:
  std::unique_ptr<Process> status(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{test::hubferry_binary(), "status", "--kubeconfig=" + config_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(command);
  }
  void install() {
    auto created = loop_.run(api_.create(kube::resources::custom_resource_definitions, migration_definition()));
    ASSERT_TRUE(created) << created.error();
    while (!loop_.run(api_.serves(migration::managed_cluster_migrations)).value()) std::this_thread::yield();
  }
  void add(const std::string& name, const std::string& state, const std::string& ns = "default") {
    if (ns != "default") {
      kube::json::object space{{"metadata", kube::json::object{{"name", ns}}}};
      loop_.run(api_.create(kube::resources::namespaces, space)).value();
    }
    loop_.run(api_.create(migration::managed_cluster_migrations, migration_object(name, "", ns))).value();
    if (!state.empty()) set(name, state, ns);
  }
  void set(const std::string& name, const std::string& state, const std::string& ns = "default") {
    kube::json::object patch{{"status", kube::json::parse(state)}};
    loop_.run(api_.merge_patch(migration::managed_cluster_migrations, {ns, name}, patch, "status")).value();
  }

  sim::Served served_;
  test::TemporaryDirectory directory_;
  std::string config_ = directory_.write("kubeconfig", served_.kubeconfig_for(sim::admin())).string();
  ServerClient client_{kube::load_kubeconfig(config_)};
  kube::Api& api_ = client_.api();
  test::RealLoop loop_;
};

TEST_F(StatusProcess, ListsMigrationsAndShowsOne) {
  install();
  add("m", registering_status);
  add("n", completed_status, "elsewhere");
  const auto all = status({});
  EXPECT_EQ(all->wait(), 0) << all->err();
  EXPECT_THAT(all->out(),
              AllOf(StartsWith("NAMESPACE"), HasSubstr("default"), HasSubstr("elsewhere"), Not(HasSubstr("\x1b"))));
  const auto few = status({"-n", "elsewhere"});
  EXPECT_EQ(few->wait(), 0);
  EXPECT_THAT(few->out(), AllOf(StartsWith("NAME "), Not(HasSubstr("Registering"))));
  const auto one = status({"n"});
  EXPECT_EQ(one->wait(), 0);
  EXPECT_THAT(one->out(), StartsWith("Migration:  elsewhere/n\n"));
  const auto yaml = status({"n", "-o", "yaml"});
  EXPECT_EQ(yaml->wait(), 0);
  EXPECT_THAT(yaml->out(), HasSubstr("\n  phase: Completed\n"));
  EXPECT_THAT(yaml->out(), StartsWith("apiVersion: global-hub.open-cluster-management.io/v1alpha1\nkind: "
                                      "ManagedClusterMigration\nmetadata:\n  name: \"n\"\n  namespace: elsewhere\n"));
  const auto list = status({"-A", "-o=json"});
  EXPECT_EQ(list->wait(), 0);
  EXPECT_THAT(list->out(), StartsWith("{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",\n  \"items\": [\n    {\n"));
  EXPECT_EQ(kube::json::parse(list->out()).at("items").as_array().size(), 2U);
}

TEST_F(StatusProcess, MistakesAreReportedClearly) {
  const auto none = status({});
  EXPECT_EQ(none->wait(), 1);
  EXPECT_THAT(none->err(), AllOf(HasSubstr("does not serve ManagedClusterMigrations"), HasSubstr("kubectl apply -k")));
  install();
  const auto empty = status({});
  EXPECT_EQ(empty->wait(), 0);
  EXPECT_EQ(empty->out(), "No migrations found.\n");
  add("move", "");
  const auto missing = status({"mvoe"});
  EXPECT_EQ(missing->wait(), 1);
  EXPECT_EQ(missing->err(), "hubferry status: no migration 'mvoe' found (did you mean move?)\n");
  add("move", "", "elsewhere");
  const auto twice = status({"move"});
  EXPECT_EQ(twice->wait(), 1);
  EXPECT_THAT(twice->err(), HasSubstr("default, elsewhere; select one with --namespace"));
  const auto misspelt = status({"-o", "xml"});
  EXPECT_EQ(misspelt->wait(), 2);
}

// Who may move the clusters of one namespace's migrations sees no others: the way on is a flag.
TEST_F(StatusProcess, WhoMayReadOneNamespaceOnlyIsToldToNameIt) {
  install();
  add("m", completed_status);
  const auto create = [&](const kube::Resource& kind, const char* text) {
    auto made = loop_.run(api_.create(kind, kube::json::parse(text).as_object()));
    ASSERT_TRUE(made) << made.error();
  };
  create(kube::resources::cluster_roles, R"({"metadata": {"name": "mover"}, "rules": [{
    "apiGroups": ["global-hub.open-cluster-management.io"], "resources": ["managedclustermigrations"],
    "verbs": ["get", "list", "watch"]}]})");
  create(kube::resources::role_bindings, R"({"metadata": {"name": "jane", "namespace": "default"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mover"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]})");
  config_ = directory_.write("jane", served_.kubeconfig_for({.name = "jane", .groups = {}, .uid = ""})).string();
  for (const auto& arguments : {std::vector<std::string>{}, {"m"}, {"m", "--watch"}}) {
    const auto all = status(arguments);
    EXPECT_EQ(all->wait(), 1);
    EXPECT_THAT(all->err(),
                AllOf(HasSubstr("forbidden"), HasSubstr("select a namespace that you may read with --namespace")));
  }
  const auto one = status({"-n", "default"});
  EXPECT_EQ(one->wait(), 0) << one->err();
  EXPECT_THAT(one->out(), HasSubstr("Completed"));
  const auto watched = status({"m", "-n", "default", "--watch"});
  EXPECT_EQ(watched->wait(), 0) << watched->err();
  Process cancelled{{test::hubferry_binary(), "cancel", "m", "--kubeconfig=" + config_}};
  EXPECT_EQ(cancelled.wait(), 1);
  EXPECT_THAT(cancelled.err(), HasSubstr("with --namespace"));
}

// `hubferry status "$NAME"` with a variable that nobody set.
TEST_F(StatusProcess, AnEmptyNameIsNotTakenForAllMigrations) {
  install();
  const auto nameless = status({""});
  EXPECT_EQ(nameless->wait(), 2);
  EXPECT_THAT(nameless->err(), HasSubstr("NAME: '' is not a migration's name"));
}

TEST_F(StatusProcess, AnUnreachableServerIsNamed) {
  config_ = directory_
                .write("nowhere",
                       "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
                       "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                       "users: [{name: u, user: {}}]\ncurrent-context: c\n")
                .string();
  const auto lost = status({});
  EXPECT_EQ(lost->wait(), 1);
  EXPECT_THAT(lost->err(), HasSubstr("cannot reach API server http://127.0.0.1:1"));
}

// It is the plugin that failed, not the server that rejected something. What it asks for is shown also without a
// terminal.
TEST_F(StatusProcess, WhatACredentialPluginSaysIsShown) {
  config_ = directory_
                .write("with-plugin",
                       "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
                       "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                       "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, "
                       "args: ['-c', 'echo enter ABCD at https://login >&2; echo session has expired >&2; exit 3'], "
                       "interactiveMode: IfAvailable}}}]\n"
                       "current-context: c\n")
                .string();
  const auto failed = status({});
  EXPECT_EQ(failed->wait(), 1);
  EXPECT_THAT(failed->err(), HasSubstr("enter ABCD at https://login\nsession has expired\n"));
  EXPECT_THAT(failed->err(), HasSubstr("ended with exit code 3"));
}

TEST_F(StatusProcess, AWatchFollowsTheMigrationAndEndsWithIt) {
  install();
  add("m", registering_status);
  const auto watch = status({"m", "--watch"});
  watch->await_output_text("Registering 1/4");
  set("m", completed_status);
  EXPECT_EQ(watch->wait(), 0);
  EXPECT_THAT(watch->out(), HasSubstr("Completed 4/4"));
}

TEST_F(StatusProcess, AWatchWithAClosedOutputEndsSilently) {
  install();
  add("m", registering_status);
  // Nothing changes any more: it must notice all the same.
  Process shell{{"sh", "-c", "{ \"$0\" status --watch \"$1\"; echo code $? >&2; } | head -1", test::hubferry_binary(),
                 "--kubeconfig=" + config_}};
  EXPECT_EQ(shell.wait(), 0);
  EXPECT_THAT(shell.out(), HasSubstr("Registering 1/4"));
  EXPECT_EQ(shell.err(), "code 141\n");
}

TEST_F(StatusProcess, AClosedTerminalEndsAWatchGracefully) {
  install();
  add("m", registering_status);
  const auto watch = status({"--watch"});
  watch->await_output_text("Registering 1/4");
  watch->signal(SIGHUP);
  EXPECT_EQ(watch->wait(), 0);
}

// 0 would tell a script that the migration has completed.
TEST_F(StatusProcess, CtrlCBeforeTheEndOfAMigrationIsNotSuccess) {
  install();
  add("m", registering_status);
  const auto watch = status({"m", "--watch"});
  watch->await_output_text("Registering 1/4");
  watch->signal(SIGINT);
  EXPECT_EQ(watch->wait(), 130);
}

TEST_F(StatusProcess, CtrlCEndsAWatchGracefully) {
  install();
  add("m", registering_status);
  const auto watch = status({"--watch"});
  watch->await_output_text("Registering 1/4");
  watch->signal(SIGINT);
  EXPECT_EQ(watch->wait(), 0);
}

}  // namespace
}  // namespace hubferry::app
