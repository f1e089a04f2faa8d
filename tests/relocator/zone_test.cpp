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

/// A move whose source is annotated as relocated, and not deleted yet: Hive is given 2 s to do so.
class RelocatedZoneTest : public StateTest {
 protected:
  /// Then `script`, and another minute.
  void after_annotation(const std::function<Awaitable<>()>& script) {
    given_move(R"(, "manageDNS": true)");
    given_zone();
    live([&]() -> Awaitable<> {
      co_await holds([&] { return annotation(on_source(ocm::cluster_deployments, "c1"), names::relocated) == "r1"; });
      co_await script();
      co_await sleep(1min);
    });
  }
  /// As an old cache of Hive's relocation controller, or a user, does it.
  Awaitable<> undo(kube::Resource kind, std::string name) {
    const auto patch = json::parse(R"({"metadata": {"labels": {"hive-instance": null}, "annotations":
        {"hive.openshift.io/relocated": null, "hive.openshift.io/relocate": null}}})");
    const Key key{"prod", name};
    co_await source.server.api().merge_patch(kind, key, patch.as_object());
  }
};

// Otherwise Hive would remove the DNS records of a cluster that lives on the destination.
TEST_F(RelocatedZoneTest, AZoneThatLosesItsAnnotationBeforeTheDeletionIsAnnotatedAgainFirst) {
  after_annotation([&] { return undo(ocm::dns_zones, "c1-zone"); });
  EXPECT_FALSE(on_source(ocm::dns_zones, "c1-zone"));
  expect_moved();
  EXPECT_EQ(metric("hive_cluster_relocations", "r1"), 1);
}

TEST_F(RelocatedZoneTest, AZoneThatHasLostItsAnnotationWhenAUserDeletesItsClusterDeploymentIsAnnotatedAgain) {
  after_annotation([&]() -> Awaitable<> {
    auto& admin = source.server.api();
    const Key key{"prod", "c1"};
    const auto held = json::parse(R"({"metadata": {"finalizers": ["example.com/held"]}})");
    co_await admin.merge_patch(ocm::cluster_deployments, key, held.as_object());
    co_await undo(ocm::dns_zones, "c1-zone");
    co_await admin.remove(ocm::cluster_deployments, key);
    co_await sleep(1min);
    EXPECT_EQ(zone_annotation(ocm::names::hive_relocate_annotation), "r1/complete");
    const auto free = json::parse(R"({"metadata": {"finalizers": null}})");
    co_await admin.merge_patch(ocm::cluster_deployments, key, free.as_object());
  });
  EXPECT_FALSE(on_source(ocm::dns_zones, "c1-zone"));
  expect_moved();
}

TEST_F(RelocatedZoneTest, AZoneThatCannotBeReadKeepsItsClusterDeploymentFromBeingDeleted) {
  after_annotation([&]() -> Awaitable<> {
    source.server.faults().on({.verb = "get", .resource = "dnszones"}).always().fail(503);
    co_await sleep(10min);
    const auto kept = on_source(ocm::cluster_deployments, "c1");
    EXPECT_TRUE(kept && !kept->is_being_deleted());
    EXPECT_THAT(condition(), HasSubstr("True MoveFailed: "));
    EXPECT_THAT(condition(), HasSubstr("DNSZone"));
    source.server.faults().clear();
    co_await holds([&] { return has_moved(); });
  });
  expect_moved();
}

// He decides himself, as the documentation says.
TEST_F(RelocatedZoneTest, AZoneIsNotAnnotatedAgainIfAUserUndoesTheRelocation) {
  after_annotation([&]() -> Awaitable<> {
    co_await undo(ocm::dns_zones, "c1-zone");
    co_await undo(ocm::cluster_deployments, "c1");
  });
  EXPECT_TRUE(is_on_source());
  EXPECT_EQ(zone_annotation(ocm::names::hive_relocate_annotation), "-");
  expect_no_deprovision();
}

}  // namespace
}  // namespace hubferry::relocator::test
