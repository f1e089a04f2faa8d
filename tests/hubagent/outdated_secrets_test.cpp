#include "hubagent/outdated_secrets.hpp"

#include "hub_test.hpp"

/// What a migration leaves on a cluster is deleted by a ManifestWork, and nothing else is.
namespace hubferry::hubagent {
namespace {

using ocm::names::work_cleanup_finalizer;

class OutdatedSecretsTest : public HubTest {
 protected:
  OutdatedSecretsTest() { loop_.run(put_cluster(*hub2_, "c1")); }

  /// The klusterlet's, as an agent has taken it, or none has.
  Awaitable<> put_klusterlet_work(bool has_agent, std::string secret = "bootstrap-hub-kubeconfig") {
    json::object metadata{{"name", "c1-klusterlet"}, {"namespace", "c1"}};
    if (has_agent) metadata["finalizers"] = json::array{work_cleanup_finalizer};
    json::object work{{"metadata", std::move(metadata)}, {"spec", spec_with(secret)}};
    co_await put(*hub2_, ocm::manifest_works, std::move(work));
  }
  static json::object spec_with(const std::string& secret) {
    json::array manifests{json::object{
        {"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", json::object{{"name", secret}, {"namespace", "x"}}}}};
    return json::object{{"workload", json::object{{"manifests", std::move(manifests)}}}};
  }
  std::vector<std::string> works() {
    std::vector<std::string> names;
    for (const auto& work : hub2_->server.objects(ocm::manifest_works)) names.emplace_back(work.name());
    return names;
  }
  std::optional<Object> own_work() { return hub2_->server.object(ocm::manifest_works, {"c1", name}); }
  /// What the agent does with it: this version is applied.
  Awaitable<> apply() {
    auto applied = condition("Applied", "True", "2029-12-01T00:00:00Z");
    applied["observedGeneration"] = own_work()->generation();
    json::object body{{"status", json::object{{"conditions", json::array{std::move(applied)}}}}};
    co_await patch(*hub2_, ocm::manifest_works, {"c1", name}, json::serialize(body), "status");
  }
  Awaitable<> remove_secrets() {
    auto outcome = co_await hub2_->target->delete_outdated_secrets(migration_, {"c1"});
    CO_ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->done.size() + outcome->failed.size(), 1U);
    problem_.clear();
    is_open_ = false;
    for (const auto& failed : outcome->failed) {
      problem_ = failed.message;
      is_open_ = failed.reason == FailureReason::unknown;
    }
  }
  /// With what happens beside it.
  void remove_secrets_while(std::function<Awaitable<>()> agent) {
    run([&]() -> Awaitable<> {
      auto both = [&](async::TaskScope& scope) -> Awaitable<> {
        scope.spawn(agent());
        co_await remove_secrets();
        scope.stop();
      };
      co_await async::with_scope(both);
    });
  }

  static constexpr const char* name = "outdated-secrets-uid-1";
  std::string problem_;
  bool is_open_ = false;  // the work is to be deleted yet
};

TEST_F(OutdatedSecretsTest, TheWorkNamesTheSecretsLeavesTheirContentAloneAndIsDeletedOnceApplied) {
  std::optional<Object> work;
  loop_.run(put_klusterlet_work(true));
  remove_secrets_while([&]() -> Awaitable<> {
    co_await clock_.sleep_for(1s);
    work = own_work();
    CO_ASSERT_TRUE(work);
    co_await apply();
  });
  EXPECT_EQ(problem_, "");
  EXPECT_THAT(works(), ElementsAre("c1-klusterlet"));
  ASSERT_TRUE(work);
  std::vector<std::string> names;
  for (const auto& manifest : work->find({"spec", "workload", "manifests"})->as_array()) {
    names.emplace_back(kube::string_at(manifest.as_object(), {"metadata", "name"}));
    EXPECT_EQ(kube::string_at(manifest.as_object(), {"metadata", "namespace"}), "open-cluster-management-agent");
    EXPECT_FALSE(manifest.as_object().contains("data"));
  }
  EXPECT_THAT(names, ElementsAre("bootstrap-move", "bootstrap-hub-kubeconfig-current-hub"));
  for (const auto& config : work->find({"spec", "manifestConfigs"})->as_array())
    EXPECT_EQ(kube::string_at(config.as_object(), {"updateStrategy", "type"}), "CreateOnly");
}

// Else the next migration would take the agent for one that owns them.
TEST_F(OutdatedSecretsTest, AnAgentThatDoesNotApplyTheWorkIsReportedAndTheWorkIsDeleted) {
  loop_.run(put_klusterlet_work(true));
  run([&]() -> Awaitable<> { co_await remove_secrets(); });
  EXPECT_THAT(problem_, HasSubstr("Secrets bootstrap-move, bootstrap-hub-kubeconfig-current-hub stay in namespace "
                                  "open-cluster-management-agent of cluster c1, since its agent has not applied"));
  EXPECT_THAT(works(), ElementsAre("c1-klusterlet"));
}

TEST_F(OutdatedSecretsTest, AHubThatRefusesTheWorkIsReported) {
  loop_.run(put_klusterlet_work(true));
  hub2_->server.faults().on({.verb = "create", .resource = "manifestworks"}).always().fail(422);
  run([&]() -> Awaitable<> { co_await remove_secrets(); });
  EXPECT_THAT(problem_, HasSubstr("since hub hub2 refuses the ManifestWork that would delete them"));
}

TEST_F(OutdatedSecretsTest, AFailedDeletionOfTheWorkIsReported) {
  loop_.run(put_klusterlet_work(true));
  hub2_->server.faults().on({.verb = "delete", .resource = "manifestworks"}).always().fail(422);
  remove_secrets_while([&]() -> Awaitable<> {
    co_await clock_.sleep_for(1s);
    co_await apply();
  });
  EXPECT_THAT(problem_, HasSubstr("ManifestWork c1/outdated-secrets-uid-1"));
  EXPECT_TRUE(is_open_);
}

// Whether the target gives the cluster one of these Secrets is not known then: the work waits for the next attempt.
TEST_F(OutdatedSecretsTest, AWorkWhoseLastLookFailsIsDeletedByTheNextAttempt) {
  loop_.run(put_klusterlet_work(true));
  hub2_->server.faults().on({.verb = "get", .resource = "manifestworks", .name = "c1-klusterlet"}).after(1).fail(403);
  remove_secrets_while([&]() -> Awaitable<> {
    co_await clock_.sleep_for(1s);
    co_await apply();
  });
  EXPECT_THAT(works(), UnorderedElementsAre("c1-klusterlet", name));
  EXPECT_TRUE(is_open_) << problem_;
  run([&]() -> Awaitable<> { co_await remove_secrets(); });
  EXPECT_EQ(problem_, "");
  EXPECT_THAT(works(), ElementsAre("c1-klusterlet"));
}

/// An attempt that leaves its work on the hub: the last look of it fails.
class LeftWorkTest : public OutdatedSecretsTest {
 protected:
  LeftWorkTest() {
    loop_.run(put_klusterlet_work(true));
    const sim::FaultTarget last_look{.verb = "get", .resource = "manifestworks", .name = "c1-klusterlet"};
    hub2_->server.faults().on(last_look).after(1).fail(403);
    remove_secrets_while([&]() -> Awaitable<> {
      co_await clock_.sleep_for(1s);
      co_await apply();
    });
    EXPECT_THAT(works(), UnorderedElementsAre("c1-klusterlet", name));
    EXPECT_TRUE(is_open_);
    hub2_->server.faults().clear();
  }
  void remove_work_agent() {
    loop_.run(patch(*hub2_, ocm::manifest_works, {"c1", "c1-klusterlet"}, R"({"metadata": {"finalizers": null}})"));
  }
  void remove_klusterlet_work() {
    remove_work_agent();
    auto removed = loop_.run(hub2_->server.api().remove(ocm::manifest_works, {"c1", "c1-klusterlet"}));
    EXPECT_TRUE(removed);
    EXPECT_THAT(works(), ElementsAre(name));
  }
  void expect_deleted() {
    run([&]() -> Awaitable<> { co_await remove_secrets(); });
    EXPECT_EQ(problem_, "");
    EXPECT_FALSE(own_work());
  }
};

TEST_F(LeftWorkTest, IsDeletedWhenTheClusterHasNoKlusterletWorkAnyMore) {
  remove_klusterlet_work();
  expect_deleted();
}

TEST_F(LeftWorkTest, IsDeletedWhenTheClusterHasNoWorkAgentAnyMore) {
  remove_work_agent();
  expect_deleted();
}

TEST_F(LeftWorkTest, IsDeletedWhileItIsNotKnownWhetherOneMayBeCreated) {
  hub2_->server.faults().on({.verb = "create", .resource = "selfsubjectaccessreviews"}).always().fail(503);
  // Longer than an answer is used.
  loop_.run(clock_.sleep_for(1h));
  expect_deleted();
}

TEST_F(LeftWorkTest, IsPendingWhileTheHubDoesNotSayWhetherThereIsOne) {
  remove_klusterlet_work();
  hub2_->server.faults().on({.verb = "list", .resource = "manifestworks"}).always().fail(500);
  run([&]() -> Awaitable<> {
    auto outcome = co_await hub2_->target->delete_outdated_secrets(migration_, {"c1"});
    EXPECT_TRUE(!outcome || outcome->done.empty());
  });
  EXPECT_TRUE(own_work());
}

// Without an answer it is not known whether it exists: the migration must not end.
TEST_F(OutdatedSecretsTest, ACreationOfTheWorkWithoutAnAnswerIsRepeatedByTheNextAttempt) {
  loop_.run(put_klusterlet_work(true));
  hub2_->api->refuse = [&](const kube::Request& request) -> std::optional<kube::Error> {
    if (request.verb != kube::Verb::create || request.resource != ocm::manifest_works) return std::nullopt;
    return kube::Error{ErrorKind::ambiguous, 0, {}, "no answer", std::nullopt};
  };
  run([&]() -> Awaitable<> { co_await remove_secrets(); });
  EXPECT_TRUE(is_open_) << problem_;
}

// A cluster with two hubs of its own has one of that name, which is in use.
TEST_F(OutdatedSecretsTest, ASecretThatTheTargetGivesTheClusterStays) {
  std::optional<Object> work;
  loop_.run(put_klusterlet_work(true, "bootstrap-hub-kubeconfig-current-hub"));
  remove_secrets_while([&]() -> Awaitable<> {
    co_await clock_.sleep_for(1s);
    work = own_work();
    co_await apply();
  });
  ASSERT_TRUE(work);
  const auto& manifests = work->find({"spec", "workload", "manifests"})->as_array();
  ASSERT_EQ(manifests.size(), 1U);
  EXPECT_EQ(kube::string_at(manifests[0].as_object(), {"metadata", "name"}), "bootstrap-move");
}

// Somebody gives the cluster a KlusterletConfig with two hubs, just then.
TEST_F(OutdatedSecretsTest, ASecretThatTheTargetBeginsToGiveTheClusterMeanwhileStays) {
  std::optional<Object> orphaned;
  loop_.run(put_klusterlet_work(true));
  remove_secrets_while([&]() -> Awaitable<> {
    co_await clock_.sleep_for(1s);
    json::object body{{"spec", spec_with("bootstrap-hub-kubeconfig-current-hub")}};
    co_await patch(*hub2_, ocm::manifest_works, {"c1", "c1-klusterlet"}, json::serialize(body));
    co_await apply();
    co_await clock_.sleep_for(1s);
    orphaned = own_work();
    CO_ASSERT_TRUE(orphaned);
    co_await apply();
  });
  ASSERT_TRUE(orphaned);
  EXPECT_EQ(orphaned->string_at({"spec", "deleteOption", "propagationPolicy"}), "Orphan");
  EXPECT_THAT(works(), ElementsAre("c1-klusterlet"));
}

TEST_F(OutdatedSecretsTest, WithoutAWorkAgentThereIsNoWork) {
  run([&]() -> Awaitable<> {
    co_await remove_secrets();
    EXPECT_THAT(works(), IsEmpty());
    co_await put_klusterlet_work(false);
    co_await remove_secrets();
  });
  EXPECT_THAT(works(), ElementsAre("c1-klusterlet"));
  EXPECT_EQ(problem_, "");
}

TEST_F(OutdatedSecretsTest, AWorkOfThatNameThatIsNotOursIsLeftAlone) {
  run([&]() -> Awaitable<> {
    co_await put_klusterlet_work(true);
    json::object metadata{{"name", name}, {"namespace", "c1"}};
    json::object work{{"metadata", std::move(metadata)}, {"spec", spec_with("users")}};
    co_await put(*hub2_, ocm::manifest_works, std::move(work));
    co_await remove_secrets();
  });
  EXPECT_THAT(works(), UnorderedElementsAre("c1-klusterlet", name));
}

// Should a manager have died before it deleted the work, and the cluster move on.
TEST_F(OutdatedSecretsTest, TheWorkIsNotTakenForAUsersByTheNextMigration) {
  run([&]() -> Awaitable<> {
    json::object labels{{migration_label, "uid-2"}, {outdated_secrets_label, "true"}};
    json::object metadata{{"name", "outdated-secrets-uid-2"}, {"namespace", "c1"}, {"labels", std::move(labels)}};
    json::object work{{"metadata", std::move(metadata)}, {"spec", json::object{}}};
    co_await put(*hub2_, ocm::manifest_works, std::move(work));
    auto bundle = co_await collected(*hub2_, {"c1"});
    CO_ASSERT_EQ(bundle.clusters.size(), 1U);
    EXPECT_THAT(names_in(bundle.clusters[0]), ElementsAre("ManagedCluster c1"));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
