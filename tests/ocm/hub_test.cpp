// What a hub does for its clusters; none of these has an agent.
#include "ocm/behaviour.hpp"

namespace hubferry::behaviour {

// Recorded: import.
TEST_P(OcmBehaviour, AnAcceptedClusterGetsItsNamespacePermissionsAndLease) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_cluster(hub1(), true);
    auto accepted = [&]() -> Awaitable<bool> {
      auto status = co_await condition(hub1(), name, names::accepted);
      co_return status == "True";
    };
    const bool is_accepted = co_await becomes("the cluster is accepted", facts::import_prepared, accepted);
    CO_ASSERT_TRUE(is_accepted);
    // In this order: the condition comes after what it stands for.
    auto space = co_await find(hub1(), resources::namespaces, Key{{}, name});
    CO_ASSERT_TRUE(space.has_value());
    EXPECT_EQ(space->label(names::cluster_name_label), name);
    auto registration = co_await exists(hub1(), resources::role_bindings, Key{name, registration_binding(name)});
    EXPECT_TRUE(registration);
    auto work = co_await find(hub1(), resources::role_bindings, Key{name, work_binding(name)});
    CO_ASSERT_TRUE(work.has_value());
    EXPECT_TRUE(has_finalizer(*work, names::work_cleanup_finalizer));
    auto leased = [&]() -> Awaitable<bool> {
      auto time = co_await renewal(hub1(), name);
      co_return !time.empty();
    };
    co_await becomes("the hub creates the lease", facts::import_prepared, leased);
    auto tainted = [&]() -> Awaitable<bool> {
      auto object = co_await cluster_on(hub1(), name);
      const auto* taints = object.find({"spec", "taints"});
      co_return taints != nullptr && !taints->as_array().empty() &&
          string_at(taints->as_array().at(0).as_object(), {"key"}) == "cluster.open-cluster-management.io/unreachable";
    };
    co_await becomes("the cluster is tainted until an agent joins", facts::import_prepared, tainted);
  });
}

// Recorded: stuck-no-hub.
TEST_P(OcmBehaviour, AClusterThatIsNotAcceptedGetsNeitherNamespaceNorLease) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_cluster(hub1(), false);
    auto nothing = [&]() -> Awaitable<bool> {
      auto lease = co_await renewal(hub1(), name);
      auto binding = co_await exists(hub1(), resources::role_bindings, Key{name, registration_binding(name)});
      auto works = co_await exists(hub1(), ocm::manifest_works, Key{name, name + "-klusterlet"});
      co_return lease.empty() && !binding && !works;
    };
    co_await stays("no lease, permissions or works", facts::watched, nothing);
  });
}

// Recorded: lease-loss.
TEST_P(OcmBehaviour, ADeletedLeaseIsCreatedAgainWithTheCurrentTime) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    auto leased = [&]() -> Awaitable<bool> {
      auto time = co_await renewal(hub1(), name);
      co_return !time.empty();
    };
    co_await becomes("the hub creates the lease", facts::import_prepared, leased);
    const auto before = co_await renewal(hub1(), name);
    co_await pause(2s);
    auto removed = co_await hub1().remove(resources::leases, ocm::lease_key(name));
    CO_ASSERT_TRUE(removed.has_value());
    auto created = [&]() -> Awaitable<bool> {
      auto now = co_await renewal(hub1(), name);
      co_return !now.empty() && async::parse_time(now) >= async::parse_time(before) + 1s;
    };
    co_await becomes("the lease is there again, renewed now", facts::lease_created_again, created);
  });
}

// Recorded: lease-loss. Only the agent renews the lease; the condition is its own for five periods more.
TEST_P(OcmBehaviour, AvailableBecomesUnknownFivePeriodsAfterTheLastRenewal) {
  run([&]() -> Awaitable<> {
    constexpr int period = 2;
    auto name = co_await make_cluster(hub1(), true, json::object{}, period);
    auto leased = [&]() -> Awaitable<bool> {
      auto time = co_await renewal(hub1(), name);
      co_return !time.empty();
    };
    const bool has_lease = co_await becomes("the hub creates the lease", facts::import_prepared, leased);
    CO_ASSERT_TRUE(has_lease);
    co_await set_available(hub1(), name);
    auto status = co_await condition(hub1(), name, names::available);
    EXPECT_EQ(status, "True");
    const Duration five_periods = std::chrono::seconds{facts::lease_periods * period};
    auto unknown = [&]() -> Awaitable<bool> {
      auto now = co_await condition(hub1(), name, names::available);
      co_return now == "Unknown";
    };
    co_await becomes("Available becomes Unknown", {five_periods, 3 * five_periods + 10s}, unknown);
    const auto renewed = co_await renewal(hub1(), name);
    EXPECT_GE(world().env().clock.wall_now() - async::parse_time(renewed), five_periods);
  });
}

// Recorded: detach, lease-loss. A single True proves nothing.
TEST_P(OcmBehaviour, WithAStaleLeaseTrueIsSetBackToUnknown) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_cluster(hub1(), true, json::object{}, 1);
    auto unknown = [&]() -> Awaitable<bool> {
      auto now = co_await condition(hub1(), name, names::available);
      co_return now == "Unknown";
    };
    const bool lost = co_await becomes("Available becomes Unknown", {5s, 60s}, unknown);
    CO_ASSERT_TRUE(lost);
    co_await set_available(hub1(), name);
    co_await becomes("Available becomes Unknown again", {100ms, 30s}, unknown);
  });
}

// Recorded: detach. The condition, the ClusterRoleBinding and the work agent's access outlive a denial.
TEST_P(OcmBehaviour, ADenialLeavesTheWorkAgentItsAccessWhileThereAreWorks) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    json::object manifest{{"apiVersion", "v1"},
                          {"kind", "ConfigMap"},
                          {"metadata", json::object{{"name", "settings"}, {"namespace", "default"}}}};
    json::object work{{"metadata", json::object{{"name", "app"}, {"namespace", name}}},
                      {"spec", json::object{{"workload", json::object{{"manifests", json::array{manifest}}}}}}};
    auto made = co_await hub1().create(ocm::manifest_works, std::move(work));
    CO_ASSERT_TRUE(made.has_value());
    co_await set_accepted(hub1(), name, false);
    auto denied = [&]() -> Awaitable<bool> {
      auto binding = co_await exists(hub1(), resources::role_bindings, Key{name, registration_binding(name)});
      co_return !binding;
    };
    co_await becomes("the agent may no longer renew its lease", facts::denial_in_force, denied);
    auto kept = [&]() -> Awaitable<bool> {
      auto binding = co_await find(hub1(), resources::role_bindings, Key{name, work_binding(name)});
      auto status = co_await condition(hub1(), name, names::accepted);
      co_return binding.has_value() && status == "True";
    };
    co_await stays("the work agent's binding, and the condition", facts::watched, kept);
    auto binding = co_await find(hub1(), resources::role_bindings, Key{name, work_binding(name)});
    CO_ASSERT_TRUE(binding.has_value());
    EXPECT_TRUE(binding->is_being_deleted()) << "its finalizer holds it";
  });
}

// Recorded: denied-and-autoapprove. Also what an administrator has denied before is accepted.
TEST_P(OcmBehaviour, AutomaticApprovalAcceptsEveryClusterWithoutItsAnnotation) {
  run([&]() -> Awaitable<> {
    const Key manager{{}, "cluster-manager"};
    auto before = co_await hub1().get(ocm::cluster_managers, manager);
    CO_ASSERT_TRUE(before.has_value());
    const auto* gates = before->find({"spec", "registrationConfiguration", "featureGates"});
    const json::value gates_before = gates == nullptr ? json::value{} : *gates;
    auto denied = co_await make_prepared_cluster(hub1());
    co_await set_accepted(hub1(), denied, false);
    auto never = co_await make_cluster(hub1(), false);
    json::object annotation{{names::accepted_on_annotation, "2026-01-01T00:00:00Z"}};
    auto annotated = co_await make_cluster(hub1(), false, std::move(annotation));
    auto restore = [this, manager, gates_before]() -> Awaitable<> {
      json::object patch{
          {"spec", json::object{{"registrationConfiguration", json::object{{"featureGates", gates_before}}}}}};
      (void)co_await hub1().merge_patch(ocm::cluster_managers, manager, std::move(patch));
    };
    at_end(restore);
    json::array enabled{json::object{{"feature", "ManagedClusterAutoApproval"}, {"mode", "Enable"}}};
    json::object patch{
        {"spec", json::object{{"registrationConfiguration", json::object{{"featureGates", std::move(enabled)}}}}}};
    auto patched = co_await hub1().merge_patch(ocm::cluster_managers, manager, std::move(patch));
    CO_ASSERT_TRUE(patched.has_value());
    auto accepted = [&](std::string name) -> Awaitable<bool> {
      auto object = co_await cluster_on(hub1(), name);
      const auto* accepts = object.find({"spec", "hubAcceptsClient"});
      co_return accepts != nullptr && *accepts == true;
    };
    auto both = [&]() -> Awaitable<bool> {
      auto one = co_await accepted(denied);
      auto other = co_await accepted(never);
      co_return one&& other;
    };
    co_await becomes("both are accepted, the denied one too", facts::auto_accepted, both);
    auto left_alone = co_await accepted(annotated);
    EXPECT_FALSE(left_alone);
  });
}

}  // namespace hubferry::behaviour
