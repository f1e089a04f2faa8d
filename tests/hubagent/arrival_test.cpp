#include "hub_test.hpp"

namespace hubferry::hubagent {
namespace {

using namespace ocm::names;

class ArrivalTest : public HubTest {
 protected:
  /// Plain Open Cluster Management: only some clusters have a klusterlet work.
  ArrivalTest() { loop_.run(hub2_->server.api().remove(kube::resources::cluster_roles, {{}, acm_bootstrap_role})); }

  /// Our ManagedCluster on the target, as deploy leaves it.
  Awaitable<> deploy(std::string name) {
    json::object object;
    object["apiVersion"] = ocm::managed_clusters.api_version();
    object["kind"] = "ManagedCluster";
    object["metadata"] = json::object{{"name", name}};
    object["spec"] = json::object{{"hubAcceptsClient", true}};
    Bundle bundle;
    bundle.clusters.push_back({name, {}});
    bundle.clusters[0].objects.push_back({std::move(object), false});
    auto outcome = co_await hub2_->target->deploy(migration_, std::move(bundle));
    EXPECT_TRUE(outcome && outcome->failed.empty());
  }
  /// What the cluster's agent writes when it joins.
  Awaitable<> report(std::string name, std::string is_available, async::WallTime since) {
    json::object status;
    status["conditions"] = json::array{condition(joined, "True", async::format_time(since)),
                                       condition(available, is_available, async::format_time(since))};
    json::object body;
    body["status"] = std::move(status);
    auto patched =
        co_await hub2_->server.api().merge_patch(ocm::managed_clusters, {{}, name}, std::move(body), "status");
    EXPECT_TRUE(patched);
  }
  Awaitable<> beat(std::string name) {
    json::object lease;
    lease["metadata"] = json::object{{"name", cluster_lease}, {"namespace", name}};
    lease["spec"] = json::object{{"renewTime", async::format_micro_time(clock_.wall_now())}};
    auto beaten = co_await hub2_->server.api().merge_patch(kube::resources::leases, {name, cluster_lease}, lease);
    if (!beaten) co_await put(*hub2_, kube::resources::leases, lease);
  }
  /// An agent that joins, and renews its lease from then on.
  Awaitable<> join(std::string name) {
    co_await report(name, "True", clock_.wall_now());
    co_await beat(std::move(name));
  }
  Awaitable<> renew(std::string name) {
    co_await patch(*hub2_, kube::resources::leases, {name, cluster_lease},
                   R"({"spec": {"renewTime": ")" + async::format_micro_time(clock_.wall_now()) + R"("}})");
  }
  Awaitable<> put_work(std::string name, std::string applied) {
    json::object work;
    work["metadata"] = json::object{{"name", name + "-klusterlet"}, {"namespace", name}};
    work["spec"] = json::object{};
    work["status"] =
        json::object{{"conditions", json::array{condition("Applied", applied, async::format_time(clock_.wall_now()))}}};
    co_await put(*hub2_, ocm::manifest_works, work);
  }
  /// The report of an agent on a work: applied or not, in this version.
  Awaitable<> report_work(TestHub& hub, Key key, std::string applied, int version) {
    auto reported = condition("Applied", applied, async::format_time(clock_.wall_now()));
    reported["observedGeneration"] = version;
    json::object body{{"status", json::object{{"conditions", json::array{std::move(reported)}}}}};
    co_await patch(hub, ocm::manifest_works, std::move(key), json::serialize(body), "status");
  }
  /// A cluster on hub1 with a work that its agent has applied, one that it cannot apply, and their copies on hub2.
  Awaitable<> deploy_with_works(std::string name) {
    co_await put_cluster(*hub1_, name);
    for (const char* work : {"app", "broken"}) {
      auto object = parsed(R"({"spec": {"workload": {"manifests": []}}})");
      object["metadata"] = json::object{{"name", work}, {"namespace", name}};
      co_await put(*hub1_, ocm::manifest_works, std::move(object));
    }
    co_await report_work(*hub1_, {name, "app"}, "True", 1);
    co_await report_work(*hub1_, {name, "broken"}, "False", 1);
    auto bundle = co_await collected(*hub1_, {name});
    auto outcome = co_await hub2_->target->deploy(migration_, std::move(bundle));
    EXPECT_TRUE(outcome && outcome->failed.empty());
  }
  Awaitable<> await_all(ClusterNames names) {
    const auto time = [this] { return " after " + async::format_duration(clock_.now() - begin_); };
    TargetHub::OnArrival on_arrival{[&](const std::string& name) { arrivals_.push_back(name + time()); },
                                    [&](const std::string& name) { joined_.push_back(name + time()); }};
    auto result = co_await hub2_->target->await_arrivals(migration_, names, since_, on_arrival);
    EXPECT_TRUE(result) << result.error();
  }

  const async::WallTime since_ = clock_.wall_now() - 1ms;
  const async::TimePoint begin_ = clock_.now();
  std::vector<std::string> arrivals_;
  std::vector<std::string> joined_;
};

// Between the look at the target and the denial lies the acceptance on the source, of thousands perhaps.
TEST_F(ArrivalTest, AClusterThatHasArrivedMeanwhileIsNotDenied) {
  run([&]() -> Awaitable<> {
    const auto since = clock_.wall_now();
    for (const char* name : {"arrived", "unhealthy", "silent", "absent"}) {
      co_await put_namespace(*hub2_, name);
      co_await deploy(name);
    }
    co_await join("silent");
    co_await clock_.sleep_for(1h);
    co_await join("arrived");
    co_await report("unhealthy", "False", clock_.wall_now());
    co_await beat("unhealthy");
    auto here = co_await hub2_->target->arrived(migration_, {"arrived", "unhealthy", "silent", "absent"}, since);
    CO_ASSERT_TRUE(here);
    EXPECT_THAT(here->done, ElementsAre("arrived"));
    EXPECT_THAT(reasons_of(*here), UnorderedElementsAre("unhealthy: ClusterUnhealthy", "silent: ClusterNotAvailable",
                                                        "absent: ClusterNotAvailable"));
    auto denied = co_await hub2_->target->deny(migration_, {"arrived", "unhealthy", "silent", "absent"}, since);
    CO_ASSERT_TRUE(denied);
    EXPECT_THAT(reasons_of(*denied), ElementsAre("arrived: Unknown", "unhealthy: Unknown"));
    auto accepts = [&](const char* name) {
      const auto found = hub2_->server.object(ocm::managed_clusters, {{}, name});
      return *found->find({"spec", "hubAcceptsClient"}) == true;
    };
    EXPECT_TRUE(accepts("arrived"));
    EXPECT_TRUE(accepts("unhealthy"));
    EXPECT_FALSE(accepts("silent"));
    EXPECT_FALSE(accepts("absent"));
    auto in_any_case = co_await hub2_->target->deny(migration_, {"arrived"}, std::nullopt);
    CO_ASSERT_TRUE(in_any_case);
    EXPECT_FALSE(accepts("arrived"));
  });
}

// The time in a lease is by the agent's clock: five hours ahead of ours, a lease that nobody renews any more looks
// renewed for as long.
TEST_F(ArrivalTest, ARenewalIsAChangeOfTheLeaseWhateverItsTimeSays) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"ahead", "behind", "created"}) {
      co_await put_namespace(*hub2_, name);
      co_await deploy(name);
    }
    const auto lease_of = [&](async::Duration off) {
      return R"({"spec": {"renewTime": ")" + async::format_micro_time(clock_.wall_now() + off) + R"("}})";
    };
    for (const char* name : {"ahead", "behind"}) co_await join(name);
    co_await patch(*hub2_, kube::resources::leases, {"ahead", cluster_lease}, lease_of(5h));
    co_await patch(*hub2_, kube::resources::leases, {"behind", cluster_lease}, lease_of(-5h));
    std::vector<std::string> renewed;
    auto wait = [&]() -> Awaitable<> {
      auto ended = co_await hub2_->target->await_renewals({"ahead", "behind", "created"},
                                                          [&](const std::string& name) { renewed.push_back(name); });
      EXPECT_TRUE(ended);
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(wait());
      co_await clock_.sleep_for(10min);
      // The hub creates one that is missing.
      co_await beat("created");
      co_await patch(*hub2_, kube::resources::leases, {"ahead", cluster_lease},
                     R"({"metadata": {"labels": {"a": "b"}}})");
      co_await clock_.sleep_for(10min);
      EXPECT_THAT(renewed, IsEmpty());
      for (const char* name : {"ahead", "behind"})
        co_await patch(*hub2_, kube::resources::leases, {name, cluster_lease},
                       lease_of(std::string_view{name} == "ahead" ? async::Duration{5h} : async::Duration{-5h}));
      co_await clock_.sleep_for(1s);
      EXPECT_THAT(renewed, UnorderedElementsAre("ahead", "behind"));
      co_await beat("created");
      co_await clock_.sleep_for(1s);
      EXPECT_EQ(renewed.size(), 3U);
      scope.stop();
    };
    co_await async::with_scope(both);
  });
}

TEST_F(ArrivalTest, ClustersArriveTheMomentTheyAreAvailable) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await deploy(name);
    auto agents = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(10s);
      co_await join("c2");
      co_await clock_.sleep_for(10s);
      co_await report("c1", "False", clock_.wall_now());
      co_await clock_.sleep_for(10s);
      co_await join("c1");
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(agents());
      co_await await_all({"c1", "c2", "c1"});
    };
    co_await async::with_scope(both);
    EXPECT_THAT(arrivals_, ElementsAre("c2 after 10s", "c1 after 30s"));
    auto here = co_await hub2_->target->arrived(migration_, {"c1", "c2", "c3"}, since_);
    CO_ASSERT_TRUE(here);
    EXPECT_THAT(here->done, ElementsAre("c1", "c2"));
  });
}

// Hours after its agent is gone, the lease of a cluster whose clock is fast would still prove that it is there, and the
// source would be deleted by that.
TEST_F(ArrivalTest, ALeaseThatIsAheadProvesNothingUntilItChanges) {
  run([&]() -> Awaitable<> {
    co_await put_namespace(*hub2_, "c1");
    co_await deploy("c1");
    co_await join("c1");
    const auto renew_ahead = [&] {
      return patch(*hub2_, kube::resources::leases, {"c1", cluster_lease},
                   R"({"spec": {"renewTime": ")" + async::format_micro_time(clock_.wall_now() + 5h) + R"("}})");
    };
    co_await renew_ahead();
    const auto look = [&]() -> Awaitable<std::string> {
      auto here = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
      auto confirmed = co_await hub2_->target->confirm(migration_, "c1", since_);
      if (!here) co_return "no answer";
      EXPECT_EQ(confirmed.has_value(), !here->done.empty());
      co_return here->done.empty() ? reasons_of(*here).front() : "arrived";
    };
    EXPECT_EQ(co_await look(), "c1: Unknown");
    co_await clock_.sleep_for(1min);
    EXPECT_EQ(co_await look(), "c1: Unknown");
    auto denied = co_await hub2_->target->deny(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(denied);
    EXPECT_THAT(reasons_of(*denied), ElementsAre("c1: Unknown"));
    co_await renew_ahead();
    EXPECT_EQ(co_await look(), "arrived");
    // Not since the last cut-over.
    auto later = co_await hub2_->target->arrived(migration_, {"c1"}, clock_.wall_now() + 1s);
    CO_ASSERT_TRUE(later);
    EXPECT_THAT(reasons_of(*later), ElementsAre("c1: Unknown"));
    co_await clock_.sleep_for(4min);
    EXPECT_EQ(co_await look(), "arrived");
    co_await clock_.sleep_for(2min);
    EXPECT_EQ(co_await look(), "c1: ClusterNotAvailable") << "nobody renews it";
    // Hours later the clock reaches that time, and it looks as if it had just been renewed.
    co_await clock_.sleep_for(5h - 6min + 30s);
    EXPECT_EQ(co_await look(), "c1: ClusterNotAvailable") << "nobody has renewed it since";
    // Two looks that are hours apart do not say when it was renewed between them.
    co_await renew_ahead();
    co_await clock_.sleep_for(3h);
    EXPECT_EQ(co_await look(), "c1: Unknown");
    co_await renew_ahead();
    EXPECT_EQ(co_await look(), "arrived");
  });
}

TEST_F(ArrivalTest, AnAgentWhoseClockIsAheadArrivesWithItsNextHeartbeat) {
  run([&]() -> Awaitable<> {
    co_await deploy("c1");
    co_await beat("c1");  // the hub, which creates it
    const auto since = clock_.wall_now();
    auto live = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(10s);
      co_await report("c1", "True", since);
      for (;; co_await clock_.sleep_for(1min))
        co_await patch(*hub2_, kube::resources::leases, {"c1", cluster_lease},
                       R"({"spec": {"renewTime": ")" + async::format_micro_time(clock_.wall_now() + 5h) + R"("}})");
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(live());
      TargetHub::OnArrival on_arrival{[&](const std::string& name) { arrivals_.push_back(name); }};
      auto arrived = co_await hub2_->target->await_arrivals(migration_, {"c1"}, since, on_arrival);
      EXPECT_TRUE(arrived) << arrived.error();
      EXPECT_EQ(clock_.now() - begin_, 70s);
      scope.stop();
    };
    co_await async::with_scope(both);
  });
  EXPECT_THAT(arrivals_, ElementsAre("c1"));
}

// A cluster of that name that we did not create has not arrived, even if it is Available.
TEST_F(ArrivalTest, OnlyTheClusterThatWeCreatedCounts) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub2_, "c1");
    co_await join("c1");
    auto here = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(here);
    EXPECT_THAT(here->done, IsEmpty());
  });
}

TEST_F(ArrivalTest, ASignOfLifeAfterTheCutOverIsRequired) {
  run([&]() -> Awaitable<> {
    co_await deploy("c1");
    co_await report("c1", "True", since_ - 1h);
    auto stale = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(stale);
    EXPECT_THAT(stale->done, IsEmpty());
    auto wake = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(10s);
      co_await beat("c1");
      // The hub updates the cluster on a renewed lease, as it does when the condition was Unknown.
      co_await patch(*hub2_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata": {"annotations": {"a": "b"}}})");
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(wake());
      co_await await_all({"c1"});
    };
    co_await async::with_scope(both);
    EXPECT_THAT(arrivals_, ElementsAre("c1 after 10s"));
    auto here = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(here);
    EXPECT_THAT(here->done, ElementsAre("c1"));
  });
}

// ACM creates the work after the cluster has joined: no work means not ready yet.
TEST_F(ArrivalTest, OnAHubWithAcmTheKlusterletWorkMustBeApplied) {
  run([&]() -> Awaitable<> {
    json::object role{{"metadata", json::object{{"name", acm_bootstrap_role}}}};
    co_await put(*hub2_, kube::resources::cluster_roles, role);
    co_await deploy("c1");
    co_await join("c1");
    auto not_yet = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(not_yet);
    EXPECT_THAT(not_yet->done, IsEmpty());
    auto import = [&]() -> Awaitable<> {
      co_await beat("c1");
      co_await clock_.sleep_for(100s);
      co_await put_work("c1", "True");
      co_await clock_.sleep_for(5s);
      co_await renew("c1");
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(import());
      co_await await_all({"c1"});
    };
    co_await async::with_scope(both);
    EXPECT_THAT(joined_, ElementsAre("c1 after 0s")) << "it has a hub, whatever is still to be proven";
    EXPECT_THAT(arrivals_, ElementsAre("c1 after 1m45s")) << "with a sign of life of the agent that has applied it";
  });
}

// MCE 5.x: while auto import is disabled, the works are ReadOnly. The agent reports them as applied and has applied
// nothing: its bootstrap kubeconfigs are those of the migration, and end with it.
TEST_F(ArrivalTest, AReadOnlyKlusterletWorkProvesNothing) {
  run([&]() -> Awaitable<> {
    co_await deploy("c1");
    co_await put_work("c1", "True");
    co_await patch(*hub2_, ocm::manifest_works, {"c1", "c1-klusterlet"},
                   R"({"spec": {"manifestConfigs": [{"updateStrategy": {"type": "ReadOnly"}}]}})");
    co_await join("c1");
    co_await beat("c1");
    auto not_yet = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(not_yet);
    EXPECT_THAT(not_yet->done, IsEmpty());
    auto import = [&]() -> Awaitable<> {
      auto enabled = [](const ocm::ManagedCluster* seen) {
        return seen != nullptr && !seen->annotation(disable_auto_import_annotation);
      };
      co_await hub2_->hub->clusters().wait_for({{}, "c1"}, enabled, async::never);
      co_await clock_.sleep_for(10s);
      co_await patch(*hub2_, ocm::manifest_works, {"c1", "c1-klusterlet"}, R"({"spec": {"manifestConfigs": []}})");
      co_await clock_.sleep_for(10s);
      co_await renew("c1");
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(import());
      co_await await_all({"c1"});
    };
    co_await async::with_scope(both);
    EXPECT_THAT(arrivals_, ElementsAre("c1 after 20s"));
  });
}

// A copy that was lost after the hand-over is made again, and nobody waits for its arrival: it is only looked at.
TEST_F(ArrivalTest, ALookAtAClusterWhoseCopyWasMadeAgainEnablesItsImport) {
  run([&]() -> Awaitable<> {
    co_await deploy("c1");
    co_await put_work("c1", "True");
    co_await patch(*hub2_, ocm::manifest_works, {"c1", "c1-klusterlet"},
                   R"({"spec": {"manifestConfigs": [{"updateStrategy": {"type": "ReadOnly"}}]}})");
    auto absent = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(absent);
    EXPECT_THAT(absent->done, IsEmpty());
    auto cluster = co_await hub2_->server.api().get(ocm::managed_clusters, {{}, "c1"});
    EXPECT_FALSE(cluster->annotation(disable_auto_import_annotation).empty()) << "its agent has yet to come";
    co_await join("c1");
    co_await beat("c1");
    auto not_yet = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(not_yet);
    EXPECT_THAT(not_yet->done, IsEmpty());
    cluster = co_await hub2_->server.api().get(ocm::managed_clusters, {{}, "c1"});
    EXPECT_EQ(cluster->annotation(disable_auto_import_annotation), "");
  });
}

// Applied, but an older version.
TEST_F(ArrivalTest, AKlusterletWorkThatHasChangedSinceProvesNothing) {
  run([&]() -> Awaitable<> {
    co_await deploy("c1");
    co_await put_work("c1", "True");
    co_await patch(*hub2_, ocm::manifest_works, {"c1", "c1-klusterlet"},
                   R"({"status": {"conditions": [{"type": "Applied", "status": "True", "reason": "Test", "message": "",
                       "lastTransitionTime": "2029-12-01T00:00:00Z", "observedGeneration": 1}]}})",
                   "status");
    co_await join("c1");
    auto here = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(here);
    EXPECT_THAT(here->done, ElementsAre("c1"));
    co_await patch(*hub2_, ocm::manifest_works, {"c1", "c1-klusterlet"},
                   R"({"spec": {"workload": {"manifests": []}}})");
    auto not_yet = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(not_yet);
    EXPECT_THAT(not_yet->done, IsEmpty());
  });
}

TEST_F(ArrivalTest, AnExistingKlusterletWorkMustBeApplied) {
  run([&]() -> Awaitable<> {
    co_await deploy("c1");
    co_await put_work("c1", "False");
    co_await join("c1");
    auto not_yet = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(not_yet);
    EXPECT_THAT(not_yet->done, IsEmpty());
    auto apply = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(100s);
      json::object body;
      body["status"] = json::object{
          {"conditions", json::array{condition("Applied", "True", async::format_time(clock_.wall_now()))}}};
      co_await hub2_->server.api().merge_patch(ocm::manifest_works, {"c1", "c1-klusterlet"}, std::move(body), "status");
      co_await beat("c1");
      co_await clock_.sleep_for(5s);
      co_await renew("c1");
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(apply());
      co_await await_all({"c1"});
    };
    co_await async::with_scope(both);
    EXPECT_THAT(arrivals_, ElementsAre("c1 after 1m45s"));
  });
}

// What it applied has restarted it before it could report that: it came back, and reports later. Its next heartbeat is
// due a minute after that.
TEST_F(ArrivalTest, AnAgentThatCameBackBeforeItReportedTheWorkIsNotAwaitedForAnotherPeriod) {
  run([&]() -> Awaitable<> {
    co_await deploy("c1");
    co_await put_work("c1", "False");
    co_await join("c1");
    auto apply = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(20s);
      co_await renew("c1");
      co_await clock_.sleep_for(3s);
      co_await report_work(*hub2_, {"c1", "c1-klusterlet"}, "True", 1);
      co_await clock_.sleep_for(57s);
      co_await renew("c1");
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(apply());
      co_await await_all({"c1"});
    };
    co_await async::with_scope(both);
    EXPECT_THAT(arrivals_, ElementsAre("c1 after 23s"));
  });
}

// The process that will be restarted by what it applies has sent this one.
TEST_F(ArrivalTest, AHeartbeatOfARunningAgentProvesNoRestart) {
  run([&]() -> Awaitable<> {
    co_await deploy("c1");
    co_await put_work("c1", "False");
    co_await join("c1");
    auto apply = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(61s);
      co_await renew("c1");
      co_await clock_.sleep_for(3s);
      co_await report_work(*hub2_, {"c1", "c1-klusterlet"}, "True", 1);
      co_await clock_.sleep_for(6s);
      co_await renew("c1");
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(apply());
      co_await await_all({"c1"});
    };
    co_await async::with_scope(both);
    EXPECT_THAT(arrivals_, ElementsAre("c1 after 1m10s"));
  });
}

// The work agent may still serve the source, and would delete the workloads with the source's works.
TEST_F(ArrivalTest, AClusterArrivesWhenItsAgentHasAppliedTheWorksThatItHadAppliedOnTheSource) {
  run([&]() -> Awaitable<> {
    co_await deploy_with_works("c1");
    co_await join("c1");
    auto not_yet = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(not_yet);
    EXPECT_THAT(reasons_of(*not_yet), ElementsAre("c1: WorksNotApplied"));
    auto not_proven = co_await hub2_->target->confirm(migration_, "c1", since_);
    CO_ASSERT_TRUE(!not_proven);
    EXPECT_THAT(not_proven.error().describe(), HasSubstr("has not applied ManifestWork c1/app"));
    auto apply = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(100s);
      co_await report_work(*hub2_, {"c1", "app"}, "True", 1);
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(apply());
      co_await await_all({"c1"});
    };
    co_await async::with_scope(both);
    EXPECT_THAT(arrivals_, ElementsAre("c1 after 1m40s"));
    auto here = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    CO_ASSERT_TRUE(here);
    EXPECT_THAT(here->done, ElementsAre("c1")) << "the broken work does not keep it from arriving";
    auto proven = co_await hub2_->target->confirm(migration_, "c1", since_);
    EXPECT_TRUE(proven) << proven.error();
    // Copied again, since it was changed on the source: what is applied is the older version.
    co_await patch(*hub2_, ocm::manifest_works, {"c1", "app"}, R"({"spec": {"workload": {"manifests": [{}]}}})");
    auto outdated = co_await hub2_->target->confirm(migration_, "c1", since_);
    EXPECT_FALSE(outdated);
  });
}

// What it has seen first is old by then.
TEST_F(ArrivalTest, ATargetThatLosesTheClusterWhileItIsSlowDoesNotConfirmIt) {
  run([&]() -> Awaitable<> {
    co_await deploy_with_works("c1");
    co_await join("c1");
    co_await report_work(*hub2_, {"c1", "app"}, "True", 1);
    // Both lists: of the whole hub, and of the namespace.
    hub2_->server.faults().on({"list", "manifestworks"}).times(2).fail(429, 30);
    auto lose = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(10s);
      co_await patch(*hub2_, ocm::managed_clusters, {{}, "c1"}, R"({"spec": {"hubAcceptsClient": false}})");
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(lose());
      auto proven = co_await hub2_->target->confirm(migration_, "c1", since_);
      CO_ASSERT_TRUE(!proven);
      EXPECT_THAT(proven.error().describe(), HasSubstr("is not accepted"));
    };
    co_await async::with_scope(both);
  });
}

// A work that the agent applies on the source only after it was collected must be waited for too.
TEST_F(ArrivalTest, WhatTheAgentAppliedOnTheSourceIsComparedToo) {
  run([&]() -> Awaitable<> {
    co_await deploy_with_works("c1");
    co_await join("c1");
    co_await report_work(*hub2_, {"c1", "app"}, "True", 1);
    co_await report_work(*hub1_, {"c1", "broken"}, "True", 1);
    auto bundle = co_await collected(*hub1_, {"c1"});
    auto differs = co_await hub2_->target->verify(migration_, bundle);
    CO_ASSERT_TRUE(differs);
    EXPECT_THAT(reasons_of(*differs), ElementsAre("c1: ResourceDiffers"));
    co_await hub2_->target->deploy(migration_, bundle);
    auto same = co_await hub2_->target->verify(migration_, bundle);
    EXPECT_TRUE(same && same->failed.empty());
    auto not_proven = co_await hub2_->target->confirm(migration_, "c1", since_);
    CO_ASSERT_TRUE(!not_proven);
    EXPECT_THAT(not_proven.error().describe(), HasSubstr("ManifestWork c1/broken"));
  });
}

// More clusters than slots on the hub, and each needs a read of its lease.
TEST_F(ArrivalTest, ManyClustersDoNotWaitForEachOther) {
  run([&]() -> Awaitable<> {
    ClusterNames names;
    for (int i = 100; i < 250; ++i) {
      names.push_back("c" + std::to_string(i));
      co_await deploy(names.back());
      co_await report(names.back(), "True", since_ - 1h);
      co_await beat(names.back());
    }
    auto here = co_await hub2_->target->arrived(migration_, names, since_);
    CO_ASSERT_TRUE(here);
    EXPECT_EQ(here->done, names);
    co_await await_all(names);
    EXPECT_EQ(arrivals_.size(), 150U);
  });
}

TEST_F(ArrivalTest, WaitingCanBeCancelledAndCostsNoRequests) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await deploy(name);
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(await_all({"c1", "c2"}));
      co_await clock_.sleep_for(1min);
      const auto requests = hub2_->server.requests().size();
      co_await clock_.sleep_for(3min);
      EXPECT_EQ(hub2_->server.requests().size(), requests);
      scope.stop();
    };
    co_await async::with_scope(both);
    EXPECT_THAT(arrivals_, IsEmpty());
  });
}

// Of thousands of clusters in a hundred migrations, each would have all leases of its target otherwise.
TEST_F(ArrivalTest, MigrationsShareOneWatchOfTheHubsLeases) {
  run([&]() -> Awaitable<> {
    ClusterNames first;
    ClusterNames second;
    for (int index = 0; index < 20; ++index) {
      auto& names = index < 10 ? first : second;
      names.push_back("c" + std::to_string(index));
      co_await deploy(names.back());
    }
    hub2_->server.forget_requests();
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(await_all(first));
      scope.spawn(await_all(second));
      co_await clock_.sleep_for(10s);
      for (const char* name : {"c0", "c19"}) co_await join(name);
      co_await clock_.sleep_for(1s);
      scope.stop();
    };
    co_await async::with_scope(both);
    EXPECT_THAT(arrivals_, UnorderedElementsAre("c0 after 10s", "c19 after 10s"));
  });
  const auto watches = std::ranges::count_if(hub2_->server.requests(), [](const auto& request) {
    return request.verb == "watch" && request.resource.starts_with("leases");
  });
  EXPECT_EQ(watches, 1);
}

TEST_F(ArrivalTest, AnUnreachableHubIsAnError) {
  run([&]() -> Awaitable<> {
    co_await deploy("c1");
    hub2_->server.outage(true);
    TargetHub::OnArrival ignore{[](const std::string&) {}};
    auto waited = co_await hub2_->target->await_arrivals(migration_, {"c1"}, since_, ignore);
    CO_ASSERT_TRUE(!waited);
    EXPECT_TRUE(waited.error().is(ErrorKind::unreachable)) << waited.error();
    auto here = co_await hub2_->target->arrived(migration_, {"c1"}, since_);
    EXPECT_FALSE(here);
  });
}

}  // namespace
}  // namespace hubferry::hubagent
