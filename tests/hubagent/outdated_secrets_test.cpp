#include "hubagent/outdated_secrets.hpp"

#include "hub_test.hpp"

/// What a migration leaves on a cluster is deleted by a ManifestWork, and nothing else is.
namespace hubferry::hubagent {
namespace {

class OutdatedSecretsTest : public HubTest {
 protected:
  Awaitable<> put_work(std::string name, json::object labels, json::object spec = {}, bool applied = true) {
    json::object work{{"metadata", json::object{{"name", name}, {"namespace", "c1"}, {"labels", std::move(labels)}}},
                      {"spec", std::move(spec)}};
    if (applied)
      work["status"] = json::object{{"conditions", json::array{condition("Applied", "True", "2029-12-01T00:00:00Z")}}};
    co_await put(*hub2_, ocm::manifest_works, std::move(work));
  }
  /// The klusterlet's, as an agent has taken it, or none has.
  Awaitable<> put_klusterlet_work(bool has_agent, std::string secret = "bootstrap-hub-kubeconfig") {
    json::array manifests{json::object{
        {"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", json::object{{"name", secret}, {"namespace", "x"}}}}};
    json::object metadata{{"name", "c1-klusterlet"}, {"namespace", "c1"}};
    if (has_agent) metadata["finalizers"] = json::array{ocm::names::work_cleanup_finalizer};
    json::object spec{{"workload", json::object{{"manifests", std::move(manifests)}}}};
    json::object work{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
    co_await put(*hub2_, ocm::manifest_works, std::move(work));
  }
  std::vector<std::string> works() {
    std::vector<std::string> names;
    for (const auto& work : hub2_->server.objects(ocm::manifest_works)) names.emplace_back(work.name());
    return names;
  }
  Awaitable<> end() {
    auto deleted = co_await hub2_->target->delete_migration_objects(migration_, identity_);
    EXPECT_TRUE(deleted) << deleted.error();
  }
  static constexpr const char* own_work = "outdated-secrets-uid-1";
};

TEST_F(OutdatedSecretsTest, OnlyTheWorkOfThisMigrationIsDeletedAtItsEnd) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub2_, "c1");
    co_await put_work(own_work, {{migration_label, "uid-1"}, {outdated_secrets_label, "true"}});
    co_await put_work("copied", {{migration_label, "uid-1"}});
    co_await put_work("others", {{migration_label, "uid-2"}, {outdated_secrets_label, "true"}});
    co_await put_work("users", {{outdated_secrets_label, "true"}});
    co_await end();
  });
  EXPECT_THAT(works(), UnorderedElementsAre("copied", "others", "users"));
}

TEST_F(OutdatedSecretsTest, AWorkIsDeletedWhenTheAgentHasAppliedItAndAfterSomeSecondsInAnyCase) {
  for (const bool applied : {true, false}) {
    reset();
    const auto began = clock_.now();
    run([&]() -> Awaitable<> {
      co_await put_cluster(*hub2_, "c1");
      co_await put_work(own_work, {{migration_label, "uid-1"}, {outdated_secrets_label, "true"}}, {}, applied);
      co_await end();
    });
    EXPECT_THAT(works(), IsEmpty());
    EXPECT_EQ(clock_.now() - began < 5s, applied) << "else the agent would not delete the Secrets";
  }
}

TEST_F(OutdatedSecretsTest, TheWorkNamesTheSecretsAndLeavesTheirContentAlone) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub2_, "c1");
    co_await put_klusterlet_work(true);
    co_await adopt_outdated_secrets(*hub2_->hub, migration_, "c1");
    // Once more, as after a crash.
    co_await adopt_outdated_secrets(*hub2_->hub, migration_, "c1");
  });
  ASSERT_THAT(works(), UnorderedElementsAre("c1-klusterlet", own_work));
  const auto work = object(*hub2_, ocm::manifest_works, {"c1", own_work});
  std::vector<std::string> names;
  for (const auto& manifest : work.find({"spec", "workload", "manifests"})->as_array()) {
    names.emplace_back(kube::string_at(manifest.as_object(), {"metadata", "name"}));
    EXPECT_EQ(kube::string_at(manifest.as_object(), {"metadata", "namespace"}), "open-cluster-management-agent");
    EXPECT_FALSE(manifest.as_object().contains("data"));
  }
  EXPECT_THAT(names, ElementsAre("bootstrap-move", "bootstrap-hub-kubeconfig-current-hub"));
  for (const auto& config : work.find({"spec", "manifestConfigs"})->as_array())
    EXPECT_EQ(kube::string_at(config.as_object(), {"updateStrategy", "type"}), "CreateOnly");
}

// A cluster with two hubs of its own has one of that name, which is in use.
TEST_F(OutdatedSecretsTest, ASecretThatTheTargetGivesTheClusterStays) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub2_, "c1");
    co_await put_klusterlet_work(true, "bootstrap-hub-kubeconfig-current-hub");
    co_await adopt_outdated_secrets(*hub2_->hub, migration_, "c1");
  });
  const auto work = object(*hub2_, ocm::manifest_works, {"c1", own_work});
  const auto& manifests = work.find({"spec", "workload", "manifests"})->as_array();
  ASSERT_EQ(manifests.size(), 1U);
  EXPECT_EQ(kube::string_at(manifests[0].as_object(), {"metadata", "name"}), "bootstrap-move");
}

TEST_F(OutdatedSecretsTest, WithoutAWorkAgentThereIsNoWork) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub2_, "c1");
    co_await adopt_outdated_secrets(*hub2_->hub, migration_, "c1");
    co_await put_klusterlet_work(false);
    co_await adopt_outdated_secrets(*hub2_->hub, migration_, "c1");
  });
  EXPECT_THAT(works(), ElementsAre("c1-klusterlet"));
}

// Should the agent never have applied it: its cluster moves on without it.
TEST_F(OutdatedSecretsTest, TheWorkIsNotTakenForAUsersByTheNextMigration) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub2_, "c1");
    co_await put_work("outdated-secrets-uid-2", {{migration_label, "uid-2"}, {outdated_secrets_label, "true"}});
    auto bundle = co_await collected(*hub2_, {"c1"});
    CO_ASSERT_EQ(bundle.clusters.size(), 1U);
    EXPECT_THAT(names_in(bundle.clusters[0]), ElementsAre("ManagedCluster c1"));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
