#include "hubagent/shared_looks.hpp"

#include "hub_test.hpp"
#include "hubagent/requests.hpp"
#include "hubagent/works.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {
namespace {

/// Its lists are answered a second after the server has made them.
class LateLists final : public kube::Api {
 public:
  LateLists(kube::Api& inner, async::Clock& clock) : inner_(inner), clock_(clock) {}

  Awaitable<kube::Result<Object>> call(kube::Request request) override { return inner_.call(std::move(request)); }
  Awaitable<kube::Result<kube::ListPage>> list(Resource resource, kube::ListOptions options,
                                               const kube::Decoder& decoder) override {
    auto page = co_await inner_.list(std::move(resource), std::move(options), decoder);
    co_await clock_.sleep_for(1s);
    co_return page;
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(Resource resource, kube::WatchOptions options,
                                                                    const kube::Decoder& decoder) override {
    return inner_.watch(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<json::value>> get_path(std::string path) override { return inner_.get_path(std::move(path)); }
  [[nodiscard]] std::string_view name() const override { return inner_.name(); }

 private:
  kube::Api& inner_;
  async::Clock& clock_;
};

class SharedLooksTest : public HubTest {
 protected:
  Awaitable<> put_host(std::string ns, std::string name) {
    auto space = parsed(R"({"metadata":{}})");
    space["metadata"].as_object()["name"] = ns;
    auto created = co_await hub1_->server.api().create(kube::resources::namespaces, std::move(space));
    auto host = parsed(R"({"metadata":{},"spec":{"online":true}})");
    host["metadata"].as_object()["name"] = name;
    host["metadata"].as_object()["namespace"] = ns;
    co_await put(*hub1_, ocm::bare_metal_hosts, std::move(host));
  }
  /// The lists of hosts that hub1 has answered: in one namespace, or on the whole hub.
  std::size_t lists(bool whole_hub) {
    return static_cast<std::size_t>(std::ranges::count_if(hub1_->server.requests(), [&](const auto& request) {
      return request.verb == "list" && request.resource.starts_with("baremetalhosts") &&
             request.key.ns.empty() == whole_hub;
    }));
  }
  Awaitable<> expect_hosts(std::string ns, std::size_t count) {
    auto found = co_await list(*hub1_->hub, ocm::bare_metal_hosts, ns);
    EXPECT_TRUE(found) << found.error();
    if (found) EXPECT_EQ(found->size(), count) << ns;
  }
};

TEST_F(SharedLooksTest, ClustersThatAreProcessedAtOnceShareTheListOfAKind) {
  run([&]() -> Awaitable<> {
    co_await put_host("c3", "host");
    auto all = [&](async::TaskScope& scope) -> Awaitable<> {
      for (int i = 0; i < 50; ++i) scope.spawn(expect_hosts("c" + std::to_string(i), i == 3 ? 1 : 0));
      co_return;
    };
    co_await async::with_scope(all);
  });
  EXPECT_LE(lists(true), 2U);
  EXPECT_EQ(lists(false), 0U);
}

TEST_F(SharedLooksTest, ListsThatFollowEachOtherCloselyWaitForMoreCallers) {
  run([&]() -> Awaitable<> {
    auto one_by_one = [&](async::TaskScope& scope) -> Awaitable<> {
      for (int i = 0; i < 100; ++i) {
        scope.spawn(expect_hosts("c1", 0));
        co_await env_.clock.sleep_for(1ms);
      }
    };
    co_await async::with_scope(one_by_one);
  });
  EXPECT_LE(lists(true), 3U) << "the second after 20 ms, the third, since many shared that one, after 100 ms more";
}

TEST_F(SharedLooksTest, OfAKindThatEveryClusterHasASelectorPicksTheFewThatMatter) {
  run([&]() -> Awaitable<> {
    for (int i = 0; i < 25; ++i) {
      const auto ns = "c" + std::to_string(i);
      co_await put_namespace(*hub1_, ns);
      auto work = parsed(R"({"metadata":{"labels":{"import.open-cluster-management.io/klusterlet-works":"true"}},
                             "spec":{"workload":{"manifests":[]}}})");
      work["metadata"].as_object()["name"] = ns + "-klusterlet";
      work["metadata"].as_object()["namespace"] = ns;
      co_await put(*hub1_, ocm::manifest_works, work);
      if (i != 3) continue;
      work["metadata"] = json::object{{"name", "users"}, {"namespace", ns}};
      co_await put(*hub1_, ocm::manifest_works, work);
    }
    for (const auto* ns : {"c3", "c4"}) {
      auto found = co_await list_few(*hub1_->hub, ocm::manifest_works, ns, users_works_selector());
      EXPECT_TRUE(found) << found.error();
      if (found) EXPECT_EQ(found->size(), ns == std::string{"c3"} ? 1U : 0U);
    }
  });
  const auto in_namespaces = std::ranges::count_if(hub1_->server.requests(), [](const auto& request) {
    return request.verb == "list" && request.resource.starts_with("manifestworks") && !request.key.ns.empty();
  });
  EXPECT_EQ(in_namespaces, 0);
}

TEST_F(SharedLooksTest, AnAnswerIsNotOlderThanItsQuestion) {
  LateLists late{hub1_->server.api(), env_.clock};
  HubWideRights rights{late, env_.clock};
  SharedLooks looks{late, rights, env_.clock};
  std::size_t first = 99;
  std::size_t second = 99;
  auto ask = [&](std::size_t& hosts) -> Awaitable<> {
    const auto all = co_await looks.all_on_hub(ocm::bare_metal_hosts);
    hosts = all == nullptr ? 99 : all->size();
  };
  run([&]() -> Awaitable<> {
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(ask(first));
      co_await env_.clock.sleep_for(500ms);
      // The list of the first question has been made, and is not answered yet.
      co_await put_host("c1", "host");
      scope.spawn(ask(second));
    };
    co_await async::with_scope(both);
  });
  EXPECT_EQ(first, 0U);
  EXPECT_EQ(second, 1U);
}

TEST_F(SharedLooksTest, ACallerThatIsCancelledLeavesTheListToTheNext) {
  LateLists late{hub1_->server.api(), env_.clock};
  HubWideRights rights{late, env_.clock};
  SharedLooks looks{late, rights, env_.clock};
  bool answered = false;
  auto ask_later = [&]() -> Awaitable<> {
    co_await env_.clock.sleep_for(100ms);
    const auto all = co_await looks.all_on_hub(ocm::bare_metal_hosts);
    EXPECT_NE(all, nullptr);
    answered = true;
  };
  auto ask_in_vain = [&]() -> Awaitable<> { co_await looks.all_on_hub(ocm::bare_metal_hosts); };
  run([&]() -> Awaitable<> {
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      auto first = async::before_deadline(env_.clock, env_.clock.now() + 500ms, ask_in_vain());
      scope.spawn(ask_later());
      const bool in_time = co_await std::move(first);
      EXPECT_FALSE(in_time);
    };
    co_await async::with_scope(both);
  });
  EXPECT_TRUE(answered);
}

TEST_F(SharedLooksTest, AHubWithManyObjectsOfAKindIsListedByNamespace) {
  run([&]() -> Awaitable<> {
    for (int i = 0; i < 25; ++i) co_await put_host(i < 2 ? "c1" : "c2", "host-" + std::to_string(i));
    for (int i = 0; i < 5; ++i) co_await expect_hosts("c1", 2);
  });
  EXPECT_EQ(lists(true), 1U) << "and not tried again at once";
  EXPECT_EQ(lists(false), 5U);
}

TEST_F(SharedLooksTest, WhoMayNotListTheWholeHubListsTheNamespaceAndIsNeverRefused) {
  const sim::User account{"system:serviceaccount:hubferry-system:hubferry-hub", {"system:serviceaccounts"}, ""};
  run([&]() -> Awaitable<> {
    co_await put_host("c1", "host");
    auto binding = parsed(R"({"metadata":{"name":"hubferry","namespace":"c1"},
        "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"hosts"},
        "subjects":[{"kind":"ServiceAccount","name":"hubferry-hub","namespace":"hubferry-system"}]})");
    auto role = parsed(R"({"metadata":{"name":"hosts"},
        "rules":[{"apiGroups":["metal3.io"],"resources":["baremetalhosts"],"verbs":["list"]}]})");
    co_await put(*hub1_, kube::resources::cluster_roles, std::move(role));
    co_await put(*hub1_, kube::resources::role_bindings, std::move(binding));
    const auto restricted = hub1_->server.api_as(account);
    HubWideRights rights{*restricted, env_.clock};
    SharedLooks looks{*restricted, rights, env_.clock};
    auto ask = [&]() -> Awaitable<> {
      const auto all = co_await looks.all_on_hub(ocm::bare_metal_hosts);
      EXPECT_EQ(all, nullptr);
    };
    auto at_once = [&](async::TaskScope& scope) -> Awaitable<> {
      for (int i = 0; i < 5; ++i) scope.spawn(ask());
      co_return;
    };
    co_await async::with_scope(at_once);
  });
  EXPECT_EQ(lists(true), 0U);
  const auto reviews = std::ranges::count_if(hub1_->server.requests(), [](const auto& request) {
    return request.resource.starts_with("selfsubjectaccessreviews");
  });
  EXPECT_EQ(reviews, 1) << "one for all that ask at once, and for those after them";
}

TEST_F(SharedLooksTest, AListThatFailsIsReplacedByThoseOfTheNamespaces) {
  hub1_->server.faults().on({"list", "baremetalhosts"}).times(1).fail(403);
  run([&]() -> Awaitable<> {
    co_await put_host("c1", "host");
    for (int i = 0; i < 5; ++i) co_await expect_hosts("c1", 1);
  });
  EXPECT_EQ(lists(true), 1U);
  EXPECT_EQ(lists(false), 5U);
}

}  // namespace
}  // namespace hubferry::hubagent
