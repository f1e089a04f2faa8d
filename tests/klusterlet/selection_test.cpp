#include "klusterlet/hub_selection.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "hubferry/ocm/resources.hpp"

namespace hubferry::klusterlet::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Candidate hub(const std::string& name) {
  return {.name = name, .server = "https://" + name, .unreadable = {}};
}

/// Runs a selection to its end; `valid` are the servers that would accept us.
struct Course {
  Course(std::vector<Candidate> candidates, std::string_view current, std::vector<std::string> valid)
      : selection(candidates, current) {
    while (const auto index = selection.next()) {
      probed.push_back(*index);
      const bool ok = std::ranges::find(valid, candidates[*index].server) != valid.end();
      selection.report(*index,
                       ok ? Verdict{.valid = true, .registered = true} : Verdict{.reason = "it does not answer"});
    }
  }
  HubSelection selection;
  std::vector<std::size_t> probed;
};

// Scenario 7.
TEST(HubSelectionTest, WithoutACurrentHubTheFirstIsSelected) {
  const Course run{{hub("hub1"), hub("hub2")}, "", {"https://hub1", "https://hub2"}};
  EXPECT_EQ(run.selection.selected(), 0U);
  EXPECT_THAT(run.probed, ElementsAre(0));
}

// Scenario 8.
TEST(HubSelectionTest, AnInvalidFirstHubIsSkipped) {
  const Course run{{hub("hub1"), hub("hub2")}, "", {"https://hub2"}};
  EXPECT_EQ(run.selection.selected(), 1U);
}

// Scenario 9.
TEST(HubSelectionTest, AnAgentStaysAtItsHubAlthoughAnEarlierOneIsValid) {
  const Course run{{hub("hub1"), hub("hub2")}, "https://hub2", {"https://hub1", "https://hub2"}};
  EXPECT_EQ(run.selection.selected(), 1U);
  EXPECT_THAT(run.probed, ElementsAre(1)) << "no other is probed";
}

// Scenario 10.
TEST(HubSelectionTest, AHubThatRejectsUsIsNotProbedTwice) {
  const Course run{{hub("hub1"), hub("hub2")}, "https://hub1", {"https://hub2"}};
  EXPECT_EQ(run.selection.selected(), 1U);
  EXPECT_THAT(run.probed, ElementsAre(0, 1));
}

// Scenario 11.
TEST(HubSelectionTest, WhenAllFailTheReasonNamesEachOfThem) {
  const Course run{{hub("hub1"), hub("hub2")}, "https://hub1", {}};
  EXPECT_FALSE(run.selection.selected());
  EXPECT_THAT(run.probed, ElementsAre(0, 1));
  EXPECT_THAT(run.selection.explain("c1"), AllOf(HasSubstr("hub1"), HasSubstr("hub2"), HasSubstr("c1")));
}

// Scenario 15.
TEST(HubSelectionTest, AnUnreadableKubeconfigIsSkipped) {
  auto broken = hub("hub1");
  broken.unreadable = "not YAML";
  const Course run{{broken, hub("hub2")}, "", {"https://hub1", "https://hub2"}};
  EXPECT_EQ(run.selection.selected(), 1U);
  EXPECT_THAT(run.probed, ElementsAre(1));
  EXPECT_THAT(run.selection.explain("c1"), HasSubstr("not YAML"));
}

TEST(HubSelectionTest, OfTwoKubeconfigsForTheCurrentServerTheFirstIsUsed) {
  auto second = hub("hub2");
  second.name = "hub2-again";
  const Course run{{hub("hub1"), hub("hub2"), second}, "https://hub2", {"https://hub2"}};
  EXPECT_EQ(run.selection.selected(), 1U);
}

TEST(HubSelectionTest, AHubThatFailedRecentlyIsProbedLast) {
  auto failed = hub("hub1");
  failed.demoted = true;
  const std::vector<std::string> all{"https://hub1", "https://hub2", "https://hub3"};
  const Course away{{failed, hub("hub2"), hub("hub3")}, "https://hub1", all};
  EXPECT_EQ(away.selection.selected(), 1U);
  const Course back{{failed, hub("hub2"), hub("hub3")}, "https://hub1", {"https://hub1"}};
  EXPECT_THAT(back.probed, ElementsAre(1, 2, 0)) << "it is probed nevertheless";
  EXPECT_EQ(back.selection.selected(), 0U);
}

TEST(HubSelectionTest, AnEmptyListIsReported) {
  const Course run{{}, "https://hub1", {}};
  EXPECT_FALSE(run.selection.selected());
  EXPECT_THAT(run.selection.explain("c1"), HasSubstr("no bootstrap kubeconfig"));
}

Acceptance acceptance(const char* text) {
  return acceptance_of_object(kube::Object{boost::json::parse(text).as_object()});
}

TEST(AcceptanceTest, NotYetAcceptedIsNotDenied) {
  EXPECT_EQ(acceptance(R"({"metadata": {"name": "c"}})"), Acceptance::pending);
  EXPECT_EQ(acceptance(R"({"metadata": {"name": "c"}, "spec": {"hubAcceptsClient": false}})"), Acceptance::pending);
  EXPECT_EQ(acceptance(R"({"metadata": {"name": "c"}, "spec": {"hubAcceptsClient": true}})"), Acceptance::accepted);
}

TEST(AcceptanceTest, AClusterThatWasAcceptedBeforeAndIsNoLongerIsDenied) {
  // While work is left on the hub, the condition is still True.
  EXPECT_EQ(acceptance(R"({"metadata": {"name": "c"}, "spec": {"hubAcceptsClient": false}, "status": {"conditions": [
              {"type": "HubAcceptedManagedCluster", "status": "True", "reason": "HubClusterAdminAccepted"}]}})"),
            Acceptance::denied);
  EXPECT_EQ(acceptance(R"({"metadata": {"name": "c"}, "spec": {"hubAcceptsClient": false}, "status": {"conditions": [
              {"type": "HubAcceptedManagedCluster", "status": "False", "reason": "HubClusterAdminDenied"}]}})"),
            Acceptance::denied);
  EXPECT_EQ(acceptance(R"({"metadata": {"name": "c", "annotations": {
              "open-cluster-management.io/automatically-accepted-on": "2030-01-01T00:00:00Z"}},
              "spec": {"hubAcceptsClient": false}})"),
            Acceptance::denied);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
