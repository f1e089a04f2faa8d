#include "sim/ocm/ocm_test.hpp"

namespace hubferry::sim {
namespace {

namespace resources = kube::resources;
using testing::ElementsAre;
using testing::IsEmpty;

class Availability : public ManualHubTest {
 protected:
  void make_available(const std::string& name) {
    set_condition(name, ocm::names::available, kube::ConditionStatus::yes, "ManagedClusterAvailable");
  }
  std::string available(const std::string& name) const { return condition(name, ocm::names::available); }
};

TEST_F(Availability, UnknownComesExactlyWhenTheLeaseExpires) {
  create_accepted("c1");
  make_available("c1");
  const auto renewed = clock_.wall_now();
  renew_lease("c1", renewed);
  const auto expiry = clock_.now() + 300s;
  loop_.run_until(expiry - 1ms);
  EXPECT_EQ(available("c1"), "True/ManagedClusterAvailable");
  loop_.run_until(expiry);
  EXPECT_EQ(available("c1"), "Unknown/ManagedClusterLeaseUpdateStopped");
  loop_.run_for(1h);
  EXPECT_EQ(events("c1", "AvailableUnknown"), 1U);
}

TEST_F(Availability, HeartbeatsPostponeUnknownAlsoForADeniedCluster) {
  create_accepted("c1");
  make_available("c1");
  for (int beat = 0; beat < 20; ++beat) {
    renew_lease("c1", clock_.wall_now());
    loop_.run_for(60s);
  }
  EXPECT_EQ(available("c1"), "True/ManagedClusterAvailable");
  accept("c1", false);
  loop_.run_for(300s);
  EXPECT_EQ(available("c1"), "Unknown/ManagedClusterLeaseUpdateStopped");
}

// The hub never sets True: only the agent does.
TEST_F(Availability, AReturningAgentIsAvailableUntilItStopsAgain) {
  create_accepted("c1");
  make_available("c1");
  loop_.run_for(301s);
  EXPECT_EQ(available("c1"), "Unknown/ManagedClusterLeaseUpdateStopped");
  renew_lease("c1", clock_.wall_now());
  settle();
  EXPECT_EQ(available("c1"), "Unknown/ManagedClusterLeaseUpdateStopped");
  make_available("c1");
  EXPECT_EQ(available("c1"), "True/ManagedClusterAvailable");
  loop_.run_for(400s);
  EXPECT_EQ(available("c1"), "Unknown/ManagedClusterLeaseUpdateStopped");
  loop_.run_for(10min);
  EXPECT_EQ(events("c1", "AvailableUnknown"), 1U) << "the same event within minutes only increments the count";
}

TEST_F(Availability, TheLeaseDurationOfTheClusterIsUsed) {
  create_cluster("c1", {{"hubAcceptsClient", true}, {"leaseDurationSeconds", 10}});
  make_available("c1");
  renew_lease("c1", clock_.wall_now());
  loop_.run_for(49s);
  EXPECT_EQ(available("c1"), "True/ManagedClusterAvailable");
  loop_.run_for(1s);
  EXPECT_EQ(available("c1"), "Unknown/ManagedClusterLeaseUpdateStopped");
}

// No check writes what is already set.
TEST_F(Availability, AClusterThatIsUnknownAlreadyIsNotWrittenAgain) {
  create_accepted("c1");
  make_available("c1");
  loop_.run_for(301s);
  const std::string version{cluster("c1").resource_version()};
  loop_.run_for(1h);
  EXPECT_EQ(cluster("c1").resource_version(), version);
}

TEST_F(Availability, ADeletedLeaseIsCreatedAgain) {
  create_accepted("c1");
  must(api_.remove(resources::leases, {"c1", "managed-cluster-lease"}));
  settle();
  EXPECT_TRUE(exists(resources::leases, {"c1", "managed-cluster-lease"}));
}

TEST_F(Availability, ADeletingClusterWithoutALeaseIsUnknownAtOnce) {
  create_accepted("c1");
  make_available("c1");
  must(kube::add_finalizer(api_, ocm::managed_clusters, {"", "c1"}, "example.com/hold"));
  must(api_.remove(ocm::managed_clusters, {"", "c1"}));
  must(api_.remove(resources::leases, {"c1", "managed-cluster-lease"}));
  loop_.run_for(5s);
  EXPECT_FALSE(exists(resources::leases, {"c1", "managed-cluster-lease"}));
  EXPECT_EQ(available("c1"), "Unknown/ManagedClusterLeaseUpdateStopped");
}

// Its namespace is being deleted, and rejects new objects.
TEST_F(Availability, NoEventsAreRecordedForAClusterThatIsBeingDeleted) {
  create_accepted("c1");
  make_available("c1");
  must(kube::add_finalizer(api_, ocm::managed_clusters, {"", "c1"}, "example.com/hold"));
  must(api_.remove(ocm::managed_clusters, {"", "c1"}));
  loop_.run_for(10min);
  EXPECT_EQ(available("c1"), "Unknown/ManagedClusterLeaseUpdateStopped");
  for (const auto& request : server_.requests())
    if (request.resource.starts_with("events")) EXPECT_THAT(request.outcome, testing::StartsWith("ok"));
}

TEST_F(Availability, ALeaseWithAnInvalidRenewTimeHasExpired) {
  create_accepted("c1");
  make_available("c1");
  json::object patch{{"spec", json::object{{"renewTime", nullptr}}}};
  must(api_.merge_patch(resources::leases, {"c1", "managed-cluster-lease"}, std::move(patch)));
  settle();
  EXPECT_EQ(available("c1"), "Unknown/ManagedClusterLeaseUpdateStopped");
}

TEST_F(Availability, AClockOutOfSyncIsDetectedAtTheNextHeartbeat) {
  create_accepted("c1");
  EXPECT_EQ(condition("c1", ocm::names::clock_synced), "True/ManagedClusterClockSynced");
  renew_lease("c1", clock_.wall_now() - 299s);
  settle();
  EXPECT_EQ(condition("c1", ocm::names::clock_synced), "True/ManagedClusterClockSynced");
  renew_lease("c1", clock_.wall_now() + 302s);
  settle();
  EXPECT_EQ(condition("c1", ocm::names::clock_synced), "False/ManagedClusterClockOutOfSync");
  renew_lease("c1", clock_.wall_now());
  settle();
  EXPECT_EQ(condition("c1", ocm::names::clock_synced), "True/ManagedClusterClockSynced");
}

TEST_F(Availability, TheClockCheckCanBeSkipped) {
  create_accepted("c1");
  patch_cluster(
      "c1",
      {{"metadata",
        json::object{{"annotations",
                      json::object{{"registration.open-cluster-management.io/skip-clock-sync-check", "true"}}}}}});
  renew_lease("c1", clock_.wall_now() - 301s);
  settle();
  EXPECT_EQ(condition("c1", ocm::names::clock_synced), "True/ManagedClusterClockSynced");
}

// The lease of a stopped agent expires, but its clock may be in sync.
TEST_F(Availability, AnOldLeaseIsNotUsedForTheClockCheck) {
  create_accepted("c1");
  loop_.run_for(1h);
  EXPECT_EQ(condition("c1", ocm::names::clock_synced), "True/ManagedClusterClockSynced");
}

TEST_F(Availability, TaintsFollowTheCondition) {
  create_cluster("c1", {{"hubAcceptsClient", true},
                        {"taints", json::array{json::object{{"key", "mine"}, {"effect", "NoSelect"}}}}});
  EXPECT_THAT(taints("c1"), ElementsAre("mine", "cluster.open-cluster-management.io/unreachable"));
  make_available("c1");
  EXPECT_THAT(taints("c1"), ElementsAre("mine"));
  set_condition("c1", ocm::names::available, kube::ConditionStatus::no, "ManagedClusterKubeAPIServerUnavailable");
  EXPECT_THAT(taints("c1"), ElementsAre("mine", "cluster.open-cluster-management.io/unavailable"));
  set_condition("c1", ocm::names::available, kube::ConditionStatus::unknown, "any");
  EXPECT_THAT(taints("c1"), ElementsAre("mine", "cluster.open-cluster-management.io/unreachable"));
}

TEST_F(Availability, OneVirtualHourOfAHundredAgentsHeartbeats) {
  for (int i = 0; i < 100; ++i) {
    const auto name = "c" + std::to_string(i);
    must(api_.create(ocm::managed_clusters,
                     {{"metadata", json::object{{"name", name}}}, {"spec", json::object{{"hubAcceptsClient", true}}}}));
  }
  settle();
  for (int i = 0; i < 100; ++i) make_available("c" + std::to_string(i));
  const auto beat = [&](std::string name) -> Awaitable<> {
    while (true) {
      json::object patch{{"spec", json::object{{"renewTime", async::format_micro_time(clock_.wall_now())}}}};
      const Key key{name, ocm::names::cluster_lease};
      auto renewed = co_await api_.merge_patch(resources::leases, key, patch);
      CO_ASSERT_TRUE(renewed);
      co_await clock_.sleep_for(60s);
    }
  };
  async::TaskScope agents{loop_.executor()};
  for (int i = 0; i < 100; ++i) agents.spawn(beat("c" + std::to_string(i)));
  server_.forget_requests();
  loop_.run_for(1h);
  EXPECT_GE(server_.requests().size(), 6000U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(available("c" + std::to_string(i)), "True/ManagedClusterAvailable");
  agents.stop();
  loop_.run(agents.join());
  server_.forget_requests();
}

}  // namespace
}  // namespace hubferry::sim
