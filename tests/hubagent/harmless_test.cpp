#include "hubagent/annotations.hpp"
#include "hubagent/hub_test.hpp"
#include "hubagent/pause.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/resources.hpp"

/// What deprovisions or evicts something when it is deleted is deleted in the very version that was made harmless, and
/// on a proof that is fresh then.
namespace hubferry::hubagent {
namespace {

using namespace ocm::names;

class HarmlessTest : public HubTest {
 protected:
  /// A cluster with machines, detached from hub1.
  Awaitable<> detach(std::string name) {
    co_await put_cluster(*hub1_, name);
    co_await put_machinery(*hub1_, name);
    auto begun = co_await hub1_->source->initialize(migration_, {name}, kubeconfig_);
    auto detached = co_await hub1_->source->detach(migration_, {name});
    EXPECT_TRUE(begun && detached);
  }
  /// Its copy on hub2, on which the controllers have put their finalizers.
  Awaitable<> copy(std::string name) {
    co_await put_cluster(*hub1_, name);
    co_await put_machinery(*hub1_, name);
    auto work = parsed(R"({"spec": {"workload": {"manifests": []}}})");
    work["metadata"] = json::object{{"name", "app"}, {"namespace", name}};
    co_await put(*hub1_, ocm::manifest_works, work);
    auto bundle = co_await collected(*hub1_, {name});
    auto deployed = co_await hub2_->target->deploy(migration_, bundle);
    EXPECT_TRUE(deployed && deployed->failed.empty());
    co_await patch(*hub2_, ocm::cluster_deployments, {name, name}, harmful_deployment);
    co_await patch(*hub2_, ocm::manifest_works, {name, "app"}, harmful_work);
  }

  /// Awaits `change` before the first DELETE of this kind, and remembers every object of it that is being deleted while
  /// it is harmful.
  void before_deletion(TestHub& hub, kube::Resource resource, std::function<Awaitable<>()> change) {
    hub.api->on_call = [this, &hub, resource, change](const kube::Request& request) -> Awaitable<> {
      note_harm(hub);
      if (request.verb != kube::Verb::remove || request.resource != resource) co_return;
      if (++deletions_ == 1 && change) co_await change();
    };
  }
  void note_harm(const TestHub& hub) {
    if (const auto found = hub.server.object(ocm::cluster_deployments, {"c1", "c1"}); found && is_deleted(*found))
      if (const auto* preserve = found->find({"spec", "preserveOnDelete"}); preserve == nullptr || *preserve != true)
        harmed_.insert("ClusterDeployment");
    if (const auto found = hub.server.object(ocm::manifest_works, {"c1", "app"}); found && is_deleted(*found))
      if (found->string_at({"spec", "deleteOption", "propagationPolicy"}) != "Orphan") harmed_.insert("ManifestWork");
    if (const auto found = hub.server.object(ocm::bare_metal_hosts, {"c1", "host"}); found && is_deleted(*found))
      if (found->annotation(metal3_pause_annotation).empty()) harmed_.insert("BareMetalHost");
  }
  static bool is_deleted(const Object& object) { return object.is_being_deleted(); }

  static constexpr const char* harmful_deployment =
      R"({"metadata": {"finalizers": ["hive.openshift.io/deprovision"]}, "spec": {"preserveOnDelete": false}})";
  static constexpr const char* harmful_work =
      R"({"metadata": {"finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"]},
          "spec": {"deleteOption": {"propagationPolicy": "Foreground"}}})";
  static constexpr const char* harmful_host =
      R"({"metadata": {"finalizers": ["baremetalhost.metal3.io"],
                       "annotations": {"baremetalhost.metal3.io/paused": null}}})";

  std::size_t deletions_ = 0;
  std::set<std::string> harmed_;
};

// It was made harmless, and then its cluster returned: nobody would deprovision its machines when it is deleted one
// day.
TEST_F(HarmlessTest, ADeploymentThatReturnsIsDeprovisionedAsBefore) {
  const auto& kind = *find_pausing(ocm::cluster_deployments);
  for (const auto* spec : {R"({"spec": {"installed": true}})", R"({"spec": {"preserveOnDelete": false}})",
                           R"({"spec": {"preserveOnDelete": true}})"}) {
    const auto before = parsed(spec);
    auto object = before;
    EXPECT_TRUE(pause(object, kind, "uid"));
    EXPECT_TRUE(preserve_on_delete(object));
    EXPECT_TRUE(resume(object, kind, "uid"));
    EXPECT_EQ(object["spec"], before.at("spec"));
    EXPECT_EQ(annotation_text(object, annotations::preserve_on_delete_before), "");
  }
}

TEST_F(HarmlessTest, ADeploymentThatAUserHadPausedReturnsAsItWas) {
  const auto& kind = *find_pausing(ocm::cluster_deployments);
  auto object = parsed(R"({"metadata": {"annotations": {"hive.openshift.io/reconcile-pause": "true"}},
                           "spec": {"installed": true}})");
  const auto before = object;
  EXPECT_FALSE(pause(object, kind, "uid"));
  EXPECT_TRUE(preserve_on_delete(object));
  EXPECT_TRUE(resume(object, kind, "uid"));
  EXPECT_EQ(object, before);
  EXPECT_FALSE(resume(object, kind, "uid"));
}

// Argo CD or Flux applies what is in git: preserveOnDelete is gone again.
TEST_F(HarmlessTest, ADeploymentThatGitOpsMakesHarmfulOnTheSourceIsMadeHarmlessAgain) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    before_deletion(*hub1_, ocm::cluster_deployments,
                    [&] { return patch(*hub1_, ocm::cluster_deployments, {"c1", "c1"}, harmful_deployment); });
    (void)co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    note_harm(*hub1_);
    EXPECT_THAT(harmed_, IsEmpty());
    EXPECT_EQ(deletions_, 2U);
    EXPECT_FALSE(exists(*hub1_, ocm::cluster_deployments, {"c1", "c1"}));
    EXPECT_FALSE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
  });
}

TEST_F(HarmlessTest, ACopyThatGitOpsMakesHarmfulOnTheTargetIsMadeHarmlessAgain) {
  struct Case {
    kube::Resource resource;
    Key key;
    const char* harmful;
  };
  for (const auto& one : {Case{ocm::cluster_deployments, {"c1", "c1"}, harmful_deployment},
                          Case{ocm::manifest_works, {"c1", "app"}, harmful_work},
                          Case{ocm::bare_metal_hosts, {"c1", "host"}, harmful_host}}) {
    SCOPED_TRACE(one.resource.kind);
    reset();
    harmed_.clear();
    deletions_ = 0;
    run([&]() -> Awaitable<> {
      co_await copy("c1");
      before_deletion(*hub2_, one.resource, [&] { return patch(*hub2_, one.resource, one.key, one.harmful); });
      auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
      note_harm(*hub2_);
      EXPECT_THAT(harmed_, IsEmpty());
      EXPECT_EQ(deletions_, 2U);
      CO_ASSERT_TRUE(undone);
      EXPECT_THAT(undone->done, ElementsAre("c1"));
    });
  }
}

// A version from before the preparation would conflict, and be read and judged once more.
TEST_F(HarmlessTest, WhatWasPreparedIsDeletedByOneRequest) {
  for (const auto& resource : {ocm::cluster_deployments, ocm::manifest_works, ocm::bare_metal_hosts}) {
    SCOPED_TRACE(resource.kind);
    reset();
    deletions_ = 0;
    run([&]() -> Awaitable<> {
      co_await copy("c1");
      before_deletion(*hub2_, resource, {});
      auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
      CO_ASSERT_TRUE(undone);
      EXPECT_THAT(undone->done, ElementsAre("c1"));
      EXPECT_EQ(deletions_, 1U);
    });
  }
}

// GitOps changes it between the pause and the write that drops the finalizer: the pause must be seen first.
TEST_F(HarmlessTest, ADeploymentLosesItsFinalizerOnlyWhileItIsPreserved) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    const Key key{"c1", "c1"};
    std::size_t updates = 0;
    bool stripped_unpreserved = false;
    hub1_->api->on_call = [&](const kube::Request& request) -> Awaitable<> {
      if (const auto now = hub1_->server.object(ocm::cluster_deployments, key))
        if (const auto* preserve = now->find({"spec", "preserveOnDelete"}); preserve == nullptr || *preserve != true)
          stripped_unpreserved |= now->find({"metadata", "finalizers"}) == nullptr;
      if (request.verb != kube::Verb::update || request.resource != ocm::cluster_deployments) co_return;
      if (++updates == 2) co_await patch(*hub1_, ocm::cluster_deployments, key, harmful_deployment);
    };
    (void)co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    EXPECT_GT(updates, 2U);
    EXPECT_FALSE(stripped_unpreserved);
    EXPECT_FALSE(exists(*hub1_, ocm::cluster_deployments, key));
  });
}

TEST_F(HarmlessTest, ACopyThatSomebodyTookOverIsNeitherPausedNorDeleted) {
  run([&]() -> Awaitable<> {
    co_await copy("c1");
    const Key key{"c1", "c1"};
    bool taken = false;
    hub2_->api->on_call = [&](const kube::Request& request) -> Awaitable<> {
      if (request.verb != kube::Verb::update || request.resource != ocm::cluster_deployments) co_return;
      if (std::exchange(taken, true)) co_return;
      co_await patch(*hub2_, ocm::cluster_deployments, key,
                     R"({"metadata": {"labels": {"hubferry.io/migration": null},
                                      "annotations": {"hive.openshift.io/reconcile-pause": null}}})");
    };
    auto undone = co_await hub2_->target->roll_back(migration_, Stage::registering, {"c1"});
    CO_ASSERT_TRUE(undone);
    EXPECT_TRUE(taken);
    EXPECT_THAT(reasons_of(*undone), ElementsAre("c1: ClusterConflict"));
    const auto left = object(*hub2_, ocm::cluster_deployments, key);
    EXPECT_FALSE(left.is_being_deleted());
    EXPECT_EQ(left.annotation(hive_pause_annotation), "");
    EXPECT_TRUE(kube::has_finalizer(left, "hive.openshift.io/deprovision"));
  });
}

// The target's controllers acted on them, and the source's will do so again.
TEST_F(HarmlessTest, CopiesOfAClusterThatReturnsArePausedWhenItIsDenied) {
  run([&]() -> Awaitable<> {
    co_await copy("c1");
    auto released = co_await hub2_->target->clean(migration_, {"c1"});
    EXPECT_TRUE(released && released->failed.empty());
    auto foreign = parsed(R"({"metadata": {"name": "foreign", "namespace": "c1"}, "spec": {"online": true}})");
    co_await put(*hub2_, ocm::bare_metal_hosts, foreign);
    const auto pause_of = [&](const char* host) {
      return std::string{object(*hub2_, ocm::bare_metal_hosts, {"c1", host}).annotation(metal3_pause_annotation)};
    };
    EXPECT_EQ(pause_of("host"), "");
    auto denied = co_await hub2_->target->deny(migration_, {"c1"}, std::nullopt);
    CO_ASSERT_TRUE(denied);
    EXPECT_THAT(denied->done, ElementsAre("c1"));
    EXPECT_EQ(*cluster(*hub2_, "c1").find({"spec", "hubAcceptsClient"}), false);
    EXPECT_EQ(pause_of("host"), "true");
    EXPECT_EQ(object(*hub2_, ocm::cluster_deployments, {"c1", "c1"}).annotation(hive_pause_annotation), "true");
    EXPECT_EQ(pause_of("foreign"), "");
    // Also if the hub has lost the ManagedCluster, and kept its namespace.
    co_await hub2_->target->clean(migration_, {"c1"});
    co_await hub2_->server.api().remove(ocm::managed_clusters, {{}, "c1"});
    co_await hub2_->target->deny(migration_, {"c1"}, std::nullopt);
    EXPECT_EQ(pause_of("host"), "true");
  });
}

class ProofAgeTest : public HarmlessTest {
 protected:
  /// The target has the cluster when it is asked for the first time, and not any more afterwards.
  SourceHub::ConfirmArrival confirmed_once() {
    return [this](std::string) -> Awaitable<Result<>> {
      if (++proofs_ == 1) co_return Result<>{};
      co_return Error{FailureReason::unknown, "the target has lost it"};
    };
  }
  /// The first request of this kind is answered after a minute only.
  void answer_late(kube::Verb verb, kube::Resource resource) {
    hub1_->api->on_call = [this, verb, resource,
                           done = std::make_shared<bool>()](const kube::Request& request) -> Awaitable<> {
      if (request.verb != verb || request.resource != resource || std::exchange(*done, true)) co_return;
      co_await clock_.sleep_for(1min);
    };
  }
  Awaitable<> expect_all_kept() {
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, confirmed_once());
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: Unknown"));
    EXPECT_EQ(proofs_, 2);
    EXPECT_TRUE(exists(*hub1_, ocm::cluster_deployments, {"c1", "c1"}));
    EXPECT_TRUE(exists(*hub1_, ocm::managed_clusters, {{}, "c1"}));
  }

  int proofs_ = 0;
};

TEST_F(ProofAgeTest, NothingIsPreparedOnAProofAsOldAsTheSourcesAnswer) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    answer_late(kube::Verb::get, ocm::managed_clusters);
    const auto before = object(*hub1_, ocm::bare_metal_hosts, {"c1", "host"});
    co_await expect_all_kept();
    EXPECT_EQ(object(*hub1_, ocm::bare_metal_hosts, {"c1", "host"}).resource_version(), before.resource_version());
  });
}

TEST_F(ProofAgeTest, DeploymentsAreNotDeletedOnAProofAsOldAsTheirPreparation) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    answer_late(kube::Verb::update, ocm::bare_metal_hosts);
    co_await expect_all_kept();
  });
}

// The server asks for another attempt: that one needs a proof of its own.
TEST_F(ProofAgeTest, DeploymentsAreNotDeletedOnAProofAsOldAsARetry) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    hub1_->server.faults().on({"delete", "clusterdeployments"}).times(1).fail(429, 30);
    co_await expect_all_kept();
  });
}

TEST_F(ProofAgeTest, ASourceThatAcceptsTheClusterAgainDuringThePreparationKeepsItsDeployments) {
  run([&]() -> Awaitable<> {
    co_await detach("c1");
    hub1_->api->on_call = [this, done = std::make_shared<bool>()](const kube::Request& request) -> Awaitable<> {
      if (request.verb != kube::Verb::update || request.resource != ocm::bare_metal_hosts) co_return;
      if (std::exchange(*done, true)) co_return;
      co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"spec": {"hubAcceptsClient": true}})");
    };
    auto outcome = co_await hub1_->source->clean(migration_, {"c1"}, confirmed());
    CO_ASSERT_TRUE(outcome);
    EXPECT_THAT(reasons_of(*outcome), ElementsAre("c1: ClusterConflict"));
    EXPECT_TRUE(exists(*hub1_, ocm::cluster_deployments, {"c1", "c1"}));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
