#include "hubagent/hub_watch.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include "hub_test.hpp"
#include "hubagent/annotations.hpp"
#include "hubagent/arrival.hpp"
#include "hubagent/hub_watches.hpp"
#include "hubagent/seen_clusters.hpp"

/// What clusters share so that they need not read for themselves, and when they read all the same.
namespace hubferry::hubagent {
namespace {

class HubWatchTest : public HubTest {
 protected:
  using Namespaces = HubWatch<SeenNamespace>;
  using Works = HubWatch<KlusterletWork>;

  Namespaces& namespaces() { return hub1_->hub->watches().namespaces; }
  Works& works() { return hub1_->hub->watches().klusterlet_works; }

  std::ptrdiff_t requests(const std::string& verb, const std::string& resource) {
    return std::ranges::count_if(hub1_->server.requests(), [&](const auto& request) {
      return request.verb == verb && request.resource.starts_with(resource);
    });
  }
  Awaitable<> put_work(std::string labels) {
    co_await put_namespace(*hub1_, "c1");
    auto work = parsed(R"({"metadata":{"name":"c1-klusterlet","namespace":"c1","labels":)" + labels +
                       R"(},"spec":{"workload":{"manifests":[{"kind":"Secret","metadata":{"name":"one"}}]}}})");
    co_await put(*hub1_, ocm::manifest_works, std::move(work));
  }
  Awaitable<> report_applied() {
    co_await patch(*hub1_, ocm::manifest_works, {"c1", "c1-klusterlet"},
                   R"({"status":{"conditions":[{"type":"Applied","status":"True","reason":"Test","message":"",
                       "lastTransitionTime":"2029-12-01T00:00:00Z","observedGeneration":1}]}})",
                   "status");
  }
  /// Waits for the agent to apply the work, which it does after a second.
  Awaitable<async::Duration> wait_until_applied() {
    const auto begin = clock_.now();
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      auto apply_later = [&]() -> Awaitable<> {
        co_await clock_.sleep_for(1s);
        co_await report_applied();
      };
      scope.spawn(apply_later());
      auto is_applied = [](const KlusterletWork* work) { return work != nullptr && work->is_applied(); };
      auto waited = co_await wait_for_klusterlet_work(*hub1_->hub, migration_, "c1", is_applied);
      EXPECT_TRUE(waited);
    };
    co_await async::with_scope(both);
    co_return clock_.now() - begin;
  }

  static constexpr const char* of_import_controller =
      R"({"import.open-cluster-management.io/klusterlet-works":"true"})";
};

TEST_F(HubWatchTest, OneWatchServesAllAndEndsWhenNobodyNeedsItAnyMore) {
  run([&]() -> Awaitable<> {
    co_await put_namespace(*hub1_, "c1");
    {
      Namespaces::Use first{namespaces(), 10};
      Namespaces::Use second{namespaces(), 10};
      co_await first.ready();
      co_await second.ready();
      const auto seen = namespaces().current();
      EXPECT_TRUE(seen && seen->get({{}, "c1"}) && seen->get({{}, "c1"})->deletion_time.empty());
      EXPECT_TRUE(seen && !seen->get({{}, "c2"}));
    }
    co_await clock_.sleep_for(29s);
    EXPECT_NE(namespaces().current(), nullptr) << "the next operation follows soon";
    co_await clock_.sleep_for(2s);
    EXPECT_EQ(namespaces().current(), nullptr) << "what it knows would be outdated";
  });
  EXPECT_LE(requests("list", "namespaces"), 1) << "none, where a watch brings the list along";
  EXPECT_EQ(requests("watch", "namespaces"), 1);
}

TEST_F(HubWatchTest, FewClustersOfALargeHubReadForThemselves) {
  run([&]() -> Awaitable<> {
    for (int i = 0; i < 41; ++i) co_await put(*hub1_, ocm::managed_clusters, managed_cluster("c" + std::to_string(i)));
    co_await clock_.sleep_for(1s);
    Works::Use few{works(), 10};
    const auto begin = clock_.now();
    co_await few.ready();
    EXPECT_EQ(clock_.now(), begin) << "nothing to wait for";
    EXPECT_EQ(works().current(), nullptr);
    Works::Use more{works(), 1};
    co_await more.ready();
    EXPECT_NE(works().current(), nullptr);
  });
}

TEST_F(HubWatchTest, AnAccountThatMayNotWatchTheWholeHubDoesWithoutAndWaitsForNothing) {
  hub1_->server.faults().on({"create", "selfsubjectaccessreviews"}).always().fail(500);
  run([&]() -> Awaitable<> {
    Namespaces::Use use{namespaces(), 20};
    const auto begin = clock_.now();
    co_await use.ready();
    EXPECT_EQ(clock_.now(), begin);
    EXPECT_EQ(namespaces().current(), nullptr);
  });
  EXPECT_EQ(requests("list", "namespaces"), 0);
}

// As manifests/hub-rbac grants it: all other leases of the hub are nobody's business.
TEST_F(HubWatchTest, AnAccountThatMayWatchTheLeasesOfThatNameAloneSharesTheirWatch) {
  const sim::User account{"system:serviceaccount:hubferry-system:hubferry-hub", {"system:serviceaccounts"}, ""};
  run([&]() -> Awaitable<> {
    auto role = parsed(R"({"metadata":{"name":"leases"},
        "rules":[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],
                  "resourceNames":["managed-cluster-lease"],"verbs":["get","list","watch"]}]})");
    auto binding = parsed(R"({"metadata":{"name":"hubferry"},
        "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"leases"},
        "subjects":[{"kind":"ServiceAccount","name":"hubferry-hub","namespace":"hubferry-system"}]})");
    co_await put(*hub1_, kube::resources::cluster_roles, std::move(role));
    co_await put(*hub1_, kube::resources::cluster_role_bindings, std::move(binding));
    const auto restricted = hub1_->server.api_as(account);
    HubWideRights rights{*restricted, env_.clock};
    HubWatches watches{*restricted, rights, [] { return 20; }, env_};
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(watches.leases.run());
      HubWatch<Object>::Use use{watches.leases, 10};
      co_await use.ready();
      EXPECT_NE(watches.leases.current(), nullptr);
      scope.stop();
    };
    co_await async::with_scope(body);
  });
  for (const auto& request : hub1_->server.requests()) EXPECT_FALSE(request.outcome.starts_with("403"));
}

TEST_F(HubWatchTest, AWatchThatEndsIsGivenToNobodyAnyMore) {
  run([&]() -> Awaitable<> {
    for (int turns = 0; turns < 20; ++turns) {
      std::optional<Namespaces::Use> use{std::in_place, namespaces(), 10};
      co_await use->ready();
      use.reset();
      co_await clock_.sleep_for(30s);
      for (int turn = 0; turn < turns; ++turn) co_await async::asio::post(async::asio::deferred);
      const Namespaces::Use late{namespaces(), 10};
      const auto held = namespaces().current();
      const std::string name = "late-" + std::to_string(turns);
      co_await put_namespace(*hub1_, name);
      co_await clock_.sleep_for(1s);
      if (held != nullptr) EXPECT_NE(held->get({{}, name}), nullptr) << "after " << turns << " turns";
    }
  });
}

TEST_F(HubWatchTest, AWorkIsFollowedByTheSharedWatchWithoutAnyRead) {
  run([&]() -> Awaitable<> {
    co_await put_work(of_import_controller);
    Works::Use use{works(), 10};
    co_await use.ready();
    EXPECT_EQ(co_await wait_until_applied(), 1s);
  });
  EXPECT_EQ(requests("get", "manifestworks"), 0);
  EXPECT_EQ(requests("watch", "manifestworks"), 1);
}

// Nothing tells a watch that has stalled from a hub on which nothing happens.
TEST_F(HubWatchTest, AWorkIsReadIfTheSharedWatchHasStalled) {
  hub1_->server.faults().on({"watch", "manifestworks"}).always().drop_event();
  run([&]() -> Awaitable<> {
    co_await put_work(of_import_controller);
    Works::Use use{works(), 10};
    co_await use.ready();
    EXPECT_EQ(co_await wait_until_applied(), 5s);
  });
}

// Of other import controllers, and of older ones.
TEST_F(HubWatchTest, AWorkWithoutTheLabelIsFollowedByItself) {
  run([&]() -> Awaitable<> {
    co_await put_work("{}");
    Works::Use use{works(), 10};
    co_await use.ready();
    EXPECT_EQ(co_await wait_until_applied(), 1s);
  });
}

TEST_F(HubWatchTest, AClusterIsNotReadFromItsClaimToItsDetachment) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    EXPECT_TRUE(begun && begun->failed.empty());
    EXPECT_EQ(requests("get", "managedclusters"), 0);
    const auto bundle = co_await collected(*hub1_, {"c1"});
    EXPECT_EQ(bundle.clusters.size(), 1U);
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    EXPECT_TRUE(detached && detached->failed.empty());
    EXPECT_EQ(requests("get", "managedclusters"), 0);
    // The comparison in Cleaning: read from the server.
    const auto compared = co_await collected(*hub1_, {"c1"});
    EXPECT_EQ(requests("get", "managedclusters"), 1);
    const auto once_more = co_await collected(*hub1_, {"c1"});
    EXPECT_EQ(requests("get", "managedclusters"), 2);
  });
}

// Three requests instead of one, on a hub that asks for none.
TEST_F(HubWatchTest, AHubThatAsksForTimeGetsNoSecondRequestForADetachmentBeforeIt) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    EXPECT_TRUE(begun && begun->failed.empty());
    hub1_->server.faults().on({"write", "managedclusters"}).fail(503, 20);
    hub1_->server.forget_requests();
    const auto begin = clock_.now();
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    EXPECT_TRUE(detached && detached->failed.empty());
    EXPECT_GE(clock_.now() - begin, 20s);
  });
  EXPECT_EQ(requests("patch", "managedclusters"), 1);
  EXPECT_EQ(requests("get", "managedclusters"), 1);
}

TEST_F(HubWatchTest, APatchThatLeavesNoAnnotationThatWasSeenKeepsTheOthers) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata":{"annotations":{"hubferry.io/returning":"lease","example.com/owner":"me"}}})");
    co_await clock_.sleep_for(1s);
    auto forget = [](json::object& object) { return drop_annotation(object, annotations::returning); };
    const auto patched = co_await patch_as_seen(*hub1_->hub, "c1", forget);
    CO_ASSERT_TRUE(patched && *patched);
  });
  const auto left = cluster(*hub1_, "c1");
  EXPECT_EQ(left.annotation(annotations::returning), "");
  EXPECT_EQ(left.annotation("example.com/owner"), "me");
}

TEST_F(HubWatchTest, AClusterThatWasChangedAfterItsClaimIsCopiedAsItIs) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    EXPECT_TRUE(begun && begun->failed.empty());
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata":{"labels":{"vendor":"changed"}}})");
    co_await clock_.sleep_for(1s);
    const auto bundle = co_await collected(*hub1_, {"c1"});
    const auto& objects = bundle.clusters.at(0).objects;
    EXPECT_EQ(objects.at(0).object.at("metadata").at("labels").at("vendor"), "changed");
  });
}

// The watch has not shown it yet: the write is conditional.
TEST_F(HubWatchTest, AClusterThatWasChangedUnseenIsReadBeforeItIsDetached) {
  hub1_->server.faults().on({"watch", "managedclusters"}).after(3).always().drop_event();
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    EXPECT_TRUE(begun && begun->failed.empty());
    co_await clock_.sleep_for(1s);
    co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"},
                   R"({"metadata":{"annotations":{"global-hub.open-cluster-management.io/migrating":"another"}}})");
    auto detached = co_await hub1_->source->detach(migration_, {"c1"});
    EXPECT_TRUE(detached);
    if (detached) EXPECT_THAT(reasons_of(*detached), ElementsAre("c1: ClusterConflict"));
  });
  EXPECT_EQ(object(*hub1_, ocm::managed_clusters, {{}, "c1"}).json().at("spec").at("hubAcceptsClient"), true);
}

}  // namespace
}  // namespace hubferry::hubagent
