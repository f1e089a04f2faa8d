#include "app/plan/plan.hpp"

#include <gmock/gmock.h>

#include "hubferry/hubs/hub_directory.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "migration_samples.hpp"

namespace hubferry::app {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// Two hubs with four clusters on the first; nobody does anything while a plan is made.
class PlanTest : public testing::Test {
 protected:
  PlanTest() : world_(options()) {}

  static sim::WorldOptions options() {
    sim::WorldOptions options;
    options.clusters = 4;
    options.agents = false;
    return options;
  }

  Plan plan(migration::MigrationSpec spec) {
    Plan made;
    auto work = [&]() -> async::Awaitable<> {
      hubs::Connect connect = [this](const std::string& hub,
                                     const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
        if (hub == without_permissions_) return world_.server(hub).api_as({"stranger", {}, ""});
        return world_.network().connect(config);
      };
      hubs::HubDirectoryOptions options;
      options.hub.carried = carried_;
      hubs::HubDirectory directory{world_.api("global"), connect, options, world_.env()};
      auto body = [&](async::TaskScope& scope) -> async::Awaitable<> {
        scope.spawn(directory.run());
        Serves serves = [&](kube::Resource resource) -> async::Awaitable<kube::Result<bool>> {
          co_return co_await world_.api("hub2").serves(resource);
        };
        made = co_await make_plan(directory, spec, serves, world_.clock(), *carried_);
        scope.stop();
      };
      co_await async::with_scope(body);
    };
    world_.run(work());
    return made;
  }
  /// As read from a resource. Empty: the field is absent.
  static migration::MigrationSpec spec(const std::string& from, const std::string& to,
                                       const std::optional<std::vector<std::string>>& clusters,
                                       const std::string& placement = "") {
    auto object = migration_object("m", "");
    kube::json::object fields;
    if (!from.empty()) fields["from"] = from;
    if (!to.empty()) fields["to"] = to;
    if (clusters) fields["includedManagedClusters"] = kube::json::array(clusters->begin(), clusters->end());
    if (!placement.empty()) fields["includedManagedClustersPlacementRef"] = placement;
    object["spec"] = std::move(fields);
    return plan_spec_of(object);
  }
  static migration::MigrationSpec of(const std::vector<std::string>& clusters) {
    return spec("hub1", "hub2", clusters);
  }
  static std::vector<std::string> reasons(const Plan& plan) {
    std::vector<std::string> all;
    for (const auto& problem : plan.problems) all.push_back(problem.cluster + ":" + problem.reason);
    return all;
  }
  void add(const std::string& hub, const kube::Resource& resource, const kube::json::object& object) {
    auto made = world_.run(world_.api(hub).create(resource, object));
    EXPECT_TRUE(made) << made.error();
  }

  sim::VirtualWorld world_;
  std::string without_permissions_;  // a hub on which our account may do nothing
  std::shared_ptr<const hubagent::CarriedResources> carried_ =
      std::make_shared<const hubagent::CarriedResources>(hubagent::default_carried_resources());
};

TEST_F(PlanTest, ListsWhatWouldBeCopiedAndChangesNothing) {
  world_.run_for(1min);
  for (const auto* server : {"global", "hub1", "hub2"}) world_.server(server).forget_requests();
  const auto made = plan(of({"cluster-00002", "cluster-00001", "cluster-00002"}));
  EXPECT_TRUE(made.can_succeed());
  ASSERT_EQ(made.clusters.size(), 2U) << "names that are given twice count once";
  EXPECT_EQ(made.clusters[0].name, "cluster-00001");
  EXPECT_GT(made.bytes(), 500U);
  EXPECT_THAT(made.kinds(), Contains(testing::Key("ManagedCluster (cluster.open-cluster-management.io/v1)")));
  for (const auto* server : {"global", "hub1", "hub2"})
    for (const auto& request : world_.server(server).requests())
      if (!request.resource.starts_with("selfsubject"))  // which is a question
        EXPECT_THAT(request.verb, testing::AnyOf("get", "list", "watch")) << world_.timeline();
}

TEST_F(PlanTest, MissingPermissionsOnOneHubAreNamedBesideTheProblemsOfTheOther) {
  without_permissions_ = "hub2";
  const auto made = plan(of({"cluster-00001", "nobody"}));
  EXPECT_FALSE(made.can_succeed());
  EXPECT_THAT(reasons(made), AllOf(Contains(":PermissionMissing"), Contains("nobody:ClusterNotFound")));
  const auto text = plan_text(made, false, Terminal{});
  EXPECT_THAT(text, Contains(HasSubstr("our account on hub hub2 may not get managedclusters")));
  EXPECT_THAT(text, Contains(HasSubstr("apply manifests/hub-rbac/approval")));
}

TEST_F(PlanTest, AllProblemsAreReportedAtOnce) {
  add("hub2", ocm::managed_clusters,
      {{"metadata", kube::json::object{{"name", "cluster-00002"}}},
       {"spec", kube::json::object{{"hubAcceptsClient", true}}}});
  const auto made = plan(of({"cluster-00001", "cluster-00002", "nobody"}));
  EXPECT_FALSE(made.can_succeed());
  EXPECT_THAT(reasons(made), testing::UnorderedElementsAre("nobody:ClusterNotFound", "cluster-00002:ClusterConflict"));
  const auto text = plan_text(made, false, Terminal{});
  EXPECT_THAT(text, Contains(HasSubstr("  nobody (hub1): ClusterNotFound: there is no managed cluster")));
  EXPECT_THAT(text, Contains(HasSubstr("  cluster-00002 (hub2): ClusterConflict: ")));
  EXPECT_THAT(text, Contains("This migration cannot succeed: 2 problems. Nothing was changed."));
  EXPECT_THAT(text, Not(Contains(HasSubstr("Time: ")))) << "of what cannot begin";
  EXPECT_THAT(text, Contains(AllOf(HasSubstr("cluster-00001"), HasSubstr("can move"))));
}

// One problem for it, and no request with that name.
TEST_F(PlanTest, ANameThatNoClusterCanHaveIsAProblem) {
  const auto made = plan(of({"cluster-00001", "Cluster 2"}));
  EXPECT_THAT(reasons(made), ElementsAre("Cluster 2:ClusterNotFound"));
  EXPECT_THAT(plan_text(made, false, Terminal{}), Contains(HasSubstr("no cluster can have the name 'Cluster 2'")));
}

// A user who corrects one mistake wants to see the others.
TEST_F(PlanTest, AMissingTargetDoesNotHideProblemsOfTheSource) {
  const auto made = plan(spec("hub1", "nowhere", {{"cluster-00001", "nobody"}}));
  EXPECT_THAT(reasons(made), ElementsAre(":HubClusterInvalid", "nobody:ClusterNotFound"));
  EXPECT_GT(made.objects(), 0U);
  const auto source_gone = plan(spec("nowhere", "hub2", {{"cluster-00001"}}));
  EXPECT_THAT(reasons(source_gone), ElementsAre(":HubClusterInvalid"));
  const auto text = plan_text(source_gone, false, Terminal{});
  EXPECT_THAT(text, Contains(AllOf(HasSubstr("cluster-00001"), HasSubstr("not checked"))));
  EXPECT_THAT(text, testing::Not(Contains(HasSubstr("can move"))));
}

TEST_F(PlanTest, ClustersAreInNaturalOrder) {
  const auto made = plan(of({"c10", "c9", "c1"}));
  EXPECT_THAT(reasons(made), ElementsAre("c1:ClusterNotFound", "c9:ClusterNotFound", "c10:ClusterNotFound"));
  EXPECT_EQ(made.clusters[1].name, "c9");
}

TEST_F(PlanTest, CountsAdditionalCarriedResources) {
  add("hub1", kube::resources::config_maps,
      {{"metadata", kube::json::object{{"name", "extra"}, {"namespace", "cluster-00001"}}}});
  const auto before = plan(of({"cluster-00001"})).objects();
  carried_ = std::make_shared<const hubagent::CarriedResources>(hubagent::parse_carried_resources(
      "carriedResources: [{version: v1, resource: configmaps, kind: ConfigMap, names: [extra]}]", "test"));
  EXPECT_EQ(plan(of({"cluster-00001"})).objects(), before + 1);
}

TEST_F(PlanTest, AKindThatTheTargetDoesNotServeIsAProblem) {
  kube::Key key{"", "klusterletaddonconfigs.agent.open-cluster-management.io"};
  auto removed = world_.run(world_.api("hub2").remove(kube::resources::custom_resource_definitions, key));
  EXPECT_TRUE(removed);
  world_.run_for(1min);
  const auto made = plan(of({"cluster-00001"}));
  EXPECT_THAT(reasons(made), ElementsAre(":KindNotServed"));
  EXPECT_THAT(made.problems[0].message, HasSubstr("does not serve klusterletaddonconfigs"));
}

TEST_F(PlanTest, HubsAreCheckedFirst) {
  EXPECT_THAT(reasons(plan(spec("hub1", "nowhere", {{"cluster-00001"}}))), ElementsAre(":HubClusterInvalid"));
  world_.server("hub2").outage(true);
  world_.run_for(10min);
  EXPECT_THAT(reasons(plan(of({"cluster-00001"}))), Not(IsEmpty()));
}

TEST_F(PlanTest, APlacementSelectsTheClusters) {
  add("hub1", ocm::placements,
      {{"metadata", kube::json::object{{"name", "leaving"}, {"namespace", "default"}}},
       {"spec", kube::json::object{}}});
  world_.run_for(1min);
  const auto made = plan(spec("hub1", "hub2", std::nullopt, "leaving"));
  EXPECT_EQ(made.clusters.size(), 4U) << testing::PrintToString(reasons(made));
  EXPECT_THAT(reasons(plan(spec("hub1", "hub2", std::nullopt, "nothing"))), ElementsAre(":PlacementNotFound"));
}

TEST_F(PlanTest, AnInvalidSpecIsRejectedBeforeAnyHubIsRead) {
  EXPECT_THAT(reasons(plan(spec("hub1", "hub1", {{"a"}}))), ElementsAre(":HubClusterInvalid"));
  EXPECT_THAT(reasons(plan(spec("hub1", "hub2", {{"a"}}, "both"))), ElementsAre(":ResourceInvalid"));
  EXPECT_THAT(reasons(plan(spec("", "", std::nullopt))),
              ElementsAre(":HubClusterInvalid", ":HubClusterInvalid", ":ResourceInvalid"));
  EXPECT_THAT(reasons(plan(of({}))), ElementsAre(":ResourceInvalid"));
}

TEST_F(PlanTest, JsonHoldsEverything) {
  const auto json = plan_json(plan(of({"cluster-00001", "nobody"})));
  EXPECT_EQ(json.at("possible"), false);
  EXPECT_EQ(json.at("clusters").at(1).at("problems").at(0).at("reason"), "ClusterNotFound");
  EXPECT_EQ(json.at("problems").as_array().size(), 1U) << "all of them, whomever they concern";
  EXPECT_EQ(json.at("problems").at(0).at("cluster"), "nobody");
  EXPECT_EQ(json.at("clusters").at(0).at("objects").at(0).at("kind"), "ManagedCluster");
}

TEST(PlanSpecOf, ReadsAMigration) {
  const auto request = plan_spec_of(migration_object("m", ""));
  EXPECT_EQ(request.from, "hub1");
  EXPECT_THAT(*request.clusters, ElementsAre("c1", "c2", "c3", "c4"));
  EXPECT_THROW(plan_spec_of({{"kind", "Secret"}}), std::runtime_error);
  auto odd = migration_object("m", "");
  odd["spec"].as_object()["includedManagedClusters"] = "c1";
  EXPECT_THROW(plan_spec_of(odd), std::runtime_error);
}

std::string complaint_about(const kube::json::object& migration) {
  try {
    plan_spec_of(migration);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

// The API server would prune it, and the migration would use the default.
TEST(PlanSpecOf, AFieldThatMigrationsDoNotHaveIsNamed) {
  auto object = migration_object("m", "");
  EXPECT_EQ(complaint_about(object), "none");
  object["spec"].as_object()["supportedConfigs"] = kube::json::object{{"stageTimeuot", "5m"}};
  EXPECT_EQ(complaint_about(object),
            "unknown field \"spec.supportedConfigs.stageTimeuot\" (did you mean stageTimeout?)");
  object = migration_object("m", "");
  object["spec"].as_object()["form"] = "hub1";
  EXPECT_EQ(complaint_about(object), "unknown field \"spec.form\" (did you mean from?)");
  object = migration_object("m", "");
  object["specs"] = kube::json::object{};
  EXPECT_THAT(complaint_about(object), HasSubstr("\"specs\""));
}

TEST(PlanSpecOf, EscapeSequencesOfAFileDoNotReachTheTerminal) {
  auto object = migration_object("m", "");
  object["spec"].as_object()["to"] = "hub2\x1b[2J";
  EXPECT_EQ(complaint_about(object), "spec.to contains a control character: \"hub2\\u001b[2J\"");
  object = migration_object("m", "");
  object["spec"].as_object()["includedManagedClusters"] = kube::json::array{"c1", "c2\x07"};
  EXPECT_THAT(complaint_about(object), testing::StartsWith("spec.includedManagedClusters[1] contains"));
}

TEST_F(PlanTest, TheMigrationsOwnTimeoutIsUsed) {
  auto object = migration_object("m", "");
  auto& spec = object["spec"].as_object();
  spec["includedManagedClusters"] = kube::json::array{"cluster-00001"};
  spec["supportedConfigs"] = kube::json::object{{"stageTimeout", "90s"}};
  const auto made = plan(plan_spec_of(object));
  EXPECT_TRUE(made.can_succeed()) << testing::PrintToString(reasons(made));
  EXPECT_THAT(plan_text(made, false, Terminal{}),
              Contains(HasSubstr("within 1m30s (spec.supportedConfigs.stageTimeout) are rolled back")));
  EXPECT_EQ(plan_json(made).at("estimate").at("registeringTimeoutSeconds"), 90.0);
  spec["supportedConfigs"] = kube::json::object{{"stageTimeout", "soon"}};
  const auto refused = plan(plan_spec_of(object));
  EXPECT_THAT(reasons(refused), ElementsAre(":ResourceInvalid"));
  EXPECT_THAT(refused.problems[0].message, HasSubstr("stageTimeout 'soon' is not a duration"));
}

/// `count` clusters that can move, and as many that the source does not have.
Plan large_plan(std::size_t count) {
  Plan plan;
  plan.spec.from = "hub1";
  plan.spec.to = "hub2";
  for (std::size_t number = 0; number < count; ++number) {
    const auto name = std::to_string(number);
    plan.clusters.push_back({"c" + name, {{"v1", "Secret", "c" + name, "s", 1024}}});
    plan.clusters.push_back({"missing" + name, {}});
    plan.problems.push_back(
        {"hub1", "missing" + name, "ClusterNotFound", "there is no managed cluster missing" + name});
  }
  return plan;
}

// One line per cluster and problem would scroll what matters off the screen.
TEST(PlanText, ThousandsOfClustersAndProblemsAreGrouped) {
  const auto plan = large_plan(5000);
  const auto text = plan_text(plan, false, Terminal{});
  EXPECT_THAT(text, SizeIs(testing::Lt(40)));
  EXPECT_THAT(text, Contains("CLUSTERS   OBJECTS   SIZE      VERDICT"));
  EXPECT_THAT(text, Contains("5000       5000      4.9 MiB   can move"));
  EXPECT_THAT(text, Contains("5000       -         -         ClusterNotFound"));
  EXPECT_THAT(text, Contains("  missing9 (hub1): ClusterNotFound: there is no managed cluster missing9"));
  EXPECT_THAT(text, Not(Contains(HasSubstr("missing10"))));
  EXPECT_THAT(text, Contains("  … and 4990 more ClusterNotFound (hub1) (all: hubferry plan --objects, or -o json)"));
  EXPECT_THAT(text, Contains("This migration cannot succeed: 5000 problems. Nothing was changed."));
}

// A group of one reason must not hide another, nor what is wrong with a hub.
TEST(PlanText, EachReasonIsShownInALongListOfProblems) {
  auto plan = large_plan(5000);
  plan.problems.insert(plan.problems.begin(), {"hub2", "", "PermissionMissing", "may not get managedclusters"});
  plan.problems.push_back({"hub2", "c4999", "ClusterConflict", "it exists"});
  const auto text = plan_text(plan, false, Terminal{});
  EXPECT_THAT(text, Contains("  hub2: PermissionMissing: may not get managedclusters"));
  EXPECT_THAT(text, Contains("  c4999 (hub2): ClusterConflict: it exists"));
}

TEST(PlanText, IsCompleteForShortListsAndOnRequestAndInJson) {
  const auto is_complete = [](const std::vector<std::string>& text, std::size_t count) {
    const auto last = std::to_string(count - 1);
    EXPECT_THAT(text, Contains(AllOf(testing::StartsWith("c" + last + " "), HasSubstr("can move"))));
    EXPECT_THAT(text, Contains(AllOf(testing::StartsWith("missing" + last + " "), HasSubstr("ClusterNotFound"))));
    EXPECT_THAT(text,
                Contains("  missing" + last + " (hub1): ClusterNotFound: there is no managed cluster missing" + last));
    EXPECT_THAT(text, Not(Contains(HasSubstr("more"))));
  };
  is_complete(plan_text(large_plan(25), false, Terminal{}), 25);
  const auto plan = large_plan(5000);
  is_complete(plan_text(plan, true, Terminal{}), 5000);
  const auto json = plan_json(plan);
  EXPECT_EQ(json.at("clusters").as_array().size(), 10'000U);
  EXPECT_EQ(json.at("problems").as_array().size(), 5000U);
  EXPECT_EQ(json.at("clusters").at(9999).at("problems").at(0).at("reason"), "ClusterNotFound");
}

TEST(SizeText, IsHumanReadable) {
  EXPECT_EQ(size_text(12), "12 B");
  EXPECT_EQ(size_text(2048), "2.0 KiB");
  EXPECT_EQ(size_text(5UL * 1024 * 1024), "5.0 MiB");
}

}  // namespace
}  // namespace hubferry::app
