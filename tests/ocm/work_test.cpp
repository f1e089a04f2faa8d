// Workloads: what hubs deploy on a cluster by ManifestWorks.
#include "ocm/behaviour.hpp"

namespace hubferry::behaviour {

// Recorded: manifestwork-lifecycle.
TEST_P(AgentBehaviour, AWorkIsAppliedOwnedAndDeletedWithItsObjects) {
  run([&]() -> Awaitable<> {
    co_await make(hub1(), ocm::manifest_works, work("suite-plain"));
    auto applied = [&]() -> Awaitable<bool> { co_return co_await is_applied(hub1(), "suite-plain"); };
    co_await becomes("the work is applied", facts::work_applied, applied);
    auto found = co_await config_map("suite-plain");
    CO_ASSERT_TRUE(found.has_value());
    const auto* owners = found->find({"metadata", "ownerReferences"});
    CO_ASSERT_TRUE(owners != nullptr && owners->as_array().size() == 1);
    EXPECT_EQ(string_at(owners->as_array().at(0).as_object(), {"kind"}), "AppliedManifestWork");
    auto object = co_await hub1().get(ocm::manifest_works, Key{cluster(), "suite-plain"});
    EXPECT_TRUE(has_finalizer(object.value(), names::work_cleanup_finalizer));
    (void)co_await hub1().remove(ocm::manifest_works, Key{cluster(), "suite-plain"});
    auto gone = [&]() -> Awaitable<bool> {
      auto there = co_await config_map("suite-plain");
      auto listed = co_await exists(hub1(), ocm::manifest_works, Key{cluster(), "suite-plain"});
      co_return !there.has_value() && !listed;
    };
    co_await becomes("the work and its objects are gone", facts::work_deleted, gone);
  });
}

// Recorded: manifestwork-lifecycle.
TEST_P(AgentBehaviour, OrphanedObjectsHaveNoOwnerAndStay) {
  run([&]() -> Awaitable<> {
    auto orphaning = work("suite-orphan");
    orphaning["spec"].as_object()["deleteOption"] = json::object{{"propagationPolicy", "Orphan"}};
    co_await make(hub1(), ocm::manifest_works, std::move(orphaning));
    at_end(cluster_api(), resources::namespaces, Key{{}, "suite-orphan"});
    auto applied = [&]() -> Awaitable<bool> { co_return co_await is_applied(hub1(), "suite-orphan"); };
    co_await becomes("the work is applied", facts::work_applied, applied);
    auto found = co_await config_map("suite-orphan");
    CO_ASSERT_TRUE(found.has_value());
    const auto* owners = found->find({"metadata", "ownerReferences"});
    EXPECT_TRUE(owners == nullptr || owners->as_array().empty());
    (void)co_await hub1().remove(ocm::manifest_works, Key{cluster(), "suite-orphan"});
    auto gone = [&]() -> Awaitable<bool> {
      auto listed = co_await exists(hub1(), ocm::manifest_works, Key{cluster(), "suite-orphan"});
      co_return !listed;
    };
    co_await becomes("the work is gone", facts::work_deleted, gone);
    auto kept = [&]() -> Awaitable<bool> {
      auto there = co_await config_map("suite-orphan");
      co_return there.has_value();
    };
    co_await stays("its object", facts::watched, kept);
  });
}

// Recorded: switch-target-disable-auto-import. Applied does not mean that anything was applied.
TEST_P(AgentBehaviour, AReadOnlyManifestIsReportedAsAppliedThoughItIsNot) {
  run([&]() -> Awaitable<> {
    json::object settings{{"apiVersion", "v1"},
                          {"kind", "ConfigMap"},
                          {"metadata", json::object{{"name", "suite-read-only"}, {"namespace", "default"}}},
                          {"data", json::object{{"color", "red"}}}};
    json::object mine = settings;
    mine["data"].as_object()["color"] = "blue";
    co_await make(cluster_api(), resources::config_maps, mine);
    json::object identifier{
        {"group", ""}, {"resource", "configmaps"}, {"name", "suite-read-only"}, {"namespace", "default"}};
    json::object config{{"resourceIdentifier", std::move(identifier)},
                        {"updateStrategy", json::object{{"type", "ReadOnly"}}}};
    json::object reading{{"metadata", json::object{{"name", "suite-read-only"}, {"namespace", cluster()}}},
                         {"spec", json::object{{"workload", json::object{{"manifests", json::array{settings}}}},
                                               {"manifestConfigs", json::array{std::move(config)}}}}};
    co_await make(hub1(), ocm::manifest_works, std::move(reading));
    auto applied = [&]() -> Awaitable<bool> { co_return co_await is_applied(hub1(), "suite-read-only"); };
    co_await becomes("the work is reported as applied", facts::work_applied, applied);
    auto found = co_await cluster_api().get(resources::config_maps, Key{"default", "suite-read-only"});
    EXPECT_EQ(found.value().string_at({"data", "color"}), "blue");
  });
}

// Recorded: manifestwork-lifecycle. What the next hub has too is adopted, everything else is evicted.
TEST_P(AgentBehaviour, AfterASwitchOnlyWorksThatTheNewHubHasTooSurviveTheEviction) {
  const auto grace = world().eviction_grace();
  if (grace > 5min) GTEST_SKIP() << "the eviction grace period is " << async::format_duration(grace);
  run([&]() -> Awaitable<> {
    for (const char* name : {"suite-kept", "suite-lost"}) co_await make(hub1(), ocm::manifest_works, work(name));
    auto applied = [&]() -> Awaitable<bool> {
      auto kept = co_await is_applied(hub1(), "suite-kept");
      auto lost = co_await is_applied(hub1(), "suite-lost");
      co_return kept&& lost;
    };
    co_await becomes("both works are applied", facts::work_applied, applied);
    const auto before = co_await config_map("suite-kept");
    CO_ASSERT_TRUE(before.has_value());
    auto restore = [this]() -> Awaitable<> { co_await return_to_hub1(); };
    at_end(restore);
    const bool moved = co_await switch_hub(hub1(), hub2());
    CO_ASSERT_TRUE(moved);
    auto made = co_await hub2().create(ocm::manifest_works, work("suite-kept"));
    CO_ASSERT_TRUE(made.has_value());
    auto owners = [&]() -> Awaitable<std::size_t> {
      auto found = co_await config_map("suite-kept");
      const auto* list = found ? found->find({"metadata", "ownerReferences"}) : nullptr;
      co_return list == nullptr ? 0 : list->as_array().size();
    };
    auto adopted = [&]() -> Awaitable<bool> {
      auto count = co_await owners();
      co_return count == 2;
    };
    co_await becomes("the new hub's work is a second owner", facts::work_adopted, adopted);
    auto evicted = [&]() -> Awaitable<bool> {
      auto there = co_await config_map("suite-lost");
      auto count = co_await owners();
      co_return !there.has_value() && count == 1;
    };
    co_await becomes("what only the old hub had is evicted", {grace, grace + 120s}, evicted);
    const auto after = co_await config_map("suite-kept");
    CO_ASSERT_TRUE(after.has_value());
    EXPECT_EQ(after->uid(), before->uid());
  });
}

}  // namespace hubferry::behaviour
