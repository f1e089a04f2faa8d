#include "state_test.hpp"

/// The destination: what has arrived is released, may move on, and does not return.
namespace hubferry::relocator::test {
namespace {

TEST_F(StateTest, OneThatArrivesIsReleasedByTheManagerOfTheDestination) {
  const auto arriving = R"(, "annotations": {"hive.openshift.io/relocating": "r1",
      "hive.openshift.io/relocation-role": "incoming", "hive.openshift.io/relocate": "r1/incoming"})";
  given_deployment(arriving, R"(, "manageDNS": true)");
  given_zone(arriving);
  live_for(1min);
  expect_untouched();
  EXPECT_EQ(zone_annotation(names::relocating), "-");
  EXPECT_EQ(zone_annotation("hive.openshift.io/relocate"), "-");
  EXPECT_THAT(condition(), HasSubstr("False NoMatchingRelocators"));
}

TEST_F(StateTest, OneWhoseZoneIsReleasedAlreadyIsReleasedToo) {
  given_deployment(
      R"(, "annotations": {"hive.openshift.io/relocating": "r1", "hive.openshift.io/relocation-role": "incoming"})",
      R"(, "manageDNS": true)");
  given_zone();
  live_for(1min);
  expect_untouched();
}

TEST_F(StateTest, OneThatArrivesAndMatchesALocalRelocatorMovesOn) {
  given_secret();
  given_deployment(
      R"(, "annotations": {"hive.openshift.io/relocating": "r0", "hive.openshift.io/relocation-role": "incoming",
                        "hubferry.io/relocated-from": "a-third-hub", "hubferry.io/relocation-confirmed": "true"})");
  given_relocator();
  live_until([&] { return has_moved(); });
  EXPECT_LT(position("c1: Unknown Initialized, r1, -, r1/outgoing"), history.size()) << testing::PrintToString(history);
  EXPECT_EQ(annotation(on_destination(ocm::cluster_deployments, "c1"), "hubferry.io/relocated-from"),
            identity(source.server));
}

// The hub that it came from may have died before it knew of the arrival. If the copy were gone from here, its successor
// would copy it again, and two hubs would have it.
TEST_F(StateTest, OneThatTheHubItCameFromHasNotConfirmedDoesNotMoveOn) {
  given_secret();
  given_deployment(
      R"(, "annotations": {"hive.openshift.io/relocating": "r0", "hive.openshift.io/relocation-role": "incoming",
                        "hubferry.io/relocated-from": "a-third-hub"})");
  given_relocator();
  live_for(10min);
  EXPECT_TRUE(is_on_source());
  EXPECT_FALSE(is_on_destination());
  EXPECT_THAT(condition(), HasSubstr("True ArrivalUnconfirmed"));
  EXPECT_EQ(annotation(on_source(ocm::cluster_deployments, "c1"), names::relocating), "-");
  change(ocm::cluster_deployments, {"prod", "c1"},
         R"({"metadata": {"annotations": {"hubferry.io/relocation-confirmed": "true"}}})");
  live_until([&] { return has_moved(); });
}

TEST_F(StateTest, ASourceThatDiesBeforeItKnowsOfTheArrivalDoesNotLeadToASecondOwner) {
  // The destination has it, hubferry runs there, too, and a relocator there would move it on to a third hub.
  auto& last = given_third();
  manager_on_destination = true;
  given_secret();
  given_relocator();
  given_moving("r1");
  given_copy_on_destination("", R"(, "labels": {"hive-instance": "hive2"})");
  create(kube::resources::secrets,
         R"({"metadata": {"name": "onwards", "namespace": "hive"}, )" + kubeconfig_patch(last).substr(1),
         &destination.server);
  create(cluster_relocators, R"({"metadata": {"name": "onwards"}, "spec": {"kubeconfigSecretRef": {"namespace": "hive",
      "name": "onwards"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})",
         &destination.server);
  const auto is_on_third = [&] { return last.object(ocm::cluster_deployments, {"prod", "c1"}).has_value(); };
  managers = 0;  // nobody works on the source
  live_for(1h);
  EXPECT_TRUE(is_on_destination());
  EXPECT_FALSE(is_on_third());
  managers = 1;
  live_until([&] { return is_on_third() && !is_on_destination() && !is_on_source(); });
  live_for(1h);
  EXPECT_FALSE(is_on_destination());
  EXPECT_FALSE(is_on_source());
  expect_no_deprovision();
}

TEST_F(StateTest, OneIsNotMovedBackToTheHubThatItCameFrom) {
  const auto origin = std::string{destination.server.object(kube::resources::namespaces, {"", "kube-system"})->uid()};
  given_secret();
  given_deployment(R"(, "annotations": {"hubferry.io/relocation-confirmed": "true", "hubferry.io/relocated-from": ")" +
                   origin + "\"}");
  given_relocator();
  live_for(10min);
  EXPECT_TRUE(is_on_source());
  EXPECT_FALSE(is_on_destination());
  EXPECT_THAT(condition(), HasSubstr("True ReturnRefused"));
  EXPECT_FALSE(
      on_destination(kube::resources::namespaces, "prod"));  // nothing is left there for a move that is refused
  change(ocm::cluster_deployments, {"prod", "c1"},
         R"({"metadata": {"annotations": {"hubferry.io/relocated-from": null}}})");
  live_until([&] { return has_moved(); });
}

TEST_F(StateTest, TwoHubsThatPointAtEachOtherDoNotPlayPingPong) {
  manager_on_destination = true;
  given_move();
  create(kube::resources::secrets,
         json::serialize(json::object{
             {"metadata", json::object{{"name", "back"}, {"namespace", "hive"}}},
             {"stringData", json::object{}},
             {"data", json::object{{"kubeconfig", kube::encode_base64(kube::to_kubeconfig(
                                                      network.config_for(source.server, sim::admin())))}}}}),
         &destination.server);
  create(cluster_relocators, R"({"metadata": {"name": "back"}, "spec": {"kubeconfigSecretRef": {"namespace": "hive",
      "name": "back"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})",
         &destination.server);
  live_for(1h);
  expect_moved();
  EXPECT_EQ(metric("hive_cluster_relocations", "r1"), 1);
  EXPECT_EQ(metric("hive_cluster_relocations", "back"), 0);
}

TEST_F(StateTest, OneThatIsDeletedWhileItArrivesIsFinalizedAsUsual) {
  given_deployment(
      R"(, "annotations": {"hive.openshift.io/relocating": "r1", "hive.openshift.io/relocation-role": "incoming",
                        "hive.openshift.io/relocate": "r1/incoming"})");
  remove(ocm::cluster_deployments, {"prod", "c1"});
  live_until([&] { return !is_on_source(); });
  EXPECT_EQ(source.hive.count("deprovision prod/c1"), 1u);
}

}  // namespace
}  // namespace hubferry::relocator::test
