#include "state_test.hpp"

/// What happens to the DNSZone of a ClusterDeployment that moves.
namespace hubferry::relocator::test {
namespace {

TEST_F(StateTest, ZoneThenClusterDeploymentAreAnnotatedAsRelocatedBeforeTheDeletion) {
  given_move(R"(, "manageDNS": true)");
  given_zone();
  live_until([&] { return has_moved(); });
  live_for(1min);
  expect_moved();
  const auto zone = position("c1-zone: none, -, r1, r1/complete");
  const auto deployment = position("c1: Unknown Initialized, -, r1, r1/complete");
  const auto successful = position("c1: False MoveSuccessful, -, r1, r1/complete");
  const auto deleting = position("c1: False MoveSuccessful, -, r1, r1/complete, deleting");
  EXPECT_LT(zone, deployment) << testing::PrintToString(history);
  EXPECT_LT(deployment, successful) << testing::PrintToString(history);
  EXPECT_LT(successful, deleting) << testing::PrintToString(history);
  EXPECT_LT(deleting, history.size());
  EXPECT_FALSE(on_source(ocm::dns_zones, "c1-zone"));
  for (const auto& line : history) EXPECT_THAT(line, Not(HasSubstr("r1, r1, ")));  // never both annotations
}

TEST_F(StateTest, TheZoneArrivesWithItsNameServersAndIsHeldUntilTheClusterDeploymentIsThere) {
  given_move(R"(, "manageDNS": true)");
  given_zone();
  std::vector<std::string> seen;
  destination.server.add_admission(
      ocm::dns_zones, [&](const sim::AdmissionReview& review) -> std::optional<std::string> {
        if (review.before == nullptr)
          for (const auto* key : {names::relocating, names::role, "hive.openshift.io/relocate"})
            seen.push_back(annotation(Object{review.after}, key));
        return std::nullopt;
      });
  live_until([&] { return has_moved(); });
  live_for(1min);
  EXPECT_THAT(seen, testing::ElementsAre("r1", "incoming", "r1/incoming"));
  const auto zone = on_destination(ocm::dns_zones, "c1-zone");
  ASSERT_TRUE(zone);
  EXPECT_EQ(*zone->find({"status"}), json::parse(R"({"nameServers": ["ns1", "ns2"], "aws": {"zoneID": "Z1"}})"));
  EXPECT_EQ(annotation(zone, names::relocating), "-");
  EXPECT_EQ(annotation(zone, "hive.openshift.io/relocate"), "-");
}

TEST_F(StateTest, AZoneOfAnotherNameIsNotCopied) {
  given_move(R"(, "manageDNS": true)");
  create(ocm::dns_zones, R"({"metadata": {"name": "other-zone", "namespace": "prod"}, "spec": {"zone": "o"}})");
  live_until([&] { return has_moved(); });
  EXPECT_FALSE(on_destination(ocm::dns_zones, "other-zone"));
}

TEST_F(StateTest, AZoneOnTheDestinationThatDidNotArriveIsNotReplaced) {
  create(kube::resources::namespaces, R"({"metadata": {"name": "prod"}})", &destination.server);
  create(ocm::dns_zones, R"({"metadata": {"name": "c1-zone", "namespace": "prod"}, "spec": {"zone": "theirs"}})",
         &destination.server);
  given_move(R"(, "manageDNS": true)");
  given_zone();
  live_for(1min);
  EXPECT_EQ(on_destination(ocm::dns_zones, "c1-zone")->string_at({"spec", "zone"}), "theirs");
  EXPECT_THAT(condition(), HasSubstr("True MoveFailed"));
  EXPECT_THAT(condition(), HasSubstr("did not arrive by a relocation"));
}

TEST_F(StateTest, AZoneAnnotatedByAnotherRelocatorMovesUnderTheNewName) {
  given_move(R"(, "manageDNS": true)");
  given_zone(
      R"(, "annotations": {"hive.openshift.io/relocating": "before", "hive.openshift.io/relocate": "before/outgoing"})");
  live_until([&] { return has_moved(); });
  EXPECT_LT(position("c1-zone: none, r1, -, r1/outgoing"), history.size()) << testing::PrintToString(history);
  expect_moved();
}

}  // namespace
}  // namespace hubferry::relocator::test
