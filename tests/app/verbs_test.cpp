// What the verbs decide, without a server.
#include "app/verbs/verdicts.hpp"

#include <gmock/gmock.h>

#include "app/verbs/migration_draft.hpp"
#include "hubferry/hubagent/hub_permissions.hpp"
#include "hubferry/kube/yaml.hpp"
#include "hubferry/migration/phases.hpp"
#include "migration_samples.hpp"

namespace hubferry::app {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Verdict::Kind;

migration::MigrationSpec spec_of(std::vector<std::string> clusters) {
  migration::MigrationSpec spec;
  spec.from = "hub1";
  spec.to = "hub2";
  spec.clusters = std::move(clusters);
  return spec;
}

kube::Object migration_in(const std::string& phase, const std::string& more = "") {
  return kube::Object{migration_object("m", R"({"phase": ")" + phase + "\"" + more + "}")};
}

kube::Object deleted(kube::Object migration) {
  auto object = migration.json();
  object["metadata"].as_object()["deletionTimestamp"] = "2030-01-01T00:00:00Z";
  return kube::Object{object};
}

// A repeated call has to find the migration that the first one created.
TEST(MigrationDrafts, TheDefaultNameDependsOnHubsAndClustersOnly) {
  const auto name = default_migration_name(spec_of({"a", "b"}));
  EXPECT_THAT(name, testing::MatchesRegex("hub1-to-hub2-[0-9a-f]{8}"));
  EXPECT_EQ(default_migration_name(spec_of({"b", "a"})), name);
  EXPECT_NE(default_migration_name(spec_of({"a"})), name);
  auto long_one = spec_of({"a"});
  long_one.from = std::string(99, 'h') + "." + std::string(150, 'x');
  const auto draft = draft_of({"", ""}, long_one);
  EXPECT_LE(draft.key.name.size(), 253U);
  EXPECT_EQ(draft.key.ns, "hubferry-system");
}

TEST(MigrationDrafts, AFileKeepsItsNameUnlessAnotherIsGiven) {
  auto object = migration_object("m", completed_status, "elsewhere");
  object["metadata"].as_object()["resourceVersion"] = "7";
  object["metadata"].as_object()["labels"] = kube::json::object{{"wave", "1"}};
  const auto draft = draft_from({"", ""}, object);
  EXPECT_EQ(draft.key, (kube::Key{"elsewhere", "m"}));
  EXPECT_EQ(kube::string_at(draft.object, {"metadata", "labels", "wave"}), "1");
  EXPECT_EQ(kube::string_at(draft.object, {"metadata", "resourceVersion"}), "") << "it could not be created";
  EXPECT_FALSE(draft.object.contains("status"));
  EXPECT_EQ(draft_from({"here", "n"}, object).key, (kube::Key{"here", "n"}));
}

TEST(MigrationDrafts, WhatWasDecidedAboutAnEarlierMigrationIsNotForThisOne) {
  auto object = migration_object("m", completed_status);
  auto& metadata = object["metadata"].as_object();
  metadata["finalizers"] = kube::json::array{migration::names::finalizer};
  metadata["ownerReferences"] = kube::json::array{kube::json::object{{"uid", "1"}}};
  metadata["annotations"] = kube::json::object{{migration::names::leave_annotation, "hub2"},
                                               {migration::names::request_annotation, "rollback"},
                                               {"team", "edge"}};
  const auto draft = draft_from({"", ""}, object);
  const auto& made = draft.object.at("metadata").as_object();
  EXPECT_FALSE(made.contains("finalizers"));
  EXPECT_FALSE(made.contains("ownerReferences"));
  EXPECT_EQ(made.at("annotations"), (kube::json::object{{"team", "edge"}}));
}

TEST(MigrationDrafts, AHostileNameInAFileIsRejected) {
  EXPECT_THROW(draft_from({"", ""}, migration_object("m\x1b[2J", "")), std::runtime_error);
  EXPECT_THROW(draft_from({"", ""}, migration_object("m", "", "a/b")), std::runtime_error);
}

TEST(MigrationDrafts, ARetryOfARetryCounts) {
  EXPECT_EQ(retry_name("move"), "move-retry");
  EXPECT_EQ(retry_name("move-retry"), "move-retry-2");
  EXPECT_EQ(retry_name("move-retry-2"), "move-retry-3");
  EXPECT_EQ(retry_name("move-retry-9"), "move-retry-10");
  EXPECT_EQ(retry_name("my-retry-plan"), "my-retry-plan-retry");
  EXPECT_EQ(retry_name("move-retry-x1"), "move-retry-x1-retry");
}

TEST(MigrationDrafts, AreDescribedAsPeopleSay) {
  EXPECT_EQ(describe(spec_of({"a"})), "1 cluster from hub1 to hub2");
  auto placed = spec_of({});
  placed.clusters.reset();
  placed.placement = "leaving";
  EXPECT_EQ(describe(placed), "the clusters of Placement leaving from hub1 to hub2");
}

// Against the manager's own table of phases: a new phase must not be cancelled by accident.
TEST(Cancel, IsPossibleExactlyWhereTheManagerStopsAMigrationThatIsDeleted) {
  for (const auto& phase : migration::phase_table) {
    const auto verdict = judge_cancel(view_of(migration_in(phase.name)));
    const bool stops = !phase.survives_deletion && !migration::is_terminal(phase.name);
    EXPECT_EQ(verdict.kind, stops ? Kind::possible : Kind::refused) << phase.name << ": " << verdict.message;
    EXPECT_EQ(verdict.message.find("rolled back to hub1") != std::string::npos, phase.rollback_depth.has_value())
        << phase.name << ": " << verdict.message;
  }
  EXPECT_EQ(judge_cancel(view_of(kube::Object{migration_object("m", "")})).kind, Kind::possible);
  EXPECT_EQ(judge_cancel(view_of(migration_in("Teleporting"))).kind, Kind::refused);
}

TEST(Cancel, OfAMigrationThatIsBeingDeletedIsUnnecessary) {
  EXPECT_EQ(judge_cancel(view_of(deleted(migration_in("Registering")))).kind, Kind::unnecessary);
}

TEST(Rollback, IsPossibleOnlyWhereSomethingWasLeftBehindOrTheTargetMayHaveLostClusters) {
  const std::string stage = R"(, "rollbackStage": "Registering")";
  const auto condition = [&](const std::string& status) {
    return stage + R"(, "conditions": [{"type": "ResourceRolledBack", "status": ")" + status + R"("}])";
  };
  const auto judge = [](const kube::Object& object) { return judge_rollback_request(view_of(object), false); };
  EXPECT_EQ(judge(migration_in("Failed", condition("False"))).kind, Kind::possible);
  EXPECT_EQ(judge(migration_in("Failed", stage)).kind, Kind::possible);
  EXPECT_THAT(judge(migration_in("Failed", condition("True"))).message, HasSubstr("complete"));
  EXPECT_THAT(judge(migration_in("Failed")).message, HasSubstr("before anything was changed"));
  EXPECT_THAT(judge(migration_in("Completed")).message, HasSubstr("migrate them from hub2 to hub1"));
  EXPECT_THAT(judge(migration_in("Registering", stage)).message, HasSubstr("cancel it"));
  const auto cleaned = [](const std::string& reason) {
    return R"(, "conditions": [{"type": "ResourceCleaned", "status": "False", "reason": ")" + reason + R"("}])";
  };
  EXPECT_THAT(judge(migration_in("Cleaning")).message, HasSubstr("clusters that hub2 has lost return to hub1"));
  EXPECT_EQ(judge(migration_in("Completed", cleaned("LeftBehind"))).kind, Kind::possible);
  for (const auto& object :
       {migration_in("Failed", condition("True")), migration_in("Failed"), migration_in("Completed"),
        deleted(migration_in("Cleaning")), migration_in("Completed", cleaned("ResourceCleaned")),
        migration_in("Registering", stage), deleted(migration_in("Failed", condition("False")))})
    EXPECT_EQ(judge(object).kind, Kind::refused);
  const auto view = view_of(migration_in("Failed", condition("False")));
  EXPECT_EQ(judge_rollback_request(view, true).kind, Kind::unnecessary);
}

TEST(Retry, IsPossibleOnlyForAFailedMigration) {
  for (const auto& phase : migration::phase_table)
    EXPECT_EQ(judge_retry(view_of(migration_in(phase.name))).kind == Kind::possible,
              phase.kind == migration::PhaseKind::failure)
        << phase.name;
  EXPECT_EQ(judge_retry(view_of(deleted(migration_in("Failed")))).kind, Kind::refused);
}

kube::Object ledger_with(const std::string& success) {
  return kube::Object{kube::json::object{
      {"data", kube::json::object{
                   {"all-clusters", R"(["c1","c2","c3","c4"])"}, {"success", success}, {"failure", R"(["c2"])"}}}}};
}

TEST(Retry, MigratesWhatHasNotArrived) {
  const auto failed = migration_in("Failed", R"(, "rollbackStage": "Registering")");
  const auto spec = retry_spec(failed, ledger_with(R"(["c1","c3"])"));
  EXPECT_THAT(spec.clusters.value(), ElementsAre("c2", "c4"));
  EXPECT_EQ(spec.from, "hub1");
  EXPECT_THROW(retry_spec(failed, ledger_with(R"(["c1","c2","c3","c4"])")), std::runtime_error);
}

// A Placement may select others today; what failed is known by name.
TEST(Retry, OfAPlacementMigratesTheClustersThatItSelectedThen) {
  auto object = migration_in("Failed", R"(, "rollbackStage": "Deploying")").json();
  object["spec"] =
      kube::json::object{{"from", "hub1"}, {"to", "hub2"}, {"includedManagedClustersPlacementRef", "leaving"}};
  const auto spec = retry_spec(kube::Object{object}, ledger_with("[]"));
  EXPECT_THAT(spec.clusters.value(), ElementsAre("c1", "c2", "c3", "c4"));
  EXPECT_FALSE(spec.placement.has_value());
}

TEST(Retry, WithoutALedgerMigratesAllIfNothingWasChangedAndNothingOtherwise) {
  EXPECT_THAT(retry_spec(migration_in("Failed"), std::nullopt).clusters.value(), ElementsAre("c1", "c2", "c3", "c4"));
  EXPECT_THROW(retry_spec(migration_in("Failed", R"(, "rollbackStage": "Registering")"), std::nullopt),
               std::runtime_error);
}

// A role that nobody checks would be missed only during a migration.
TEST(HubPermissionsOfTheManifests, AreAllReviewed) {
  std::vector<std::string> reviewed;
  for (const auto& permissions : hubagent::hub_permissions()) {
    EXPECT_FALSE(permissions.needed.empty()) << permissions.name;
    reviewed.insert(reviewed.end(), permissions.roles.begin(), permissions.roles.end());
  }
  std::size_t roles = 0;
  for (const auto& document : kube::parse_yaml_documents(hubagent::hub_rbac_manifests(), "manifests")) {
    const auto kind = kube::string_at(document.as_object(), {"kind"});
    if (kind != "Role" && kind != "ClusterRole") continue;
    ++roles;
    EXPECT_THAT(reviewed, Contains(std::string{kube::string_at(document.as_object(), {"metadata", "name"})}));
  }
  EXPECT_EQ(roles, reviewed.size());
}

TEST(HubPermissionsOfTheManifests, AreNamedAsPeopleReadThem) {
  std::vector<std::string> texts;
  for (const auto& permissions : hubagent::hub_permissions())
    for (const auto& needed : permissions.needed) texts.push_back(needed.text());
  EXPECT_THAT(texts,
              AllOf(Contains("create secrets in namespace multicluster-engine"),
                    Contains("update managedclusters/accept.register.open-cluster-management.io"),
                    Contains("watch leases.coordination.k8s.io managed-cluster-lease"), Contains("create namespaces")));
}

}  // namespace
}  // namespace hubferry::app
