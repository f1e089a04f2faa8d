#include "hub_test.hpp"

/// What happens to objects between the look on which their deletion was decided and the deletion itself.
namespace hubferry::hubagent {
namespace {

class LastLookTest : public HubTest {
 protected:
  /// A cluster with machines, detached from hub1.
  Awaitable<> detach(std::string name) {
    co_await put_cluster(*hub1_, name);
    co_await put_machinery(*hub1_, name);
    auto begun = co_await hub1_->source->initialize(migration_, {name}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {name});
    EXPECT_TRUE(begun && detached);
  }
  /// One without machines.
  Awaitable<> detach_alone(std::string name) {
    co_await put_cluster(*hub1_, name);
    auto begun = co_await hub1_->source->initialize(migration_, {name}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {name});
    EXPECT_TRUE(begun && detached);
  }
  /// How often the ManagedCluster was read on hub1.
  std::ptrdiff_t looks() {
    return std::ranges::count_if(hub1_->server.requests(), [](const auto& request) {
      return request.verb == "get" && request.resource.starts_with("managedclusters.");
    });
  }
  /// Its copy on hub2.
  Awaitable<> copy(std::string name) {
    co_await put_cluster(*hub1_, name);
    co_await put_secret(*hub1_, name, name + "-admin-password");
    auto bundle = co_await collected(*hub1_, {name});
    auto deployed = co_await hub2_->target->deploy(migration_, bundle);
    EXPECT_TRUE(deployed && deployed->failed.empty());
  }
  /// Calls `change` before the first DELETE of this kind on hub2.
  void before_deletion(kube::Resource resource, std::function<Awaitable<>()> change) {
    hub2_->api->on_call = [resource, change,
                           done = std::make_shared<bool>()](const kube::Request& request) -> Awaitable<> {
      if (request.verb != kube::Verb::remove || request.resource != resource || std::exchange(*done, true)) co_return;
      co_await change();
    };
  }
};

// The machines' objects go before the ManagedCluster: a source that accepts the cluster again needs them.
TEST_F(LastLookTest, ASourceThatAcceptsTheClusterAgainAfterTheProofKeepsItsDeployments) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    auto accept_meanwhile = [&](std::string) -> Awaitable<Result<>> {
      co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"spec": {"hubAcceptsClient": true}})");
      co_return Result<>{};
    };
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, accept_meanwhile);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub1_, ocm::cluster_deployments, {"c1", "c1"}));
    EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
  });
}

// The API server itself looks: the deletion is conditional on the version that was compared.
TEST_F(LastLookTest, AClusterThatNobodyHasChangedSinceItWasComparedIsDeletedByOneRequest) {
  run([&]() -> Awaitable<> {
    co_await detach_alone("c1");
    (void)co_await collected(*hub1_, {"c1"});
    hub1_->server.forget_requests();
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
    EXPECT_FALSE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
    EXPECT_EQ(looks(), 0);
  });
}

TEST_F(LastLookTest, AClusterThatTheSourceAcceptsAgainAfterItWasComparedStays) {
  run([&]() -> Awaitable<> {
    co_await detach_alone("c1");
    (void)co_await collected(*hub1_, {"c1"});
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"spec": {"hubAcceptsClient": true}})");
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
  });
}

TEST_F(LastLookTest, AClusterThatSomebodyChangedSinceItWasComparedIsLookedAtAndProvenAnew) {
  run([&]() -> Awaitable<> {
    co_await detach_alone("c1");
    (void)co_await collected(*hub1_, {"c1"});
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata": {"labels": {"a": "b"}}})");
    hub1_->server.forget_requests();
    int proofs = 0;
    auto count = [&](std::string) -> Awaitable<Result<>> {
      ++proofs;
      co_return Result<>{};
    };
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, count);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
    EXPECT_EQ(looks(), 1);
    EXPECT_EQ(proofs, 2);
  });
}

// What is changed before the deletion carries no version of the ManagedCluster.
TEST_F(LastLookTest, AClusterWithMachinesIsLookedAtThoughItWasCompared) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    (void)co_await collected(*hub1_, {"c1"});
    auto accept_meanwhile = [&](std::string) -> Awaitable<Result<>> {
      co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"spec": {"hubAcceptsClient": true}})");
      co_return Result<>{};
    };
    const auto hosts = object(*hub1_, ocm::bare_metal_hosts, {"c1", "host"});
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, accept_meanwhile);
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub1_, ocm::cluster_deployments, {"c1", "c1"}));
    EXPECT_EQ(object(*hub1_, ocm::bare_metal_hosts, {"c1", "host"}).resource_version(), hosts.resource_version());
  });
}

TEST_F(LastLookTest, AVersionThatAnotherMigrationHasClaimedIsNotRecalled) {
  run([&]() -> Awaitable<> {
    co_await detach_alone("c1");
    (void)co_await collected(*hub1_, {"c1"});
    auto outcome = co_await hub1_->source->clean(other_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
  });
}

TEST_F(LastLookTest, EveryDeletionCarriesUidAndVersion) {
  run([&]() -> Awaitable<> {
    std::size_t deletions = 0;
    auto check = [&](const kube::Request& request) -> Awaitable<> {
      if (request.verb != kube::Verb::remove) co_return;
      ++deletions;
      EXPECT_FALSE(request.precondition_uid.empty()) << request.resource.kind;
      EXPECT_FALSE(request.precondition_resource_version.empty()) << request.resource.kind;
    };
    co_await detach("c1");
    auto bundle = co_await collected(*hub1_, {"c1"});
    co_await hub2_->target->deploy(migration_, bundle);
    hub1_->api->on_call = hub2_->api->on_call = check;
    (void)co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    (void)co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    (void)co_await hub1_->source->delete_migration_objects(migration_);
    EXPECT_GE(deletions, 8U);
  });
}

TEST_F(LastLookTest, AnObjectThatSomebodyTookOverIsNotDeleted) {
  run([&]() -> Awaitable<> {
    co_await copy("c1");
    const Key secret{"c1", "c1-admin-password"};
    before_deletion(kube::resources::secrets, [&]() -> Awaitable<> {
      co_await patch(*hub2_, kube::resources::secrets, secret,
                     R"({"metadata": {"labels": {"hubferry.io/migration": null}}})");
    });
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    CO_ASSERT_TRUE(undone);
    EXPECT_THAT(reasons_of(*undone), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub2_, kube::resources::secrets, secret));
  });
}

TEST_F(LastLookTest, AnObjectThatChangedButIsStillOursIsDeleted) {
  run([&]() -> Awaitable<> {
    co_await copy("c1");
    before_deletion(kube::resources::secrets, [&]() -> Awaitable<> {
      co_await patch(*hub2_, kube::resources::secrets, {"c1", "c1-admin-password"}, R"({"data": {"key": "bmV3"}})");
    });
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    EXPECT_TRUE(undone && undone->failed.empty());
    EXPECT_FALSE(exists(*hub2_, ocm::managed_clusters, {{}, "c1"}));
  });
}

// A person accepts it, or its agent joins, while its copy is being deleted.
TEST_F(LastLookTest, ACopyThatIsAcceptedAtTheLastMomentStays) {
  run([&]() -> Awaitable<> {
    co_await copy("c1");
    before_deletion(ocm::managed_clusters, [&]() -> Awaitable<> {
      co_await patch(*hub2_, ocm::managed_clusters, {{}, "c1"}, R"({"spec": {"hubAcceptsClient": true}})");
    });
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    CO_ASSERT_TRUE(undone);
    EXPECT_THAT(reasons_of(*undone), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub2_, ocm::managed_clusters, {{}, "c1"}));
  });
}

TEST_F(LastLookTest, ACopyWhoseAgentJoinsAtTheLastMomentStays) {
  run([&]() -> Awaitable<> {
    co_await copy("c1");
    before_deletion(ocm::managed_clusters, [&]() -> Awaitable<> {
      co_await patch(*hub2_, ocm::managed_clusters, {{}, "c1"},
                     R"({"status": {"conditions": [{"type": "ManagedClusterJoined", "status": "True", "reason": "r",
                         "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"}]}})",
                     "status");
    });
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::deploying, {"c1"});
    CO_ASSERT_TRUE(undone);
    EXPECT_THAT(reasons_of(*undone), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub2_, ocm::managed_clusters, {{}, "c1"}));
  });
}

// A migration gives an operation 200 s: what it has found out about the others must be known by then.
TEST_F(LastLookTest, AnOperationEndsInTimeWhateverOneClusterWaitsFor) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) {
      co_await put_cluster(*hub1_, name);
      auto begun = co_await hub1_->source->initialize(migration_, {name}, kubeconfig_);
      auto detached = co_await hub1_->source->detach(migration_, {name});
      EXPECT_TRUE(begun && detached);
    }
    co_await put_secret(*hub1_, "c1", "c1-admin-password");
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata": {"finalizers": ["slow.example.com/x"]}})");
    const auto start = clock_.now();
    // The hub refuses its deletion for a while, finalizers hold it for a while, and then its namespace stays.
    hub1_->api->refuse = [&](const kube::Request& request) -> std::optional<kube::Error> {
      const bool is_c1 = request.verb == kube::Verb::remove && request.key.name == "c1";
      if (!is_c1 || clock_.now() - start > 45s) return std::nullopt;
      return kube::Error{ErrorKind::retry_later, 429, "TooManyRequests", "later", std::nullopt};
    };
    auto release = [&]() -> Awaitable<> {
      while (!cluster(*hub1_, "c1").is_being_deleted()) co_await clock_.sleep_for(1s);
      co_await clock_.sleep_for(55s);
      co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata": {"finalizers": null}})");
    };
    std::optional<Outcome> result;
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(release());
      auto outcome = co_await hub1_->source->clean(migration_, {"c1", "c2"}, confirmed());
      CO_ASSERT_TRUE(outcome);
      result = *outcome;
    };
    co_await async::with_scope(both);
    CO_ASSERT_TRUE(result.has_value());
    EXPECT_LT(clock_.now() - start, 200s);
    EXPECT_THAT(result->done, ElementsAre("c2"));
    CO_ASSERT_TRUE(result->failed.size() == 1);
    EXPECT_THAT(result->failed[0].message, HasSubstr("was not finished on hub hub1 in time"));
  });
}

TEST_F(LastLookTest, WhatWasReleasedIsCompletedAndOtherwiseLeftAsItIs) {
  run([&]() -> Awaitable<> {
    co_await copy("c1");
    co_await put_secret(*hub1_, "c1", "c1-metadata-json");
    auto bundle = co_await collected(*hub1_, {"c1"});
    const Key changed{"c1", "c1-admin-password"};
    const Key missing{"c1", "c1-metadata-json"};
    co_await patch(*hub2_, kube::resources::secrets, changed, R"({"data": {"key": "bmV3"}})");
    auto completed = co_await hub2_->target->complete(migration_, bundle);
    CO_ASSERT_TRUE(completed);
    EXPECT_THAT(completed->done, ElementsAre("c1"));
    EXPECT_EQ(object(*hub2_, kube::resources::secrets, changed)->at("data").at("key"), "bmV3");
    EXPECT_TRUE(exists(*hub2_, kube::resources::secrets, missing));
    // Somebody else's of that name proves nothing, and a cluster is not created behind its agent's back.
    co_await patch(*hub2_, kube::resources::secrets, missing,
                   R"({"metadata": {"labels": {"hubferry.io/migration": null}}})");
    auto foreign = co_await hub2_->target->complete(migration_, bundle);
    CO_ASSERT_TRUE(foreign);
    EXPECT_THAT(reasons_of(*foreign), ElementsAre("c1: ClusterConflict"));
    co_await hub2_->server.api().remove(kube::resources::secrets, missing);
    co_await hub2_->server.api().remove(ocm::managed_clusters, {{}, "c1"});
    auto without = co_await hub2_->target->complete(migration_, bundle);
    CO_ASSERT_TRUE(without);
    EXPECT_THAT(reasons_of(*without), ElementsAre("c1: ClusterNotFound"));
    EXPECT_FALSE(exists(*hub2_, ocm::managed_clusters, {{}, "c1"}));
  });
}

TEST_F(LastLookTest, AHubSaysWhichClustersItAccepts) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c2"}, R"({"spec": {"hubAcceptsClient": false}})");
    auto accepted = co_await hub1_->source->accepted({"c1", "c2", "c3"});
    CO_ASSERT_TRUE(accepted);
    EXPECT_THAT(*accepted, ElementsAre("c1"));
    hub1_->server.faults().on({"get", "managedclusters"}).always().fail(403);
    auto refused = co_await hub1_->source->accepted({"c1"});
    EXPECT_FALSE(refused) << "what it does not say is not known";
  });
}

TEST_F(LastLookTest, OnlyAClaimedClusterThatIsNotBeingDeletedCanReturn) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await detach(name);
    co_await put_cluster(*hub1_, "c3");
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c2"}, R"({"metadata": {"finalizers": ["hub/cleanup"]}})");
    co_await hub1_->server.api().remove(ocm::managed_clusters, {{}, "c2"});
    const auto before = content_of(hub1_->server);
    auto outcome = co_await hub1_->source->returnable(migration_, {"c1", "c2", "c3", "c4"});
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(outcome->done, ElementsAre("c1"));
    EXPECT_THAT(reasons_of(*outcome),
                ElementsAre("c2: ClusterNotAvailable", "c3: ClusterConflict", "c4: ClusterNotFound"));
    EXPECT_THAT(differences(before, content_of(hub1_->server)), IsEmpty());
  });
}

}  // namespace
}  // namespace hubferry::hubagent
