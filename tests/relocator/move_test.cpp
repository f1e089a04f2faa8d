#include "relocator_test.hpp"

/// Matching, and what a move copies.
namespace hubferry::relocator::test {
namespace {

class MoveTest : public RelocatorTest {
 protected:
  /// The label of a copy from the source.
  std::string origin() { return R"(, "labels": {"hubferry.io/relocated-from": ")" + identity(source.server) + R"("})"; }
};

/// Hive's own relocation controller is disabled: nobody else writes the condition.
class QuietHiveTest : public RelocatorTest {
 protected:
  QuietHiveTest() : RelocatorTest({.relocate_controller = false}) {}
};

std::string secret(const std::string& name, const std::string& ns = "prod",
                   const std::string& value = "YQ==", const std::string& more = "",
                   const std::string& more_metadata = "") {
  return R"({"metadata": {"name": ")" + name + R"(", "namespace": ")" + ns + "\"" + more_metadata +
         R"(}, "data": {"a": ")" + value + R"("})" + more + "}";
}

TEST_F(MoveTest, WithoutARelocatorNothingMoves) {
  given_secret();
  given_deployment();
  live_for(1min);
  expect_untouched();
  EXPECT_THAT(condition(), HasSubstr("False NoMatchingRelocators"));
}

TEST_F(QuietHiveTest, TheFirstPassOnlyInitializesTheCondition) {
  given_move();
  live_until([&] { return has_moved(); });
  ASSERT_GE(history.size(), 4u);
  EXPECT_EQ(history[0], "c1: none, -, -, -");
  EXPECT_EQ(history[1], "c1: Unknown Initialized, -, -, -");
  EXPECT_EQ(history[2], "c1: Unknown Initialized, r1, -, r1/outgoing");
}

TEST_F(MoveTest, AMatchingClusterDeploymentMovesWithItsSpec) {
  given_move();
  const auto before = on_source(ocm::cluster_deployments, "c1");
  live([&]() -> Awaitable<> {
    co_await holds([&] { return has_moved(); });
    co_await sleep(1min);
  });
  expect_moved();
  const auto copy = on_destination(ocm::cluster_deployments, "c1");
  EXPECT_EQ(*copy->find({"spec"}), *before->find({"spec"}));
  EXPECT_EQ(copy->find({"status", "powerState"}), nullptr);
  EXPECT_EQ(copy->label("hive-instance"), "hive2");
  EXPECT_TRUE(destination.server.object(kube::resources::namespaces, {"", "prod"}).has_value());
  EXPECT_EQ(annotation(copy, names::relocating), "-");
  EXPECT_EQ(annotation(copy, names::role), "-");
  EXPECT_EQ(metric("hive_cluster_relocations", "r1"), 1);
  EXPECT_THAT(events("Relocated"), testing::SizeIs(1));
}

TEST_F(MoveTest, TheCopyArrivesWithTheAnnotationsOfAnArrival) {
  given_move();
  std::vector<std::string> seen;
  destination.server.add_admission(
      ocm::cluster_deployments, [&](const sim::AdmissionReview& review) -> std::optional<std::string> {
        if (review.before != nullptr) return std::nullopt;
        const Object copy{review.after};
        for (const auto* key : {names::relocating, names::role, "hive.openshift.io/relocate",
                                "hive.openshift.io/reconcile-pause", names::relocated})
          seen.push_back(annotation(copy, key));
        return std::nullopt;
      });
  live_until([&] { return has_moved(); });
  EXPECT_THAT(seen, testing::ElementsAre("r1", "incoming", "r1/incoming", "-", "-"));
}

TEST_F(MoveTest, ARelocatorWhoseSelectorDoesNotMatchMovesNothing) {
  given_secret();
  given_deployment();
  given_relocator("r1", "hive3");
  live_for(1min);
  expect_untouched();
}

TEST_F(MoveTest, ANamespaceThatExistsOnTheDestinationIsUsed) {
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod", "labels": {"kept": "yes"}}})",
         &destination.server);
  given_move();
  live_until([&] { return has_moved(); });
  EXPECT_EQ(destination.server.object(kube::resources::namespaces, {"", "prod"})->label("kept"), "yes");
}

TEST_F(MoveTest, OnlySecretsThatBelongToTheClusterDeploymentAreCopied) {
  given_move();
  create(kube::resources::secrets, secret("c1-kubeconfig"));
  create(kube::resources::secrets, secret("pull", "prod", "cHVsbA=="));
  create(kube::resources::secrets, R"({"metadata": {"name": "labelled", "namespace": "prod", "labels":
      {"hive.openshift.io/cluster-deployment-name": "c1"}}, "type": "Opaque", "data": {"a": "Yg=="}})");
  create(kube::resources::secrets, secret("of-somebody-else"));
  create(kube::resources::secrets, secret("pull", "other"));
  live_until([&] { return has_moved(); });
  for (const auto* name : {"c1-kubeconfig", "pull", "labelled"}) {
    const auto copy = on_destination(kube::resources::secrets, name);
    ASSERT_TRUE(copy) << name;
    EXPECT_EQ(*copy->find({"data"}), *on_source(kube::resources::secrets, name)->find({"data"}));
  }
  EXPECT_FALSE(on_destination(kube::resources::secrets, "of-somebody-else"));
  EXPECT_FALSE(on_destination(kube::resources::secrets, "pull", "other"));
}

TEST_F(MoveTest, TheWholeNamespaceIsCopiedIfTheRelocatorSaysSo) {
  given_secret();
  given_deployment();
  create(kube::resources::secrets, secret("one"));
  create(kube::resources::secrets, secret("two"));
  create(kube::resources::secrets, secret("elsewhere", "other"));
  given_relocator("r1", "hive2", true);
  live_until([&] { return has_moved(); });
  EXPECT_TRUE(on_destination(kube::resources::secrets, "one"));
  EXPECT_TRUE(on_destination(kube::resources::secrets, "two"));
  EXPECT_FALSE(on_destination(kube::resources::secrets, "elsewhere", "other"));
  EXPECT_FALSE(on_destination(kube::resources::secrets, "to-destination", "hive"));
}

TEST_F(MoveTest, TheKubeconfigOfTheDestinationIsNotCopied) {
  given_deployment();
  given_relocator("r1", "hive2", true, "to-destination");
  change(cluster_relocators, {"", "r1"}, R"({"spec": {"kubeconfigSecretRef": {"namespace": "prod"}}})");
  given_secret();
  auto moved = on_source(kube::resources::secrets, "to-destination", "hive")->json();
  moved["metadata"] = json::object{{"name", "to-destination"}, {"namespace", "prod"}};
  create(kube::resources::secrets, json::serialize(moved));
  live_until([&] { return has_moved(); });
  EXPECT_FALSE(on_destination(kube::resources::secrets, "to-destination"));
}

TEST_F(MoveTest, AnEqualSecretOnTheDestinationIsNotTouchedAndACopyOfOursThatDiffersIsUpdated) {
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  create(kube::resources::secrets, secret("pull"), &destination.server);
  create(kube::resources::secrets, secret("c1-kubeconfig", "prod", "b2xk", "", origin()), &destination.server);
  create(kube::resources::secrets, secret("pull"));
  create(kube::resources::secrets, secret("c1-kubeconfig", "prod", "bmV3"));
  const auto equal = std::string{on_destination(kube::resources::secrets, "pull")->resource_version()};
  const auto uid = std::string{on_destination(kube::resources::secrets, "c1-kubeconfig")->uid()};
  given_move();
  live_until([&] { return has_moved(); });
  EXPECT_EQ(on_destination(kube::resources::secrets, "pull")->resource_version(), equal);
  const auto updated = on_destination(kube::resources::secrets, "c1-kubeconfig");
  EXPECT_EQ(updated->string_at({"data", "a"}), "bmV3");
  EXPECT_EQ(updated->uid(), uid);  // in place: there is no moment without it
}

TEST_F(MoveTest, ASecretWhoseUpdateIsRefusedIsReplaced) {
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  create(kube::resources::secrets, secret("pull", "prod", "b2xk", "", origin()), &destination.server);
  create(kube::resources::secrets, secret("pull", "prod", "bmV3"));
  destination.server.faults().on({.verb = "update", .resource = "secrets"}).times(1).fail(422);
  given_move();
  live_until([&] { return has_moved(); });
  EXPECT_EQ(on_destination(kube::resources::secrets, "pull")->string_at({"data", "a"}), "bmV3");
}

TEST_F(MoveTest, AnObjectOnTheDestinationThatDiffersAndIsNotACopyOfOursIsNotTouched) {
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  const auto set = [](const std::string& mode) {
    return R"({"metadata": {"name": "ss", "namespace": "prod"}, "spec": {"resourceApplyMode": ")" + mode +
           R"(", "clusterDeploymentRefs": [{"name": "c1"}]}})";
  };
  const auto from_elsewhere = R"(, "labels": {"hubferry.io/relocated-from": "another-hub"})";
  create(kube::resources::secrets, secret("pull", "prod", "b2xk"), &destination.server);
  create(kube::resources::secrets, secret("pull", "prod", "bmV3"));
  given_move();
  // Not even if the server would only accept a new one.
  destination.server.faults().on({.verb = "update"}).always().fail(422);
  const auto uid = std::string{on_destination(kube::resources::secrets, "pull")->uid()};
  live_for(1min);
  EXPECT_EQ(on_destination(kube::resources::secrets, "pull")->string_at({"data", "a"}), "b2xk");
  EXPECT_EQ(on_destination(kube::resources::secrets, "pull")->uid(), uid);
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy Secret prod/pull: the destination has one that "
                                     "differs and was not copied from this hub"));
  destination.server.faults().clear();
  remove(kube::resources::secrets, {"prod", "pull"}, &destination.server);
  create(kube::resources::secrets, secret("pull", "prod", "b2xk", "", from_elsewhere), &destination.server);
  live_for(1min);
  EXPECT_EQ(on_destination(kube::resources::secrets, "pull")->string_at({"data", "a"}), "b2xk");
  remove(kube::resources::secrets, {"prod", "pull"}, &destination.server);
  create(ocm::sync_sets, set("Sync"), &destination.server);
  create(ocm::sync_sets, set("Upsert"));
  live_for(1min);
  EXPECT_EQ(on_destination(ocm::sync_sets, "ss")->string_at({"spec", "resourceApplyMode"}), "Sync");
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed: cannot copy SyncSet prod/ss"));
  EXPECT_FALSE(is_on_destination());
  remove(ocm::sync_sets, {"prod", "ss"}, &destination.server);
  live_until([&] { return has_moved(); });
  EXPECT_EQ(on_destination(kube::resources::secrets, "pull")->label(names::relocated_from), identity(source.server));
}

// The pull secret of a namespace: the first ClusterDeployment has arrived, and an administrator there has changed it.
TEST_F(MoveTest, ACopyThatAnotherClusterThereMayUseIsNotOverwritten) {
  create(kube::resources::secrets, secret("pull", "prod", "bmV3"));
  create(kube::resources::secrets, secret("c2-kubeconfig", "prod", "bmV3"));
  given_move();
  live_until([&] { return has_moved(); });
  change(kube::resources::secrets, {"prod", "pull"}, R"({"data": {"a": "dGhlaXJz"}})", &destination.server);
  given_deployment("", "", "c2");
  live_for(1min);
  EXPECT_EQ(on_destination(kube::resources::secrets, "pull")->string_at({"data", "a"}), "dGhlaXJz");
  EXPECT_THAT(condition("c2"), HasSubstr("True MoveFailed: cannot copy Secret prod/pull: the destination has one that "
                                         "differs, which ClusterDeployment c1 there may use"));
  change(kube::resources::secrets, {"prod", "pull"}, R"({"data": {"a": "dGhlaXJz"}})");
  live_until([&] { return has_moved("c2"); });
  expect_moved("c2");
}

TEST_F(MoveTest, AnObjectOfAnotherClusterDeploymentOnTheDestinationIsNotOverwritten) {
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  create(kube::resources::secrets, R"({"metadata": {"name": "pull", "namespace": "prod", "labels":
      {"hive.openshift.io/cluster-deployment-name": "c9"}}, "data": {"a": "b2xk"}})",
         &destination.server);
  create(kube::resources::secrets, secret("pull"));
  given_move();
  live_for(1min);
  EXPECT_EQ(on_destination(kube::resources::secrets, "pull")->string_at({"data", "a"}), "b2xk");
  EXPECT_THAT(condition(), HasSubstr("belongs to ClusterDeployment c9"));
  EXPECT_FALSE(is_on_destination());
}

std::string pool(const std::string& more_metadata = "", const std::string& status = "1") {
  return R"({"metadata": {"name": "c1-worker", "namespace": "prod")" + more_metadata + R"(},
             "spec": {"name": "worker", "replicas": 3, "clusterDeploymentRef": {"name": "c1"}},
             "status": {"replicas": )" +
         status + "}}";
}

TEST_F(MoveTest, AMachinePoolThatDiffersInStatusOrFinalizersOnlyIsNotReplaced) {
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  create(ocm::machine_pools, pool("", "7"), &destination.server);
  create(ocm::machine_pools, pool(R"(, "finalizers": ["hive.openshift.io/remotemachineset"])"));
  const auto uid = std::string{on_destination(ocm::machine_pools, "c1-worker")->uid()};
  const auto generation = on_destination(ocm::machine_pools, "c1-worker")->generation();
  given_move();
  live_until([&] { return has_moved(); });
  EXPECT_EQ(on_destination(ocm::machine_pools, "c1-worker")->uid(), uid);
  EXPECT_EQ(on_destination(ocm::machine_pools, "c1-worker")->generation(), generation);
  EXPECT_THAT(writes(destination.server), Not(Contains("delete machinepools.hive.openshift.io")));
}

TEST_F(MoveTest, TokensOfServiceAccountsAndWhatTheyOwnAreNotCopied) {
  given_secret();
  given_deployment();
  create(kube::resources::secrets, R"({"metadata": {"name": "token", "namespace": "prod"},
                                       "type": "kubernetes.io/service-account-token"})");
  create(kube::resources::secrets, R"({"metadata": {"name": "dockercfg", "namespace": "prod", "ownerReferences":
      [{"apiVersion": "v1", "kind": "Secret", "name": "token", "uid": ")" +
                                       std::string{on_source(kube::resources::secrets, "token")->uid()} + R"("}]}})");
  create(kube::resources::secrets, secret("ordinary"));
  given_relocator("r1", "hive2", true);
  live_until([&] { return has_moved(); });
  EXPECT_TRUE(on_destination(kube::resources::secrets, "ordinary"));
  EXPECT_FALSE(on_destination(kube::resources::secrets, "token"));
  EXPECT_FALSE(on_destination(kube::resources::secrets, "dockercfg"));
}

TEST_F(MoveTest, ASecretWhoseOwnerIsMissingStopsTheMove) {
  given_secret();
  given_deployment();
  create(kube::resources::secrets, R"({"metadata": {"name": "orphan", "namespace": "prod", "finalizers": ["a.b/keep"],
      "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "nobody", "uid": "u"}]}})");
  given_relocator("r1", "hive2", true);
  live_for(1min);
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed: Secret orphan is owned by Secret nobody, which does not exist"));
  EXPECT_FALSE(is_on_destination());
  expect_no_deprovision();
}

TEST_F(MoveTest, EveryKindIsCopiedAndNothingElse) {
  given_secret();
  given_deployment();
  for (const auto* name : {"kube-root-ca.crt", "openshift-service-ca.crt", "ordinary"})
    create(kube::resources::config_maps,
           R"({"metadata": {"name": ")" + std::string{name} + R"(", "namespace": "prod"}})");
  create(ocm::machine_pools, pool());
  create(ocm::sync_sets, R"({"metadata": {"name": "ss", "namespace": "prod"},
                             "spec": {"clusterDeploymentRefs": [{"name": "c0"}, {"name": "c1"}]}})");
  create(ocm::sync_identity_providers, R"({"metadata": {"name": "sip", "namespace": "prod"},
                                           "spec": {"clusterDeploymentRefs": [{"name": "c1"}]}})");
  create(kube::resources::service_accounts, R"({"metadata": {"name": "sa", "namespace": "prod"}})");
  given_relocator("r1", "hive2", true);
  live_until([&] { return has_moved(); });
  const auto names_of = [&](const kube::Resource& kind) {
    std::vector<std::string> names;
    for (const auto& object : destination.server.objects(kind, "prod")) names.emplace_back(object.name());
    return names;
  };
  EXPECT_THAT(names_of(kube::resources::config_maps), testing::ElementsAre("ordinary"));
  EXPECT_THAT(names_of(ocm::machine_pools), testing::ElementsAre("c1-worker"));
  EXPECT_THAT(names_of(ocm::sync_sets), testing::ElementsAre("ss"));
  EXPECT_THAT(names_of(ocm::sync_identity_providers), testing::ElementsAre("sip"));
  EXPECT_THAT(names_of(kube::resources::service_accounts), IsEmpty());
  // Which the ClusterDeployment does not own stays behind on the source.
  EXPECT_TRUE(on_source(ocm::sync_sets, "ss"));
}

TEST_F(MoveTest, SyncSetsOfOtherClusterDeploymentsAreNotCopiedByDefault) {
  given_move();
  create(ocm::sync_sets, R"({"metadata": {"name": "ours", "namespace": "prod"}, "spec": {"clusterDeploymentRefs":
      [{"name": "c1"}], "secretMappings": [{"sourceRef": {"name": "mapped"}}]}})");
  create(ocm::sync_sets, R"({"metadata": {"name": "theirs", "namespace": "prod"},
                             "spec": {"clusterDeploymentRefs": [{"name": "c2"}]}})");
  create(kube::resources::secrets, secret("mapped"));
  live_until([&] { return has_moved(); });
  EXPECT_TRUE(on_destination(ocm::sync_sets, "ours"));
  EXPECT_FALSE(on_destination(ocm::sync_sets, "theirs"));
  EXPECT_TRUE(on_destination(kube::resources::secrets, "mapped"));
}

TEST_F(MoveTest, TheClusterDeploymentIsTheLastObjectThatIsCreated) {
  given_move();
  create(kube::resources::secrets, secret("pull"));
  create(ocm::machine_pools, pool());
  destination.server.forget_requests();
  live_until([&] { return has_moved(); });
  std::vector<std::string> creates;
  for (const auto& line : writes(destination.server))
    // A namespace is created again after a conflict with Hive on the source.
    if (line.starts_with("create") && (creates.empty() || creates.back() != line)) creates.push_back(line);
  EXPECT_THAT(creates,
              testing::ElementsAre("create namespaces", "create secrets", "create machinepools.hive.openshift.io",
                                   "create clusterdeployments.hive.openshift.io"));
}

TEST_F(MoveTest, AnEmptySelectorIsRefusedByTheServerAndByTheController) {
  auto refused = loop.run(source.server.api().create(
      cluster_relocators,
      json::parse(R"({"metadata": {"name": "all"}, "spec": {"kubeconfigSecretRef": {"namespace": "hive",
                                          "name": "x"}, "clusterDeploymentSelector": {}}})")
          .as_object()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, kube::ErrorKind::invalid);
  // One from before the rules of the schema.
  source.server.ignore_validation_rules();
  given_secret();
  given_deployment();
  create(cluster_relocators, R"({"metadata": {"name": "all"}, "spec": {"kubeconfigSecretRef": {"namespace": "hive",
                                 "name": "to-destination"}, "clusterDeploymentSelector": {"matchLabels": {}}}})");
  live_for(1min);
  expect_untouched();
  const auto relocator = on_source(cluster_relocators, "all");
  EXPECT_EQ(kube::string_at(*kube::find_condition(*relocator, "Valid"), {"reason"}), "EmptySelector");
}

}  // namespace
}  // namespace hubferry::relocator::test
