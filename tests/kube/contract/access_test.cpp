// Authorization, authentication, and what the server serves.
#include "kube/contract/contract.hpp"

namespace hubferry::contract {
namespace {

TEST_P(KubeContract, AnAccountWithoutRightsIsForbiddenEveryVerb) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    auto& nobody = world().nobody();
    auto got = co_await nobody.get(resources::config_maps, key("a"));
    expect_error(got, ErrorKind::forbidden);
    EXPECT_EQ(got.error().status, 403);
    auto made = co_await nobody.create(resources::config_maps, config_map("b"));
    expect_error(made, ErrorKind::forbidden);
    auto updated = co_await nobody.update(resources::config_maps, config_map("a"));
    expect_error(updated, ErrorKind::forbidden);
    auto patched = co_await nobody.merge_patch(resources::config_maps, key("a"), json::object{});
    expect_error(patched, ErrorKind::forbidden);
    auto applied = co_await nobody.apply(resources::config_maps, config_map("a"));
    expect_error(applied, ErrorKind::forbidden);
    auto removed = co_await nobody.remove(resources::config_maps, key("a"));
    expect_error(removed, ErrorKind::forbidden);
    auto listed = co_await nobody.list(resources::config_maps, here(), object_decoder());
    expect_error(listed, ErrorKind::forbidden);
    WatchOptions options;
    options.ns = ns();
    auto watched = co_await nobody.watch(resources::config_maps, options, object_decoder());
    expect_error(watched, ErrorKind::forbidden);
  });
}

TEST_P(KubeContract, AWrongCredentialIsUnauthorized) {
  run([&]() -> Awaitable<> {
    auto* stranger = world().stranger();
    CO_ASSERT_EQ(stranger == nullptr, world().differs(Difference::no_credentials));
    if (stranger == nullptr) co_return;
    auto got = co_await stranger->get(resources::config_maps, key("a"));
    expect_error(got, ErrorKind::unauthorized);
    EXPECT_EQ(got.error().status, 401);
    auto listed = co_await stranger->list(resources::config_maps, here(), object_decoder());
    expect_error(listed, ErrorKind::unauthorized);
  });
}

TEST_P(KubeContract, ARoleGrantsWhatItNamesAndNothingElse) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    json::object rule{
        {"apiGroups", json::array{""}}, {"resources", json::array{"configmaps"}}, {"verbs", json::array{"get"}}};
    json::object role{{"metadata", json::object{{"namespace", ns()}, {"name", "reader"}}},
                      {"rules", json::array{rule}}};
    auto made = co_await api().create(resources::roles, role);
    CO_ASSERT_TRUE(made.has_value());
    json::object subject{{"kind", "User"}, {"name", "nobody"}, {"apiGroup", "rbac.authorization.k8s.io"}};
    json::object reference{{"kind", "Role"}, {"name", "reader"}, {"apiGroup", "rbac.authorization.k8s.io"}};
    json::object binding{{"metadata", json::object{{"namespace", ns()}, {"name", "nobody-reads"}}},
                         {"subjects", json::array{subject}},
                         {"roleRef", reference}};
    auto bound = co_await api().create(resources::role_bindings, binding);
    CO_ASSERT_TRUE(bound.has_value());
    // The server's authorizer learns of it by a watch of its own.
    auto may_read = [&]() -> Awaitable<bool> {
      auto got = co_await world().nobody().get(resources::config_maps, key("a"));
      co_return got.has_value();
    };
    const bool granted = co_await eventually(may_read);
    EXPECT_TRUE(granted);
    auto listed = co_await world().nobody().list(resources::config_maps, here(), object_decoder());
    expect_error(listed, ErrorKind::forbidden);
    auto may = co_await world().nobody().may("get", resources::config_maps, key("a"));
    EXPECT_TRUE(may.value());
  });
}

TEST_P(KubeContract, MayAnswersWithoutTrying) {
  run([&]() -> Awaitable<> {
    auto admin = co_await api().may("delete", resources::config_maps, key("a"));
    EXPECT_TRUE(admin.value());
    auto subresource = co_await api().may("update", resources::leases, key("a"), "status");
    EXPECT_TRUE(subresource.value());
    auto nobody = co_await world().nobody().may("delete", resources::config_maps, key("a"));
    CO_ASSERT_TRUE(nobody.has_value());
    EXPECT_FALSE(*nobody);
  });
}

TEST_P(KubeContract, DiscoveryTellsWhatIsServed) {
  run([&]() -> Awaitable<> {
    for (const auto* resource : {&resources::config_maps, &resources::leases, &resources::events,
                                 &resources::custom_resource_definitions, &resources::namespaces}) {
      auto served = co_await api().serves(*resource);
      EXPECT_TRUE(served.value()) << resource->display_name();
    }
    const Resource other_kind{"", "v1", "starships", "Starship", true};
    auto kind = co_await api().serves(other_kind);
    EXPECT_FALSE(kind.value());
    const Resource other_group{"no.such.group", "v1", "starships", "Starship", true};
    auto group = co_await api().serves(other_group);
    EXPECT_FALSE(group.value());
    const Resource other_version{"coordination.k8s.io", "v99", "leases", "Lease", true};
    auto version = co_await api().serves(other_version);
    EXPECT_FALSE(version.value());
  });
}

// The answer "no" is not kept: the definition may come later.
TEST_P(KubeContract, DiscoveryLearnsOfANewKind) {
  run([&]() -> Awaitable<> {
    const Resource widgets{ns() + ".example.io", "v1", "widgets", "Widget", true};
    auto before = co_await api().serves(widgets);
    EXPECT_FALSE(before.value());
    co_await install_widgets();
    auto after = co_await api().serves(widgets);
    EXPECT_TRUE(after.value());
  });
}

TEST_P(KubeContract, AnUnknownKindIsNotFound) {
  run([&]() -> Awaitable<> {
    const Resource starships{"no.such.group", "v1", "starships", "Starship", true};
    auto got = co_await api().get(starships, key("a"));
    expect_error(got, ErrorKind::not_found);
    auto listed = co_await api().list(starships, here(), object_decoder());
    expect_error(listed, ErrorKind::not_found);
    WatchOptions options;
    options.ns = ns();
    auto watched = co_await open(starships, options);
    expect_error(watched, ErrorKind::not_found);
  });
}

TEST_P(KubeContract, AVerbThatAKindDoesNotHaveIsUnsupported) {
  run([&]() -> Awaitable<> {
    ListOptions options;
    auto listed = co_await api().list(resources::self_subject_access_reviews, options, object_decoder());
    expect_error(listed, ErrorKind::unsupported);
    EXPECT_EQ(listed.error().status, 405);
  });
}

TEST_P(KubeContract, TheServerReportsItsVersion) {
  run([&]() -> Awaitable<> {
    auto version = co_await api().get_path("/version");
    CO_ASSERT_TRUE(version.has_value());
    EXPECT_NE(find(*version, {"gitVersion"}), nullptr);
    auto missing = co_await api().get_path("/apis/no.such.group/v1");
    expect_error(missing, ErrorKind::not_found);
  });
}

TEST_P(KubeContract, AServiceAccountsTokenIsIssuedOnRequest) {
  run([&]() -> Awaitable<> {
    json::object account{{"metadata", json::object{{"namespace", ns()}, {"name", "agent"}}}};
    auto made = co_await api().create(resources::service_accounts, account);
    CO_ASSERT_TRUE(made.has_value());
    Request token = request(Verb::create, resources::service_accounts, key("agent"));
    token.subresource = "token";
    token.body = json::object{{"apiVersion", "authentication.k8s.io/v1"},
                              {"kind", "TokenRequest"},
                              {"spec", json::object{{"expirationSeconds", 600}}}};
    auto issued = co_await api().call(token);
    CO_ASSERT_TRUE(issued.has_value());
    const std::string text{issued->string_at({"status", "token"})};
    EXPECT_FALSE(text.empty());
    EXPECT_FALSE(issued->string_at({"status", "expirationTimestamp"}).empty());
    json::object review{{"spec", json::object{{"token", text}}}};
    auto reviewed = co_await api().create(resources::token_reviews, review);
    CO_ASSERT_TRUE(reviewed.has_value());
    EXPECT_EQ(reviewed->string_at({"status", "user", "username"}), "system:serviceaccount:" + ns() + ":agent");
    Request missing = token;
    missing.key = key("missing");
    auto refused = co_await api().call(missing);
    expect_error(refused, ErrorKind::not_found);
  });
}

TEST_P(KubeContract, ACertificateRequestIsApprovedByItsSubresource) {
  run([&]() -> Awaitable<> {
    const auto* request_text =
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIU01Ib0NBUUF3R0RFV01CUUdBMVVFQXd3TlkyOXVkSEpoWTNRdGRYTmxjak"
        "JaTUJNR0J5cUdTTTQ5QWdFRwpDQ3FHU000OUF3RUhBMElBQklNTnp0SmE1bmJSRXFQZ2IvTHhuZGZCd0ZKU2dEZmJPdVBtKzZrQk5qTU1Xclgz"
        "CjM2UWtSb0M3OWlTbnhkQXc3TjVneTlJWUVjMHVvTFhjdUVSS2pXK2dBREFLQmdncWhrak9QUVFEQWdOSUFEQkYKQWlFQTNHSGl4eS9JdG13SD"
        "daV3JrS2hpSjJoVkV6ckpDVnVlL3RHZVUzNmQwcUVDSURBZkowRGpCOXM2KzlaMgozMDBLbm0rY0F3R1JFd2dRd09DMHRrZlRPUnFiCi0tLS0t"
        "RU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";
    const Key name{{}, unique_name("contract-")};
    json::object body{{"metadata", json::object{{"name", name.name}}},
                      {"spec", json::object{{"request", request_text},
                                            {"signerName", "kubernetes.io/kube-apiserver-client"},
                                            {"usages", json::array{"client auth"}}}}};
    auto made = co_await api().create(resources::certificate_signing_requests, body);
    CO_ASSERT_TRUE(made.has_value());
    at_end(resources::certificate_signing_requests, name);
    EXPECT_FALSE(made->string_at({"spec", "username"}).empty()) << "the server records the requester";
    json::object approval = made->json();
    json::object condition{{"type", "Approved"}, {"status", "True"}, {"reason", "Contract"}, {"message", "yes"}};
    approval["status"] = json::object{{"conditions", json::array{condition}}};
    auto plain = co_await api().update(resources::certificate_signing_requests, approval);
    if (plain) {
      EXPECT_EQ(plain->find({"status", "conditions"}), nullptr) << "not by a plain update";
      approval["metadata"].get_object()["resourceVersion"] = plain->resource_version();
    }
    auto approved = co_await api().update(resources::certificate_signing_requests, approval, "approval");
    if (!approved) ADD_FAILURE() << approved.error();
    CO_ASSERT_TRUE(approved.has_value());
    const auto* conditions = approved->find({"status", "conditions"});
    CO_ASSERT_TRUE(conditions != nullptr && conditions->is_array());
    EXPECT_EQ(conditions->get_array().at(0).at("type"), "Approved");
  });
}

}  // namespace
}  // namespace hubferry::contract
