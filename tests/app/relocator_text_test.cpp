#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "app/plan/relocation_plan_text.hpp"
#include "app/status/relocator_status.hpp"

namespace hubferry::app {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;

kube::Object object(const std::string& text) {
  return kube::Object{boost::json::parse(text).as_object()};
}

relocator::RelocationPlan sample_plan() {
  relocator::RelocationPlan plan;
  plan.name = "r1";
  relocator::PlannedRelocation moves;
  moves.deployment = {"prod", "c1"};
  moves.objects = {"Secret pull", "MachinePool worker"};
  moves.missing_sync_sets = {"logging"};
  relocator::PlannedRelocation refused;
  refused.deployment = {"prod", "c2"};
  refused.reason = "ProtectedDelete";
  refused.message = "remove the annotation";
  plan.deployments = {moves, refused};
  return plan;
}

TEST(RelocationPlanText, SaysWhatWouldMoveAndWhatIsInTheWay) {
  const auto lines = relocation_plan_text(sample_plan(), true, Terminal{});
  EXPECT_EQ(lines.front(), "ClusterRelocator r1 matches 2 ClusterDeployments.");
  EXPECT_THAT(lines, Contains(ContainsRegex("prod/c1 +2 +would move")));
  EXPECT_THAT(lines, Contains(ContainsRegex("prod/c2 +0 +ProtectedDelete: remove the annotation")));
  EXPECT_THAT(lines, Contains(HasSubstr("Warning: SelectorSyncSet logging matches prod/c1")));
  EXPECT_THAT(lines, Contains("prod/c1: Secret pull"));
}

TEST(RelocationPlanText, SaysWhatTheDestinationHasOfIt) {
  auto plan = sample_plan();
  auto& moves = plan.deployments[0];
  moves.objects = {"Secret pull", "Secret old", "MachinePool worker", "ConfigMap a", "ConfigMap b"};
  moves.present = {"Secret pull"};
  moves.outdated = {"Secret old"};
  EXPECT_THAT(relocation_plan_text(plan, false, Terminal{}),
              Contains(ContainsRegex("prod/c1 +5 +would move, 1 there already, 1 there to update")));
  moves.obstacles = {{"ConfigMap a", "a differs"}, {"ConfigMap b", "b differs"}};
  moves.reason = "MoveFailed";
  moves.message = "a differs";
  const auto lines = relocation_plan_text(plan, true, Terminal{});
  EXPECT_THAT(lines, Contains("prod/c1: Secret pull (the destination has it)"));
  EXPECT_THAT(lines, Contains("prod/c1: Secret old (the destination has an older copy: would be updated)"));
  EXPECT_THAT(lines, Contains("prod/c1: MachinePool worker"));
  EXPECT_THAT(lines, Contains("prod/c1: ConfigMap a (in the way: a differs)"));
  EXPECT_THAT(lines, Contains("In the way of prod/c1: b differs"));
  const auto json = relocation_plan_json(plan).at("clusterDeployments").at(0);
  EXPECT_EQ(json.at("inTheWay").at(0).at("object"), "ConfigMap a");
  EXPECT_EQ(json.at("present").at(0), "Secret pull");
  EXPECT_EQ(json.at("outdated").at(0), "Secret old");
}

TEST(RelocationPlanText, AsJsonItIsPossibleOnlyIfAllCanMove) {
  auto plan = sample_plan();
  EXPECT_EQ(relocation_plan_json(plan).at("possible"), false);
  EXPECT_EQ(relocation_plan_json(plan).at("clusterDeployments").at(1).at("problem").at("reason"), "ProtectedDelete");
  plan.deployments.pop_back();
  EXPECT_EQ(relocation_plan_json(plan).at("possible"), true);
  EXPECT_TRUE(relocation_plan_json(plan).at("problem").is_null());
  plan.deployments.clear();
  EXPECT_EQ(relocation_plan_json(plan).at("possible"), false);
}

TEST(RelocatorStatus, ListsTheClusterDeploymentsOfOneRelocator) {
  const auto relocator = object(R"({"metadata": {"name": "r1"}, "spec": {"clusterDeploymentSelector": {"matchLabels":
      {"a": "b"}}}, "status": {"matching": 2, "moving": 1, "moved": 7, "failed": 1, "conditions": [{"type": "Relocating",
      "status": "True", "reason": "SomeFailed", "message": "m", "lastTransitionTime": "2030-01-01T00:00:00Z"}]}})");
  const std::vector<kube::Object> deployments{
      object(
          R"({"metadata": {"name": "c1", "namespace": "n", "annotations": {"hive.openshift.io/relocating": "r1"}}})"),
      object(R"({"metadata": {"name": "c2", "namespace": "n", "labels": {"a": "b"}}, "status": {"conditions": [{"type":
          "RelocationFailed", "status": "True", "reason": "NoConnection", "message": "no route"}]}})"),
      object(R"({"metadata": {"name": "c3", "namespace": "n"}})")};
  EXPECT_THAT(relocator_table({relocator}, Terminal{}), Contains(ContainsRegex("r1 +2 +1 +7 +1 +a=b")));
  const auto lines = relocator_details(relocator, deployments, Terminal{});
  EXPECT_THAT(lines, Contains("Relocating since 2030-01-01T00:00:00Z: True, SomeFailed: m"));
  EXPECT_THAT(lines, Contains(ContainsRegex("n/c1 +moving")));
  EXPECT_THAT(lines, Contains(ContainsRegex("n/c2 +waiting +NoConnection: no route")));
  EXPECT_THAT(lines, testing::Not(Contains(HasSubstr("n/c3"))));
}

TEST(RelocatorStatus, ASelectorThatIsRefusedIsShownAsSuch) {
  const auto relocator =
      object(R"({"metadata": {"name": "all"}, "spec": {"clusterDeploymentSelector": {"matchLabels": {}}}})");
  EXPECT_THAT(relocator_table({relocator}, Terminal{}), Contains(ContainsRegex("all .*refused")));
}

}  // namespace
}  // namespace hubferry::app
