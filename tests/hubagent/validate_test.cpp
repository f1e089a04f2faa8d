#include "hub_test.hpp"

namespace hubferry::hubagent {
namespace {

class ValidateTest : public HubTest {};

TEST_F(ValidateTest, EveryClusterFailsWithItsOwnReason) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "good");
    co_await put(*hub1_, ocm::managed_clusters, managed_cluster("away", "Unknown"));
    auto hosted = managed_cluster("hosted");
    hosted["metadata"].as_object()["annotations"] = json::object{{ocm::names::import_mode_annotation, "Hosted"}};
    co_await put(*hub1_, ocm::managed_clusters, hosted);
    auto local = managed_cluster("local-cluster");
    local["metadata"].as_object()["labels"] = json::object{{"local-cluster", "true"}};
    co_await put(*hub1_, ocm::managed_clusters, local);
    auto hub = managed_cluster("hub");
    hub["metadata"].as_object()["annotations"] = json::object{{ocm::names::on_hub_annotation, "true"}};
    co_await put(*hub1_, ocm::managed_clusters, hub);
    auto moving = managed_cluster("moving");
    moving["metadata"].as_object()["annotations"] = json::object{{ocm::names::migrating_annotation, "uid-2"}};
    co_await put(*hub1_, ocm::managed_clusters, moving);
    json::object bare;
    bare["metadata"] = json::object{{"name", "no-conditions"}};
    bare["spec"] = json::object{{"hubAcceptsClient", true}};
    co_await put(*hub1_, ocm::managed_clusters, bare);
    auto let_go = managed_cluster("let-go");
    let_go["spec"].as_object()["hubAcceptsClient"] = false;
    co_await put(*hub1_, ocm::managed_clusters, let_go);
    co_await clock_.sleep_for(1s);

    const ClusterNames names{"good", "missing", "away",          "hosted", "local-cluster",
                             "hub",  "moving",  "no-conditions", "let-go"};
    auto outcome = co_await hub1_->source->validate(migration_, names);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("good"));
    EXPECT_THAT(reasons_of(*outcome),
                ElementsAre("missing: ClusterNotFound", "away: ClusterNotAvailable", "hosted: ClusterIsHosted",
                            "local-cluster: ClusterIsLocal", "hub: ClusterIsHub", "moving: ClusterConflict",
                            "no-conditions: ClusterNotAvailable", "let-go: ClusterNotAvailable"));
    EXPECT_THAT(outcome->failed[5].message, HasSubstr("uid-2"));
  });
}

TEST_F(ValidateTest, TheTargetRejectsNamesThatExistThere) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub2_, "taken");
    co_await put_namespace(*hub2_, "empty-space");
    co_await put_namespace(*hub2_, "filled-space");
    co_await put_secret(*hub2_, "filled-space", "filled-space-admin-password");
    co_await put_namespace(*hub2_, "other-things");
    co_await put_secret(*hub2_, "other-things", "unrelated");
    co_await clock_.sleep_for(1s);
    const ClusterNames names{"new", "taken", "empty-space", "filled-space", "other-things"};
    auto outcome = co_await hub2_->target->validate(migration_, names);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("new", "empty-space", "other-things"));
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("taken: ClusterConflict", "filled-space: ClusterConflict"));
  });
}

TEST_F(ValidateTest, AnEmptyListIsValid) {
  run([&]() -> Awaitable<> {
    auto source = co_await hub1_->source->validate(migration_, {});
    auto target = co_await hub2_->target->validate(migration_, {});
    CO_ASSERT_TRUE(source && target);
    EXPECT_TRUE(source->done.empty() && source->failed.empty());
    EXPECT_TRUE(target->done.empty() && target->failed.empty());
  });
}

TEST_F(ValidateTest, AnUnreachableHubIsAnErrorNotAClusterFailure) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    hub1_->server.outage(true);
    auto unreachable = co_await hub1_->source->validate(migration_, {"c1"});
    CO_ASSERT_TRUE(!unreachable);
    EXPECT_TRUE(unreachable.error().is(ErrorKind::unreachable)) << unreachable.error();
    EXPECT_THAT(unreachable.error().message(), HasSubstr("hub1"));
    hub1_->server.outage(false);
    hub2_->server.faults().on({"list", "managedclusters"}).always().fail(403);
    auto forbidden = co_await hub2_->target->validate(migration_, {"c1"});
    CO_ASSERT_TRUE(!forbidden);
    EXPECT_TRUE(forbidden.error().is(ErrorKind::forbidden)) << forbidden.error();
  });
}

// Two teams may have a Placement of one name each: their clusters must not be moved together by accident.
TEST_F(ValidateTest, APlacementMayBeNamedWithItsNamespaceAndMustBeIfThereAreSeveral) {
  run([&]() -> Awaitable<> {
    for (const char* ns : {"default", "kube-system"}) {
      json::object decision;
      json::object labels{{ocm::names::placement_label, "chosen"}};
      decision["metadata"] = json::object{{"name", "chosen-1"}, {"namespace", ns}, {"labels", std::move(labels)}};
      decision["status"] = parsed(std::string{R"({"decisions": [{"clusterName": "of-)"} + ns + R"(", "reason": ""}]})");
      co_await put(*hub1_, ocm::placement_decisions, decision);
    }
    auto one = co_await hub1_->source->resolve_placement("kube-system/chosen");
    CO_ASSERT_TRUE(one);
    EXPECT_THAT(*one, ElementsAre("of-kube-system"));
    auto some = co_await hub1_->source->resolve_placement("chosen");
    CO_ASSERT_TRUE(!some);
    EXPECT_THAT(some.error().message(), HasSubstr("default/chosen, kube-system/chosen"));
    for (const char* wrong : {"/chosen", "default/", "a/b/chosen"}) {
      auto refused = co_await hub1_->source->resolve_placement(wrong);
      EXPECT_FALSE(refused) << wrong;
    }
  });
}

TEST_F(ValidateTest, APlacementIsTheUnionOfItsDecisions) {
  run([&]() -> Awaitable<> {
    for (const char* text :
         {R"({"decisions": [{"clusterName": "b", "reason": ""}, {"clusterName": "a", "reason": ""}]})",
          R"({"decisions": [{"clusterName": "", "reason": ""}, {"clusterName": "b", "reason": ""}]})"}) {
      json::object decision;
      json::object labels{{ocm::names::placement_label, "chosen"}};
      decision["metadata"] =
          json::object{{"generateName", "chosen-"}, {"namespace", "default"}, {"labels", std::move(labels)}};
      decision["status"] = parsed(text);
      co_await put(*hub1_, ocm::placement_decisions, decision);
    }
    auto found = co_await hub1_->source->resolve_placement("chosen");
    CO_ASSERT_TRUE(found);
    EXPECT_THAT(*found, ElementsAre("a", "b"));
    auto unknown = co_await hub1_->source->resolve_placement("unknown");
    CO_ASSERT_TRUE(!unknown);
    EXPECT_EQ(unknown.error().reason(), FailureReason::placement_not_found);
    EXPECT_THAT(unknown.error().message(), HasSubstr("unknown"));
    auto nameless = co_await hub1_->source->resolve_placement("");
    EXPECT_FALSE(nameless);
  });
}

}  // namespace
}  // namespace hubferry::hubagent
