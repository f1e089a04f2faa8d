// What the import controller gives to clusters; none of these has an agent.
#include "ocm/behaviour.hpp"

namespace hubferry::behaviour {

using testing::ElementsAre;

// Recorded: import.
TEST_P(ImportBehaviour, AnAcceptedClusterGetsItsBootstrapAccountImportSecretAndWorks) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    auto account = co_await exists(hub1(), resources::service_accounts, Key{name, name + "-bootstrap-sa"});
    EXPECT_TRUE(account);
    auto secret = co_await find(hub1(), resources::secrets, Key{name, name + "-import"});
    CO_ASSERT_TRUE(secret.has_value());
    EXPECT_NE(secret->find({"data", "import.yaml"}), nullptr);
    auto work = co_await klusterlet_work(hub1(), name);
    EXPECT_EQ(work.label(names::klusterlet_works_label), "true");
    EXPECT_EQ(work.string_at({"spec", "deleteOption", "propagationPolicy"}), "Orphan");
    auto secrets = co_await bootstrap_secrets(hub1(), name);
    EXPECT_THAT(secrets, ElementsAre("bootstrap-hub-kubeconfig"));
    auto crds = co_await exists(hub1(), ocm::manifest_works, Key{name, name + "-klusterlet-crds"});
    EXPECT_EQ(crds, !world().differs(Difference::no_work_for_crds));
  });
}

// Recorded: import, switch-with-import-bootstrap-account.
TEST_P(ImportBehaviour, ARequestOfTheClustersBootstrapAccountIsApprovedAtOnce) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    auto config = co_await config_of_account(hub1(), Key{name, name + "-bootstrap-sa"});
    auto request = co_await request_certificate(hub1(), std::move(config), name);
    auto approved = [&]() -> Awaitable<bool> { co_return co_await is_approved(hub1(), request); };
    co_await becomes("the request is approved", facts::import_account_approved, approved);
    auto issued = [&]() -> Awaitable<bool> {
      auto found = co_await hub1().get(resources::certificate_signing_requests, Key{{}, request});
      co_return !found.value().string_at({"status", "certificate"}).empty();
    };
    co_await becomes("the certificate is issued", facts::import_account_approved, issued);
  });
}

// Recorded: stuck-bootstrap, denied-and-autoapprove.
TEST_P(ImportBehaviour, ARequestOfAnotherAccountWaitsForAnApproval) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    auto mover = co_await make_mover(hub1());
    auto config = co_await config_of_account(hub1(), mover);
    auto request = co_await request_certificate(hub1(), std::move(config), name);
    auto pending = [&]() -> Awaitable<bool> {
      auto approved = co_await is_approved(hub1(), request);
      co_return !approved;
    };
    co_await stays("the request is pending", facts::watched, pending);
  });
}

// Recorded: switch-by-klusterletconfig. In the order of the list, the current hub last.
TEST_P(ImportBehaviour, AKlusterletConfigPutsItsHubsFirstAndTheCurrentHubLast) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    co_await make_bootstrap_secret(hub1(), "bootstrap-" + name, to_kubeconfig(world().address_of(hub2())));
    co_await make_config(hub1(), name, "bootstrap-" + name);
    co_await annotate(hub1(), name, names::klusterlet_config_annotation, name);
    auto written = [&]() -> Awaitable<bool> {
      auto secrets = co_await bootstrap_secrets(hub1(), name);
      co_return secrets.size() == 2;
    };
    co_await becomes("the work has both Secrets", facts::config_applied, written);
    auto secrets = co_await bootstrap_secrets(hub1(), name);
    EXPECT_THAT(secrets, testing::UnorderedElementsAre("bootstrap-" + name, "bootstrap-hub-kubeconfig-current-hub"));
    auto work = co_await klusterlet_work(hub1(), name);
    std::vector<std::string> listed;
    for (const auto& manifest : work.find({"spec", "workload", "manifests"})->as_array()) {
      if (string_at(manifest.as_object(), {"kind"}) != "Klusterlet") continue;
      const auto* list = kube::find(manifest.as_object(), {"spec", "registrationConfiguration", "bootstrapKubeConfigs",
                                                           "localSecretsConfig", "kubeConfigSecrets"});
      CO_ASSERT_TRUE(list != nullptr);
      for (const auto& entry : list->as_array()) listed.emplace_back(string_at(entry.as_object(), {"name"}));
    }
    EXPECT_THAT(listed, ElementsAre("bootstrap-" + name, "bootstrap-hub-kubeconfig-current-hub"));
    co_await annotate(hub1(), name, names::klusterlet_config_annotation, std::nullopt);
    auto restored = [&]() -> Awaitable<bool> {
      auto now = co_await bootstrap_secrets(hub1(), name);
      co_return now == std::vector<std::string>{"bootstrap-hub-kubeconfig"};
    };
    co_await becomes("the work has the hub's own Secret only", facts::config_applied, restored);
  });
}

// The import controller does nothing at all until the Secret exists.
TEST_P(ImportBehaviour, AKlusterletConfigWithAMissingSecretLeavesTheWorkAsItIs) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    co_await make_config(hub1(), name, "bootstrap-" + name);
    co_await annotate(hub1(), name, names::klusterlet_config_annotation, name);
    auto unchanged = [&]() -> Awaitable<bool> {
      auto secrets = co_await bootstrap_secrets(hub1(), name);
      co_return secrets == std::vector<std::string>{"bootstrap-hub-kubeconfig"};
    };
    co_await stays("the work", facts::watched, unchanged);
  });
}

// Recorded: klusterletconfig-replaced. Nothing of the config before is merged in.
TEST_P(ImportBehaviour, OnlyTheKlusterletConfigThatIsNamedIsInForce) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    json::object placement{{"nodePlacement", json::object{{"nodeSelector", json::object{{"suite", name}}}}}};
    json::object users{{"metadata", json::object{{"name", name + "-users"}}}, {"spec", std::move(placement)}};
    co_await make(hub1(), ocm::klusterlet_configs, std::move(users));
    json::object other{{"metadata", json::object{{"name", name + "-other"}}}, {"spec", json::object{}}};
    co_await make(hub1(), ocm::klusterlet_configs, std::move(other));
    auto has_selector = [&]() -> Awaitable<bool> {
      auto work = co_await klusterlet_work(hub1(), name);
      for (const auto& manifest : work.find({"spec", "workload", "manifests"})->as_array())
        if (string_at(manifest.as_object(), {"kind"}) == "Klusterlet")
          co_return string_at(manifest.as_object(), {"spec", "nodePlacement", "nodeSelector", "suite"}) == name;
      co_return false;
    };
    co_await annotate(hub1(), name, names::klusterlet_config_annotation, name + "-users");
    co_await becomes("the klusterlet has the user's node selector", facts::config_applied, has_selector);
    co_await annotate(hub1(), name, names::klusterlet_config_annotation, name + "-other");
    auto lost = [&]() -> Awaitable<bool> {
      auto there = co_await has_selector();
      co_return !there;
    };
    co_await becomes("the node selector is gone", facts::placement_replaced, lost);
  });
}

// Recorded: switch-by-klusterletconfig-disable-auto-import. It does nothing on 2.17, and blocks every change on 5.x.
TEST_P(ImportBehaviour, DisableAutoImportFreezesTheWorkOf5xOnly) {
  run([&]() -> Awaitable<> {
    auto name = co_await make_prepared_cluster(hub1());
    co_await make_bootstrap_secret(hub1(), "bootstrap-" + name, to_kubeconfig(world().address_of(hub2())));
    co_await make_config(hub1(), name, "bootstrap-" + name);
    auto both = [&]() -> Awaitable<bool> {
      auto secrets = co_await bootstrap_secrets(hub1(), name);
      co_return secrets.size() == 2;
    };
    auto read_only = [&]() -> Awaitable<bool> { co_return co_await is_read_only(hub1(), name); };
    json::object annotations{{names::disable_auto_import_annotation, ""}, {names::klusterlet_config_annotation, name}};
    json::object patch{{"metadata", json::object{{"annotations", std::move(annotations)}}}};
    co_await patch_cluster(hub1(), name, std::move(patch));
    if (!is_5x()) {
      co_await becomes("the work has both Secrets", facts::config_applied, both);
      auto frozen = co_await read_only();
      EXPECT_FALSE(frozen);
      co_return;
    }
    co_await becomes("all manifests are ReadOnly", facts::made_read_only, read_only);
    auto unchanged = [&]() -> Awaitable<bool> {
      auto changed = co_await both();
      co_return !changed;
    };
    co_await stays("the content of the work", facts::watched, unchanged);
    co_await annotate(hub1(), name, names::disable_auto_import_annotation, std::nullopt);
    co_await becomes("the work has both Secrets", facts::written_again, both);
    auto frozen = co_await read_only();
    EXPECT_FALSE(frozen);
  });
}

// Recorded: switch-target-disable-auto-import.
TEST_P(ImportBehaviour, ACopyWithDisableAutoImportHasAReadOnlyWorkFromTheStartOn5x) {
  run([&]() -> Awaitable<> {
    json::object annotations{{names::disable_auto_import_annotation, ""}};
    auto name = co_await make_cluster(hub1(), true, std::move(annotations));
    auto created = [&]() -> Awaitable<bool> {
      co_return co_await exists(hub1(), ocm::manifest_works, Key{name, name + "-klusterlet"});
    };
    const bool has_work = co_await becomes("the work is created", facts::import_prepared, created);
    CO_ASSERT_TRUE(has_work);
    auto read_only = co_await is_read_only(hub1(), name);
    EXPECT_EQ(read_only, is_5x());
  });
}

}  // namespace hubferry::behaviour
