#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/phases.hpp"
#include "hubferry/migration/validation.hpp"
#include "migration/ledger.hpp"

/// Reading the resource, and the rules that it is validated by.
namespace hubferry::migration::test {
namespace {

using namespace std::chrono_literals;
using async::Awaitable;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

json::object parse(std::string_view text) {
  return boost::json::parse({text.data(), text.size()}).as_object();
}

MigrationSpec spec_of(std::string_view spec) {
  return read_spec({{"spec", parse(spec)}});
}

const auto valid = R"({"from": "hub1", "to": "hub2", "includedManagedClusters": ["b", "a", "b"]})";

TEST(MigrationSpec, AValidOneHasNoProblems) {
  EXPECT_THAT(check_spec(spec_of(valid)), IsEmpty());
  EXPECT_THAT(*spec_of(valid).clusters, ElementsAre("a", "b"));
}

TEST(MigrationSpec, AllProblemsAreReportedAtOnce) {
  const auto problems = check_spec(spec_of(R"({"from": "hub1", "to": "hub1", "includedManagedClusters": [],
                    "supportedConfigs": {"stageTimeout": "soon"}})"));
  ASSERT_THAT(problems, SizeIs(3));
  EXPECT_EQ(problems[0].reason, "HubClusterInvalid");
  EXPECT_THAT(problems[0].message, HasSubstr("both 'hub1'"));
  EXPECT_THAT(problems[1].message, HasSubstr("names no cluster"));
  EXPECT_THAT(problems[2].message, HasSubstr("'soon' is not a duration"));
}

TEST(MigrationSpec, NeitherListNorPlacementOrBothIsAProblem) {
  EXPECT_THAT(joined(check_spec(spec_of(R"({"from": "a", "to": "b"})"))), HasSubstr("exactly one of"));
  EXPECT_THAT(joined(check_spec(spec_of(R"({"from": "a", "to": "b", "includedManagedClusters": ["c"],
                                                    "includedManagedClustersPlacementRef": "p"})"))),
              HasSubstr("exactly one of"));
  EXPECT_THAT(check_spec(spec_of(R"({"from": "a", "to": "b", "includedManagedClustersPlacementRef": "p"})")),
              IsEmpty());
}

TEST(MigrationSpec, EmptyNamesAreProblems) {
  EXPECT_THAT(joined(check_spec(spec_of(R"({"includedManagedClusters": ["", ""]})"))),
              testing::AllOf(HasSubstr("spec.from names no hub"), HasSubstr("spec.to names no hub"),
                             HasSubstr("names no cluster")));
}

// The CRD accepts any text as a cluster's name.
TEST(MigrationSpec, AListIsAnotherSelectionThanOneOfNamesWithLineBreaks) {
  const auto two = spec_of(R"({"from": "hub1", "to": "hub2", "includedManagedClusters": ["a", "b"]})");
  EXPECT_NE(selection_of(two), selection_of(spec_of(R"({"from": "hub1", "to": "hub2",
                                                        "includedManagedClusters": ["a\nb"]})")));
  EXPECT_NE(selection_of(two), selection_of(spec_of(R"({"from": "hub1", "to": "hub2",
                                                        "includedManagedClusters": ["a\\nb"]})")));
  // As earlier versions have recorded it.
  EXPECT_EQ(selection_of(two), "2da778c8fef075a3");
}

TEST(PhaseTimeout, IsTheDefaultUnlessTheSpecHasAValidOne) {
  EXPECT_EQ(phase_timeout(spec_of(valid), phases::validating), 5min);
  EXPECT_EQ(phase_timeout(spec_of(valid), phases::registering), 12min);
  EXPECT_EQ(phase_timeout(spec_of(valid), phases::rollbacking), 12min);
  EXPECT_EQ(phase_timeout(spec_of(valid), phases::cleaning), 10min);
  EXPECT_EQ(phase_timeout(spec_of(R"({"supportedConfigs": {"stageTimeout": "1h30m"}})"), phases::cleaning), 90min);
  for (const auto* bad : {R"("never")", R"("-5m")", R"("0s")", R"("")", "7", "{}"}) {
    const auto spec = spec_of(std::string{R"({"supportedConfigs": {"stageTimeout": )"} + bad + "}}");
    EXPECT_TRUE(spec.stage_timeout_problem) << bad;
    EXPECT_EQ(phase_timeout(spec, phases::deploying), 5min) << bad;
  }
}

TEST(MigrationStatus, IsParsedWithTypes) {
  const auto status = read_status(parse(R"({
    "phase": "Rollbacking", "from": "hub1", "to": "hub2", "startTime": "2030-01-01T00:00:00Z", "rollbackStage": "Deploying",
    "stage": {"phase": "Rollbacking", "startTime": "2030-01-01T00:05:00Z"},
    "credential": {"kind": "ServiceAccount", "namespace": "ns", "name": "bootstrap-m"},
    "clusters": {"total": 3, "migrated": 1, "failures": [{"name": "c", "stage": "Deploying", "reason": "Error"}]},
    "conditions": [{"type": "ResourceDeployed", "status": "False", "reason": "Error", "message": "full"},
                   {"type": "ResourceRolledBack", "status": "False", "reason": "Waiting", "message": "rolling back"}]})"));
  EXPECT_TRUE(status.is_failing());
  EXPECT_FALSE(status.has_ended());
  EXPECT_EQ(status.source_hub, "hub1");
  EXPECT_EQ(*status.phase_started - *status.started, 5min);
  EXPECT_EQ(status.rollback_stage, hubagent::Stage::deploying);
  EXPECT_EQ(status.credential->identity.name, "bootstrap-m");
  EXPECT_EQ(status.clusters.migrated, 1);
  ASSERT_THAT(status.failures, SizeIs(1));
  EXPECT_EQ(status.failures[0].cluster, "c");
  EXPECT_EQ(status.cause()->message, "full") << "Waiting is not a failure";
}

TEST(MigrationStatus, MalformedFieldsAreEmpty) {
  const auto status = read_status(parse(R"({"phase": 7, "startTime": "yesterday", "clusters": [], "conditions": [1],
                                            "rollback": {"a": 1}, "state": "x", "credential": "none"})"));
  EXPECT_EQ(status.phase, "");
  EXPECT_FALSE(status.started);
  EXPECT_FALSE(status.credential);
  EXPECT_EQ(status.clusters.total, 0);
  EXPECT_THAT(status.conditions, IsEmpty());
  EXPECT_THAT(status.problems, IsEmpty());
}

// A message by step, as always; earlier versions did not record which ones timed out.
TEST(MigrationStatus, ProblemsOfStepsAreMessagesWithThoseThatTimedOutBeside) {
  const auto status = read_status(parse(R"({"rollback": {"source": "no lease", "timedOut": ["source"]},
                                            "cleanup": {"target": "forbidden"}})"));
  ASSERT_THAT(status.problems, SizeIs(2));
  EXPECT_EQ(status.problems[0].activity + "/" + status.problems[0].step, "rollback/source");
  EXPECT_TRUE(status.problems[0].timed_out);
  EXPECT_EQ(status.problems[1].message, "forbidden");
  EXPECT_FALSE(status.problems[1].timed_out);
}

TEST(MigrationStatus, AllFailuresAreReadFromALedgerInItsShortForm) {
  Ledger ledger;
  for (int index = 0; index < 5000; ++index) ledger.all.push_back(std::to_string(10000 + index) + std::string(58, 'x'));
  for (const auto& name : ledger.all) ledger.fail(name, {"Registering", "Timeout", std::string(100, 'm')});
  for (const auto& name : ledger.all) ledger.rolled_back.insert(name);
  const auto failures = read_failures(kube::Object{json::object{{"data", to_data(ledger)}}});
  ASSERT_THAT(failures, SizeIs(5000));
  EXPECT_EQ(failures.back().cluster, ledger.all.back());
  EXPECT_EQ(failures.back().reason, "Timeout");
}

TEST(PhaseTable, ANameThatThisVersionDoesNotKnowIsTreatedWithCare) {
  EXPECT_EQ(find_phase("Teleporting"), nullptr);
  EXPECT_TRUE(is_active("Teleporting")) << "it may have changed something";
  EXPECT_FALSE(is_terminal("Teleporting"));
  EXPECT_FALSE(is_active("")) << "a new one has not begun";
}

TEST(PhaseTable, HasThePhasesOfTheDefinition) {
  std::vector<std::string> names;
  for (const auto& phase : phase_table) names.emplace_back(phase.name);
  EXPECT_THAT(phase_definition().tables().in_order(), testing::UnorderedElementsAreArray(names));
}

TEST(PhaseTable, ConditionsAndRollbackDepthsAreUnique) {
  std::set<std::string> conditions;
  std::set<hubagent::Stage> depths;
  for (const auto& phase : phase_table) {
    if (is_active(phase.name)) {
      EXPECT_TRUE(conditions.insert(phase.condition).second) << phase.name;
    }
    if (phase.rollback_depth) {
      EXPECT_TRUE(depths.insert(*phase.rollback_depth).second) << phase.name;
      EXPECT_EQ(to_string(*phase.rollback_depth), phase.name);
      EXPECT_FALSE(phase.survives_deletion) << phase.name << ": what is rolled back stops";
    }
  }
  EXPECT_THAT(depths, SizeIs(3));
}

/// Hubs that answer as they are told.
struct FakeReads final : ValidationReads {
  Awaitable<OperationResult<hubs::HubInfo>> find_hub(std::string hub) override {
    hubs::HubInfo info;
    info.name = hub;
    info.exists = info.is_hub = info.available = !missing.contains(hub);
    co_return info;
  }
  Awaitable<OperationResult<ClusterNames>> resolve_placement(std::string) override { co_return placement; }
  Awaitable<OperationResult<hubagent::Outcome>> validate_on_source(ClusterNames) override { co_return on_source; }
  Awaitable<OperationResult<hubagent::Outcome>> validate_on_target(ClusterNames) override { co_return on_target; }
  Awaitable<OperationResult<hubagent::Outcome>> check_klusterlet_configs(ClusterNames) override {
    co_return hubagent::Outcome{};
  }

  std::set<std::string> missing;
  OperationResult<ClusterNames> placement{ClusterNames{}};
  OperationResult<hubagent::Outcome> on_source{hubagent::Outcome{}};
  OperationResult<hubagent::Outcome> on_target{hubagent::Outcome{}};
};

std::vector<std::string> reasons_of(FakeReads& reads, const MigrationSpec& spec) {
  async::VirtualLoop loop;
  std::vector<std::string> reasons;
  for (const auto& problem : loop.run(validate(reads, spec)).problems)
    reasons.push_back(problem.hub + "/" + problem.cluster + ": " + problem.reason);
  return reasons;
}

TEST(Validation, AProblemOfOneHubDoesNotHideThoseOfTheOther) {
  FakeReads reads;
  reads.missing = {"hub2"};
  reads.on_source =
      hubagent::Outcome{{"a"}, {{"b", hubagent::FailureReason::cluster_not_found, "there is no cluster b"}}};
  reads.on_target = OperationError::timed_out("never read");
  EXPECT_THAT(reasons_of(reads, spec_of(valid)), ElementsAre("hub2/: HubClusterInvalid", "hub1/b: ClusterNotFound"));
}

TEST(Validation, AHubThatDoesNotAnswerIsAProblemWithTheReasonOfTheError) {
  FakeReads reads;
  reads.on_target = OperationError::timed_out("timed out after 5m");
  EXPECT_THAT(reasons_of(reads, spec_of(valid)), ElementsAre("hub2/: Timeout"));
}

TEST(Validation, APlacementMustSelectAtLeastOneCluster) {
  FakeReads reads;
  const auto spec = spec_of(R"({"from": "hub1", "to": "hub2", "includedManagedClustersPlacementRef": "p"})");
  EXPECT_THAT(reasons_of(reads, spec), ElementsAre("hub1/: ClusterNotFound"));
  reads.placement = ClusterNames{"b", "a", "b"};
  EXPECT_THAT(reasons_of(reads, spec), IsEmpty());
}

}  // namespace
}  // namespace hubferry::migration::test
