#include "relocator/refusal_text.hpp"
#include "state_test.hpp"

/// What is not moved, and the reason in the condition.
namespace hubferry::relocator::test {
namespace {

TEST_F(StateTest, TwoRelocatorsThatMatchMoveNothing) {
  given_move();
  given_relocator("a");
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True MultipleMatchingRelocators: several ClusterRelocators match: a, r1"));
}

TEST_F(StateTest, AMissingSecretIsNamedAndNothingIsAnnotated) {
  given_deployment();
  given_relocator();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True MissingKubeconfigSecret"));
  // Nobody watches the Secret: a retry finds it.
  given_secret();
  live_until([&] { return has_moved(); });
}

struct Kubeconfig {
  const char* name;
  std::string text;
  const char* message;

  friend void PrintTo(const Kubeconfig& kubeconfig, std::ostream* out) { *out << kubeconfig.name; }
};

/// A kubeconfig with that cluster, user and context.
std::string kubeconfig_with(const std::string& cluster, const std::string& user, const std::string& context) {
  return R"({"clusters": [{"name": "c", "cluster": {)" + cluster + R"(}}], "users": [{"name": "u", "user": {)" + user +
         R"(}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": ")" +
         context + "\"}";
}

class KubeconfigTest : public StateTest, public testing::WithParamInterface<Kubeconfig> {};

// A user corrects it: the next retry finds that, and nothing was lost meanwhile.
TEST_P(KubeconfigTest, ThatCannotBeUsedIsNamedWithoutItsContentAndMovesNothing) {
  given_secret("to-destination", GetParam().text);
  given_deployment();
  given_relocator();
  destination.server.forget_requests();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True NoConnection: kubeconfig of the destination: Secret hive/to-destination: "));
  EXPECT_THAT(condition(), HasSubstr(GetParam().message));
  EXPECT_THAT(condition() + testing::PrintToString(log.lines()) + testing::PrintToString(events("NoConnection")),
              Not(HasSubstr("hunter2")));
  EXPECT_THAT(writes(destination.server), Not(Contains("create namespaces")));
  point_at(destination.server);
  live_until([&] { return has_moved(); });
  expect_moved();
}

const std::string to_the_destination = R"("server": "https://destination.sim")";

INSTANTIATE_TEST_SUITE_P(
    Malformed, KubeconfigTest,
    testing::Values(
        Kubeconfig{"Garbage", "token: [hunter2\n\t}: {", "not valid YAML at line 2"},
        Kubeconfig{"Binary", std::string("\0\xff\xfehunter2", 10), "not valid YAML"},
        Kubeconfig{"List", "- hunter2", "is not a YAML mapping"},
        Kubeconfig{"NoCurrentContext", kubeconfig_with(to_the_destination, R"("token": "hunter2")", ""),
                   "current-context: is not set"},
        Kubeconfig{"UnknownContext", kubeconfig_with(to_the_destination, R"("token": "hunter2")", "y"),
                   "there is no context 'y'"},
        Kubeconfig{"NoServer", kubeconfig_with("", R"("token": "hunter2")", "x"), "clusters[c].server: is missing"},
        Kubeconfig{"Http", kubeconfig_with(R"("server": "http://destination.sim")", R"("token": "hunter2")", "x"),
                   "not https"},
        Kubeconfig{"Exec",
                   kubeconfig_with(to_the_destination,
                                   R"("exec": {"apiVersion": "client.authentication.k8s.io/v1",
                                                           "command": "/bin/sh", "args": ["hunter2"]})",
                                   "x"),
                   "users[u].exec: must not run a program"},
        Kubeconfig{"AuthProvider",
                   kubeconfig_with(to_the_destination,
                                   R"("auth-provider": {"name": "gcp", "config": {"cmd": "hunter2"}})", "x"),
                   "users[u].auth-provider: no longer supported"},
        Kubeconfig{"TokenFile", kubeconfig_with(to_the_destination, R"("tokenFile": "/etc/passwd")", "x"),
                   "users[u].tokenFile: must not refer to a file"},
        Kubeconfig{"ClientKeyFile",
                   kubeconfig_with(to_the_destination,
                                   R"("client-certificate": "/etc/passwd", "client-key": "/etc/shadow")", "x"),
                   "users[u].client-certificate: must not refer to a file"},
        Kubeconfig{"AuthorityFile",
                   kubeconfig_with(to_the_destination + R"(, "certificate-authority": "/etc/passwd")",
                                   R"("token": "hunter2")", "x"),
                   "clusters[c].certificate-authority: must not refer to a file"}),
    [](const auto& which) { return which.param.name; });

TEST_F(StateTest, WhileTheDestinationCannotBeReachedHiveWorksOnTheSource) {
  given_move();
  destination.server.outage(true);
  live([&]() -> Awaitable<> {
    co_await sleep(1min);
    source.hive.forget_actions();
    const json::object set = json::parse(R"({"metadata": {"name": "ss", "namespace": "prod"},
                                             "spec": {"clusterDeploymentRefs": [{"name": "c1"}]}})")
                                 .as_object();
    co_await source.server.api().create(ocm::sync_sets, set);
    co_await sleep(1min);
  });
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True NoConnection"));
  EXPECT_GE(source.hive.count("sync prod/c1"), 1u);
  destination.server.outage(false);
  live_until([&] { return has_moved(); });
}

TEST_F(StateTest, OneThatAUserHasPausedIsLeftAlone) {
  given_secret();
  given_deployment(R"(, "annotations": {"hive.openshift.io/reconcile-pause": "true"})");
  given_relocator();
  const auto version = std::string{on_source(ocm::cluster_deployments, "c1")->resource_version()};
  live_for(10min);
  EXPECT_EQ(on_source(ocm::cluster_deployments, "c1")->resource_version(), version);
}

TEST_F(StateTest, OneThatIsProtectedFromDeletionIsRefusedBeforeTheMove) {
  given_secret();
  given_deployment(R"(, "annotations": {"hive.openshift.io/protected-delete": "true"})");
  given_relocator();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True ProtectedDelete"));
}

// Hive reads it as Go's strconv.ParseBool does.
TEST_F(StateTest, EverySpellingOfTheProtectionFromDeletionCounts) {
  given_secret();
  int number = 0;
  for (const auto* value : {"1", "t", "T", "TRUE", "True"})
    given_deployment(R"(, "annotations": {"hive.openshift.io/protected-delete": ")" + std::string{value} + R"("})", "",
                     "p" + std::to_string(number++));
  given_relocator();
  live_for(1min);
  for (int i = 0; i < number; ++i) {
    const auto name = "p" + std::to_string(i);
    EXPECT_TRUE(is_on_source(name));
    EXPECT_THAT(condition(name), HasSubstr("True ProtectedDelete"));
  }
}

// While it is paused, Hive does not stop an installation that runs; and the destination would start a second one.
TEST_F(StateTest, OneThatIsNotInstalledIsRefusedAndMovesOnceItIs) {
  given_secret();
  given_deployment("", R"(, "installed": false)");
  given_relocator();
  live_for(10min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True NotInstalled"));
  EXPECT_EQ(source.server.count(ocm::cluster_provisions), 1u);
  EXPECT_EQ(destination.hive.count("provision"), 0u);
  live([&]() -> Awaitable<> {
    co_await sleep(1min);
    const auto patch = json::parse(R"({"spec": {"installed": true}})");
    co_await source.server.api().merge_patch(ocm::cluster_deployments, {"prod", "c1"}, patch.as_object());
    co_await holds([&] { return has_moved(); });
  });
  expect_moved();
  EXPECT_EQ(destination.hive.count("provision"), 0u);
}

TEST_F(StateTest, AClusterRelocateOfHiveThatMatchesTooIsNotCompetedWith) {
  create(ocm::cluster_relocates, R"({"metadata": {"name": "hives-own", "namespace": "hive"}, "spec":
      {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
  given_move();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("True HiveClusterRelocateMatches: Hive's own ClusterRelocate hives-own matches"));
}

TEST_F(StateTest, OneThatHiveItselfMovesIsLeftAlone) {
  given_secret();
  given_deployment(R"(, "annotations": {"hive.openshift.io/relocate": "hives-own/outgoing"})");
  given_relocator();
  const auto version = std::string{on_source(ocm::cluster_deployments, "c1")->resource_version()};
  live_for(10min);
  EXPECT_EQ(on_source(ocm::cluster_deployments, "c1")->resource_version(), version);
}

TEST_F(StateTest, ANamespaceThatTheDestinationRefusesStopsTheMoveBeforeHiveIsPaused) {
  given_move();
  destination.server.faults().on({.verb = "create", .resource = "namespaces"}).always().fail(403);
  live_for(10min);
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy Namespace prod"));
  expect_untouched();
  EXPECT_THAT(history, Not(Contains(HasSubstr("outgoing"))));
  destination.server.faults().clear();
  live_until([&] { return has_moved(); });
  expect_moved();
}

TEST_F(StateTest, ADestinationThatDoesNotAnswerTheCreationOfANamespaceIsAskedAgain) {
  given_move();
  destination.server.faults().on({.verb = "create", .resource = "namespaces"}).times(2).reset_after();
  live_for(2s);
  EXPECT_THAT(condition(), HasSubstr("True NoConnection: cannot copy Namespace prod"));
  EXPECT_THAT(history, Not(Contains(HasSubstr("outgoing"))));
  live_until([&] { return has_moved(); });
  expect_moved();
}

TEST_F(StateTest, ADestinationWithoutHiveIsRefusedBeforeHiveIsPaused) {
  given_move();
  sim::Server bare{sim::Options{.name = "bare"}, quiet};
  network.add("https://bare.sim", bare);
  point_at(bare);
  live_for(10min);
  EXPECT_THAT(condition(), HasSubstr("True NoConnection: the destination's ClusterDeployments cannot be listed"));
  expect_untouched();
  EXPECT_THAT(history, Not(Contains(HasSubstr("outgoing"))));
  EXPECT_FALSE(bare.object(kube::resources::namespaces, {"", "prod"}));
}

TEST_F(StateTest, ARefusalThatQuotesASecretDoesNotBecomeReadable) {
  given_move();
  create(kube::resources::secrets,
         R"({"metadata": {"name": "pull", "namespace": "prod"}, "data": {"password": "aHVudGVyMjI="}})");
  std::string quoted;
  destination.server.add_admission(
      kube::resources::secrets,
      [&quoted](const sim::AdmissionReview&) -> std::optional<std::string> { return "not allowed: " + quoted; });
  for (const auto* text : {"aHVudGVyMjI=", "hunter22", "hunter", "unter22", "VudGVyM"}) {
    quoted = text;
    live_for(10min);
    EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy Secret prod/pull: the destination refuses it"));
    for (const auto& note : events("MoveFailed")) EXPECT_THAT(note, Not(HasSubstr(quoted)));
    for (const auto& line : log.lines()) EXPECT_THAT(line, Not(HasSubstr(quoted)));
  }
}

// A name is no secret, but in the middle of a value it is not a name.
TEST(RefusalText, OfASecretOfAShortNameQuotesNothing) {
  const auto secret =
      kube::json::parse(R"({"metadata": {"name": "e", "namespace": "prod"}, "data": {"password": "aHVudGVyMjI="}})")
          .as_object();
  kube::Error error{kube::ErrorKind::forbidden, 403, "Forbidden", "not allowed: hunter22", std::nullopt};
  EXPECT_THAT(refusal_text(kube::resources::secrets, secret, error), Not(HasSubstr("hunt")));
  error.message = R"(secrets "e" is forbidden in namespace "prod")";
  EXPECT_THAT(refusal_text(kube::resources::secrets, secret, error), HasSubstr("secrets \"e\" is forbidden"));
}

TEST(RefusalText, OfASyncSetDoesNotQuoteTheSecretsInIt) {
  const auto set = kube::json::parse(R"({"metadata": {"name": "set", "namespace": "prod"}, "spec": {"resources": [
      {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter22"}}]}})")
                       .as_object();
  kube::Error error{kube::ErrorKind::invalid, 422, "Invalid", "spec.resources[0].stringData: \"hunter22\"",
                    std::nullopt};
  EXPECT_THAT(refusal_text(ocm::sync_sets, set, error), Not(HasSubstr("hunt")));
  error.message = "exceeded quota: few";
  EXPECT_THAT(refusal_text(ocm::sync_sets, set, error), HasSubstr("exceeded quota: few"));
}

// It may quote it in any form.
TEST_F(StateTest, WhatAWebhookSaysOfASecretIsNotShownButItsNameIs) {
  given_move();
  create(kube::resources::secrets,
         R"({"metadata": {"name": "pull", "namespace": "prod"}, "data": {"password": "aHVudGVyMjI="}})");
  std::string message;
  destination.server.add_admission(
      kube::resources::secrets,
      [&message](const sim::AdmissionReview&) -> std::optional<std::string> { return message; });
  for (const auto* text :
       {R"(admission webhook "keys.example.com" denied the request: HUNTER22)",
        R"(ValidatingAdmissionPolicy 'keys.example.com' with binding 'b' denied request: HUNTER22)"}) {
    message = text;
    live_for(10min);
    EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy Secret prod/pull: the destination refuses it"));
    EXPECT_THAT(condition(), HasSubstr("keys.example.com"));
    for (const auto& note : events("MoveFailed")) EXPECT_THAT(note, Not(HasSubstr("HUNTER")));
    for (const auto& line : log.lines()) EXPECT_THAT(line, Not(HasSubstr("HUNTER")));
  }
}

TEST_F(StateTest, ARefusalOfASecretThatQuotesNothingOfItIsShown) {
  given_move();
  create(kube::resources::secrets,
         R"({"metadata": {"name": "pull", "namespace": "prod"}, "data": {"password": "aHVudGVyMjI="}})");
  destination.server.add_admission(
      kube::resources::secrets,
      [](const sim::AdmissionReview&) -> std::optional<std::string> { return "exceeded quota: objects"; });
  live_for(1min);
  EXPECT_THAT(condition(), HasSubstr("cannot copy Secret prod/pull: forbidden (403 Forbidden)"));
  EXPECT_THAT(condition(), HasSubstr("exceeded quota: objects"));
}

}  // namespace
}  // namespace hubferry::relocator::test
