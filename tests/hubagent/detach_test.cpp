#include "hub_test.hpp"

/// When a cluster is detached: once its agent has the target's bootstrap kubeconfig.
namespace hubferry::hubagent {
namespace {

class DetachTest : public HubTest {
 protected:
  /// The klusterlet's work as the import controller writes it, with another token of its own each time.
  Awaitable<> write_work(bool with_secret, std::string strategy = {}) {
    json::object work{{"metadata", json::object{{"name", "c1-klusterlet"}, {"namespace", "c1"}}}};
    json::array manifests;
    if (with_secret)
      manifests.push_back(
          json::object{{"kind", "Secret"}, {"metadata", json::object{{"name", migration_.bootstrap_secret()}}}});
    manifests.push_back(json::object{{"kind", "Secret"},
                                     {"metadata", json::object{{"name", "bootstrap-hub-kubeconfig-current-hub"}}},
                                     {"data", json::object{{"token", ++tokens_}}}});
    json::array configs;
    if (!strategy.empty()) configs.push_back(json::object{{"updateStrategy", json::object{{"type", strategy}}}});
    work["spec"] = json::object{{"workload", json::object{{"manifests", std::move(manifests)}}},
                                {"manifestConfigs", std::move(configs)}};
    if (exists(*hub1_, ocm::manifest_works, work_))
      co_await patch(*hub1_, ocm::manifest_works, work_, json::serialize(work));
    else
      co_await put(*hub1_, ocm::manifest_works, std::move(work));
  }
  Awaitable<> report_applied(std::int64_t version) {
    auto applied = condition("Applied", "True", "2029-12-01T00:00:00Z");
    applied["observedGeneration"] = version;
    json::object body{{"status", json::object{{"conditions", json::array{std::move(applied)}}}}};
    co_await patch(*hub1_, ocm::manifest_works, work_, json::serialize(body), "status");
  }
  std::string config() {
    return std::string{
        object(*hub1_, ocm::managed_clusters, {{}, "c1"}).annotation(ocm::names::klusterlet_config_annotation)};
  }
  std::int64_t version() { return object(*hub1_, ocm::manifest_works, work_).generation(); }

  /// Detaches c1 beside an import controller and an agent.
  Awaitable<> detach_beside(Awaitable<> others) {
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(std::move(others));
      auto detached = co_await hub1_->source->detach(migration_, {"c1"});
      EXPECT_TRUE(detached && detached->failed.empty());
      detached_after_ = clock_.now() - begin_;
      scope.stop();
    };
    co_await async::with_scope(both);
  }
  Awaitable<> claim() {
    co_await put_cluster(*hub1_, "c1");
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    EXPECT_TRUE(begun && begun->failed.empty());
    begin_ = clock_.now();
  }

  const Key work_{"c1", "c1-klusterlet"};
  int tokens_ = 0;
  async::TimePoint begin_;
  async::Duration detached_after_{};
};

// With several hubs in force the import controller writes the work once or twice a second, for ever.
TEST_F(DetachTest, AnAgentThatIsAlwaysAVersionBehindIsDetachedOnceItHasAppliedOneWithTheSecret) {
  run([&]() -> Awaitable<> {
    co_await claim();
    co_await write_work(false);
    auto restless = [&]() -> Awaitable<> {
      for (int second = 1;; ++second) {
        co_await clock_.sleep_for(1s);
        const auto before = version();
        co_await write_work(second >= 3);
        co_await report_applied(before);
      }
    };
    co_await detach_beside(restless());
  });
  EXPECT_EQ(detached_after_, 4s) << "the Secret is in the work from the third second on, and applied a second later";
}

// Each new version comes before the agent has reported the one before: the hub refuses its report.
TEST_F(DetachTest, AnImportControllerThatNeverRestsIsLetRestSoThatTheAgentsReportArrives) {
  run([&]() -> Awaitable<> {
    co_await claim();
    co_await write_work(false);
    auto restless = [&]() -> Awaitable<> {
      while (true) {
        if (config() == "migration-move") co_await write_work(true);
        co_await clock_.sleep_for(500ms);
      }
    };
    auto slow = [&]() -> Awaitable<> {
      while (true) {
        const auto before = version();
        co_await clock_.sleep_for(1s);
        if (version() == before) co_await report_applied(before);
      }
    };
    auto both = [&]() -> Awaitable<> {
      auto body = [&](async::TaskScope& scope) -> Awaitable<> {
        scope.spawn(restless());
        co_await slow();
      };
      co_await async::with_scope(body);
    };
    co_await detach_beside(both());
  });
  EXPECT_LE(detached_after_, 3s);
  EXPECT_EQ(config(), "delivered-move");
}

// The Secret is missing that it names: an import controller then leaves the work as it is, until this is undone.
TEST_F(DetachTest, AWorkThatLosesTheSecretWhileTheImportControllerRestsIsDeliveredAgain) {
  run([&]() -> Awaitable<> {
    co_await claim();
    co_await write_work(true);
    std::vector<std::string> configs;
    auto others = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(1s);
      co_await write_work(true);
      co_await clock_.sleep_for(1s);
      configs.push_back(config());
      co_await write_work(false);
      co_await clock_.sleep_for(1s);
      configs.push_back(config());
      co_await write_work(true);
      co_await report_applied(version());
      co_await clock_.sleep_for(1h);
    };
    co_await detach_beside(others());
    EXPECT_THAT(configs, ElementsAre("delivered-move", "migration-move"));
  });
  EXPECT_EQ(detached_after_, 3s);
}

TEST_F(DetachTest, ARollbackGivesAClusterWhoseImportControllerRestsItsOwnConfigBack) {
  run([&]() -> Awaitable<> {
    auto cluster = managed_cluster("c1");
    cluster["metadata"].as_object()["annotations"] = json::object{{ocm::names::klusterlet_config_annotation, "edge"}};
    co_await put_namespace(*hub1_, "c1");
    co_await put(*hub1_, ocm::managed_clusters, std::move(cluster));
    auto begun = co_await hub1_->source->initialize(migration_, {"c1"}, kubeconfig_);
    EXPECT_TRUE(begun && begun->failed.empty());
    co_await write_work(true);
    auto rewrite = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(1s);
      co_await write_work(true);
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(rewrite());
      auto detached = co_await hub1_->source->detach(migration_, {"c1"});
      EXPECT_TRUE(detached && detached->failed.size() == 1) << "its agent reports nothing";
    };
    co_await async::with_scope(both);
    EXPECT_EQ(config(), "delivered-move");
    auto back = co_await hub1_->source->roll_back(migration_, Stage::deploying, {"c1"});
    EXPECT_TRUE(back && back->failed.empty());
    EXPECT_EQ(config(), "edge");
    auto deleted = co_await hub1_->source->delete_migration_objects(migration_);
    EXPECT_TRUE(deleted);
    EXPECT_FALSE(exists(*hub1_, ocm::klusterlet_configs, {{}, "delivered-move"}));
  });
}

// Its agent is on the target and applies nothing here any more, while the import controller writes on.
TEST_F(DetachTest, AClusterThatHasArrivedIsDetachedAtOnceWhateverItsWorkSays) {
  run([&]() -> Awaitable<> {
    co_await claim();
    co_await write_work(true);
    auto restless = [&]() -> Awaitable<> {
      for (;;) {
        co_await clock_.sleep_for(1s);
        co_await write_work(true);
      }
    };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(restless());
      auto detached = co_await hub1_->source->detach_arrived(migration_, {"c1"}, std::nullopt);
      EXPECT_TRUE(detached && detached->failed.empty());
      detached_after_ = clock_.now() - begin_;
      scope.stop();
    };
    co_await async::with_scope(both);
    EXPECT_EQ(cluster(*hub1_, "c1")->at("spec").at("hubAcceptsClient"), false);
  });
  EXPECT_LT(detached_after_, 1s);
}

// It was released, and lives on the target all the same. Another cluster of its name, imported later, is not touched.
TEST_F(DetachTest, AClusterThatWasReleasedAndLivesOnTheTargetIsClaimedAgainAndDetached) {
  run([&]() -> Awaitable<> {
    co_await put_cluster(*hub1_, "released");
    co_await put_cluster(*hub1_, "taken");
    auto taken = co_await hub1_->source->initialize(other_, {"taken"}, kubeconfig_);
    CO_ASSERT_TRUE(taken && taken->failed.empty());
    co_await clock_.sleep_for(1min);
    const auto cut_over = clock_.wall_now();
    co_await clock_.sleep_for(1min);
    co_await put_cluster(*hub1_, "later");
    const auto before = content_of(hub1_->server);
    const ClusterNames names{"released", "taken", "later", "gone"};
    auto not_claimed = co_await hub1_->source->detach_arrived(migration_, names, std::nullopt);
    CO_ASSERT_TRUE(not_claimed);
    EXPECT_THAT(not_claimed->done, IsEmpty());
    EXPECT_THAT(differences(before, content_of(hub1_->server)), IsEmpty());
    auto detached = co_await hub1_->source->detach_arrived(migration_, names, cut_over);
    CO_ASSERT_TRUE(detached);
    EXPECT_THAT(detached->done, ElementsAre("released"));
    EXPECT_THAT(reasons_of(*detached),
                UnorderedElementsAre("taken: ClusterConflict", "later: ClusterConflict", "gone: ClusterNotFound"));
    EXPECT_EQ(cluster(*hub1_, "released")->at("spec").at("hubAcceptsClient"), false);
    EXPECT_EQ(cluster(*hub1_, "released").annotation(migrating_annotation), "uid-1");
    EXPECT_EQ(cluster(*hub1_, "later")->at("spec").at("hubAcceptsClient"), true);
    const auto version = hub1_->server.resource_version();
    auto again = co_await hub1_->source->detach_arrived(migration_, {"released"}, cut_over);
    EXPECT_TRUE(again && again->failed.empty());
    EXPECT_EQ(hub1_->server.resource_version(), version);
  });
}

// MCE 5.x, with auto import disabled: the agent reports the work as applied and has applied nothing.
TEST_F(DetachTest, AVersionThatWasReadOnlyDoesNotCountAsApplied) {
  run([&]() -> Awaitable<> {
    co_await claim();
    co_await write_work(true, "ReadOnly");
    co_await report_applied(version());
    auto enabled = [&]() -> Awaitable<> {
      co_await clock_.sleep_for(5s);
      co_await write_work(true);
      co_await clock_.sleep_for(5s);
      co_await report_applied(version());
      co_await clock_.sleep_for(1h);
    };
    co_await detach_beside(enabled());
  });
  EXPECT_EQ(detached_after_, 10s);
}

TEST_F(DetachTest, AClusterIsDetachedOnlyWhenItsCallerLetsIt) {
  run([&]() -> Awaitable<> {
    for (const char* name : {"c1", "c2"}) co_await put_cluster(*hub1_, name);
    auto begun = co_await hub1_->source->initialize(migration_, {"c1", "c2"}, kubeconfig_);
    CO_ASSERT_TRUE(begun && begun->failed.empty());
    const auto is_accepted = [&](const char* name) {
      return *object(*hub1_, ocm::managed_clusters, {{}, name}).find({"spec", "hubAcceptsClient"}) == true;
    };
    std::vector<std::pair<std::string, bool>> ended;
    SourceHub::OnDetach on_detach;
    on_detach.before = [&](std::string cluster) -> Awaitable<Result<>> {
      if (cluster == "c2") co_return Error{FailureReason::cluster_not_available, "the target does not take it"};
      co_await clock_.sleep_for(1h);
      EXPECT_TRUE(is_accepted("c1"));
      // Somebody else may write to it in the meantime.
      co_await patch(*hub1_, ocm::managed_clusters, {{}, "c1"}, R"({"metadata":{"labels":{"later":"yes"}}})");
      co_return Result<>{};
    };
    on_detach.after = [&](const std::string& cluster, bool detached) { ended.emplace_back(cluster, detached); };
    auto detached = co_await hub1_->source->detach(migration_, {"c1", "c2"}, on_detach);
    CO_ASSERT_TRUE(detached && detached->failed.size() == 1);
    EXPECT_EQ(detached->failed.front().cluster, "c2");
    EXPECT_THAT(detached->failed.front().message, testing::HasSubstr("the target does not take it"));
    EXPECT_FALSE(is_accepted("c1"));
    EXPECT_TRUE(is_accepted("c2"));
    EXPECT_EQ(object(*hub1_, ocm::managed_clusters, {{}, "c1"}).label("later"), "yes");
    EXPECT_THAT(ended, testing::ElementsAre(std::pair{"c1", true}));
  });
}

}  // namespace
}  // namespace hubferry::hubagent
