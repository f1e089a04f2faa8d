// What the agents of a cluster do when their hub denies them.
#include "ocm/behaviour.hpp"

namespace hubferry::behaviour {

// Recorded: detach. One hub, nowhere to go: the agent stays, and its work agent works on.
TEST_P(AgentBehaviour, ADeniedAgentWithOneHubStaysAndStillAppliesWorks) {
  run([&]() -> Awaitable<> {
    co_await make(hub1(), ocm::manifest_works, work("suite-detach"));
    auto applied = [&]() -> Awaitable<bool> {
      auto found = co_await config_map("suite-detach");
      co_return found.has_value();
    };
    co_await becomes("the work is applied", facts::work_applied, applied);
    auto back = [this]() -> Awaitable<> {
      co_await set_accepted(hub1(), cluster(), true);
      co_await renews_lease("the agent renews its lease again", hub1(), cluster(), facts::accepted_again);
    };
    at_end(back);
    co_await set_accepted(hub1(), cluster(), false);
    co_await pause(2s);
    const auto before = co_await renewal(hub1(), cluster());
    auto changed = work("suite-detach");
    auto& manifests = changed["spec"].as_object()["workload"].as_object()["manifests"].as_array();
    manifests.at(1).as_object()["data"].as_object()["color"] = "red";
    json::object patch{{"spec", changed["spec"]}};
    auto patched = co_await hub1().merge_patch(ocm::manifest_works, Key{cluster(), "suite-detach"}, std::move(patch));
    CO_ASSERT_TRUE(patched.has_value());
    auto is_red = [&]() -> Awaitable<bool> {
      auto found = co_await config_map("suite-detach");
      co_return found.has_value() && found->string_at({"data", "color"}) == "red";
    };
    co_await becomes("the changed work is applied", facts::work_applied, is_red);
    co_await pause(facts::watched);
    const auto after = co_await renewal(hub1(), cluster());
    EXPECT_EQ(before, after) << "the lease is not renewed";
    auto available = co_await condition(hub1(), cluster(), names::available);
    EXPECT_EQ(available, "True") << "the old condition says nothing";
  });
}

// Recorded: switch-with-import-bootstrap-account.
TEST_P(AgentBehaviour, ADenialMovesAnAgentWithTwoHubsAndItStaysThereAfterARestart) {
  run([&]() -> Awaitable<> {
    auto restore = [this]() -> Awaitable<> { co_await return_to_hub1(); };
    at_end(restore);
    const bool moved = co_await switch_hub(hub1(), hub2());
    CO_ASSERT_TRUE(moved);
    // The new hub's own work sets the list back: until then a restart could lead anywhere.
    auto own_only = [&]() -> Awaitable<bool> {
      auto klusterlet = co_await find(cluster_api(), ocm::klusterlets, Key{{}, "klusterlet"});
      const auto* list = klusterlet ? klusterlet->find({"spec", "registrationConfiguration", "bootstrapKubeConfigs",
                                                        "localSecretsConfig", "kubeConfigSecrets"})
                                    : nullptr;
      co_return klusterlet.has_value() && (list == nullptr || list->as_array().empty());
    };
    co_await becomes("the klusterlet has the new hub only", {6s, 60s}, own_only);
    const auto left = co_await renewal(hub1(), cluster());
    co_await pause(10s);
    co_await world().restart_agent();
    co_await renews_lease("the restarted agent renews its lease on hub2", hub2(), cluster(), facts::restarted);
    const auto now = co_await renewal(hub1(), cluster());
    EXPECT_EQ(left, now) << "it has left hub1";
    auto secret = co_await exists(cluster_api(), resources::secrets, Key{names::agent_namespace, "bootstrap-suite"});
    EXPECT_TRUE(secret) << "the old hub's Secret stays on the cluster: nothing owns it";
  });
}

// Recorded: stuck-bootstrap, stuck-bootstrap-restart. Nothing from either hub reaches an agent that registers.
TEST_P(AgentBehaviour, AnAgentThatRegistersIsOutOfReachUntilItIsRestarted) {
  run([&]() -> Awaitable<> {
    auto restore = [this]() -> Awaitable<> { co_await return_to_hub1(); };
    at_end(restore);
    json::object copy{{"metadata", json::object{{"name", cluster()}}},
                      {"spec", json::object{{"hubAcceptsClient", true}, {"leaseDurationSeconds", 60}}}};
    auto made = co_await hub2().create(ocm::managed_clusters, std::move(copy));
    CO_ASSERT_TRUE(made.has_value());
    auto mover = co_await make_mover(hub2());
    auto kubeconfig = co_await config_of_account(hub2(), mover);
    co_await offer(hub1(), std::move(kubeconfig));
    co_await set_accepted(hub1(), cluster(), false);
    auto requested = [&]() -> Awaitable<bool> {
      ListOptions of_cluster;
      of_cluster.label_selector = std::string{names::cluster_name_label} + "=" + cluster();
      auto requests = co_await hub2().list_all(resources::certificate_signing_requests, of_cluster);
      // Those of earlier registrations are still there.
      for (const auto& request : requests.value())
        if (request.string_at({"spec", "username"}) == "system:serviceaccount:" + mover.ns + ":" + mover.name)
          co_return true;
      co_return false;
    };
    const bool registers = co_await becomes("the agent registers on hub2", {4300ms, 60s}, requested);
    CO_ASSERT_TRUE(registers);
    const auto before = co_await renewal(hub1(), cluster());
    co_await set_accepted(hub1(), cluster(), true);
    auto still_away = [&]() -> Awaitable<bool> {
      auto now = co_await renewal(hub1(), cluster());
      co_return now == before;
    };
    co_await stays("hub1 accepts: the agent is away", 2 * facts::watched, still_away);
    co_await set_accepted(hub2(), cluster(), false);
    co_await stays("hub2 denies: the agent is away", 10 * facts::watched, still_away);
    co_await world().restart_agent();
    co_await renews_lease("the restarted agent is on hub1", hub1(), cluster(), facts::restarted);
  });
}

}  // namespace hubferry::behaviour
