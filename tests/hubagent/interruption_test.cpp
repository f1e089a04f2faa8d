#include "hub_test.hpp"

namespace hubferry::hubagent {
namespace {

/// Interrupts an operation at every request, and repeats it: the result must be the same as that of an operation that
/// was not interrupted.
class InterruptionTest : public HubTest {
 protected:
  /// Runs `operation`, interrupting it at its n-th request. True if it completed before.
  Awaitable<bool> interrupted(TestHub& hub, std::size_t number, bool after_effect,
                              std::function<Awaitable<bool>()> operation) {
    bool ended = false;
    auto task = [&]() -> Awaitable<> {
      const bool good = co_await operation();
      EXPECT_TRUE(good);
      ended = true;
    };
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      hub.api->interrupt_at(number, after_effect, [&] { scope.stop(); });
      co_await task();
      scope.stop();
    };
    co_await async::with_scope(body);
    hub.api->never_interrupt();
    co_return ended;
  }

  /// For each request: new hubs, `prepare`, the interrupted operation, the operation again, and a comparison of both
  /// hubs.
  void interrupt_at_every_request(TestHub& (*which)(InterruptionTest&), std::function<Awaitable<>()> prepare,
                                  std::function<Awaitable<bool>()> operation) {
    std::optional<std::pair<Content, Content>> expected;
    for (const bool after_effect : {false, true}) {
      bool ended = false;
      std::size_t number = 0;
      while (!ended) {
        ++number;
        reset();
        run([&]() -> Awaitable<> {
          co_await prepare();
          co_await clock_.sleep_for(1s);
          // The first round is not interrupted: it produces the expected result.
          if (expected) ended = co_await interrupted(which(*this), number, after_effect, operation);
          const bool good = co_await operation();
          EXPECT_TRUE(good);
          co_await clock_.sleep_for(1s);
        });
        auto end = std::pair{content_of(hub1_->server), content_of(hub2_->server)};
        if (!expected) {
          expected = std::move(end);
          number = 0;
          continue;
        }
        EXPECT_THAT(differences(expected->first, end.first), IsEmpty()) << "hub1, interrupted at request " << number;
        EXPECT_THAT(differences(expected->second, end.second), IsEmpty()) << "hub2, interrupted at request " << number;
        if (HasFailure() || number > 300) return;
      }
      EXPECT_GT(number, 2U);
    }
  }

  static TestHub& source(InterruptionTest& test) { return *test.hub1_; }
  static TestHub& target(InterruptionTest& test) { return *test.hub2_; }
  static bool all_done(const Result<Outcome>& outcome) { return outcome && outcome->failed.empty(); }

  Awaitable<> two_clusters() {
    for (const char* name : {"c1", "c2"}) {
      co_await put_cluster(*hub1_, name);
      co_await put_machinery(*hub1_, name);
    }
  }

  /// A hub that deletes the namespaces of clusters that are gone, until cancelled.
  Awaitable<> delete_namespaces() {
    for (;; co_await clock_.sleep_for(1s)) {
      for (const auto& name : names_) {
        if (exists(*hub1_, ocm::managed_clusters, {{}, name}) ||
            !exists(*hub1_, kube::resources::namespaces, {{}, name}))
          continue;
        EXPECT_FALSE(exists(*hub1_, ocm::cluster_deployments, {name, name})) << "it would keep the namespace";
        co_await hub1_->server.api().merge_patch(ocm::bare_metal_hosts, {name, "host"},
                                                 parsed(R"({"metadata": {"finalizers": null}})"));
        co_await hub1_->server.api().remove(kube::resources::namespaces, {{}, name});
      }
    }
  }

  /// A hub that creates leases, and clusters that renew them.
  Awaitable<> keep_alive() {
    auto& api = hub1_->server.api();
    while (true) {
      for (const auto& name : names_) {
        json::object lease;
        lease["metadata"] = json::object{{"name", ocm::names::cluster_lease}, {"namespace", name}};
        lease["spec"] = json::object{{"renewTime", async::format_micro_time(clock_.wall_now())}};
        auto beaten = co_await api.merge_patch(kube::resources::leases, {name, ocm::names::cluster_lease}, lease);
        if (!beaten) co_await api.create(kube::resources::leases, lease);
      }
      co_await clock_.sleep_for(5s);
    }
  }

  const ClusterNames names_{"c1", "c2"};
  Bundle bundle_;
};

TEST_F(InterruptionTest, InitializingOnTheSource) {
  interrupt_at_every_request(
      source, [&] { return two_clusters(); },
      [&]() -> Awaitable<bool> {
        auto outcome = co_await hub1_->source->initialize(migration_, names_, kubeconfig_);
        co_return all_done(outcome);
      });
}

TEST_F(InterruptionTest, CleaningOnTheSource) {
  interrupt_at_every_request(
      source,
      [&]() -> Awaitable<> {
        co_await two_clusters();
        co_await hub1_->source->initialize(migration_, names_, kubeconfig_);
        co_await hub1_->source->detach(migration_, names_);
      },
      [&]() -> Awaitable<bool> {
        Result<Outcome> outcome{Outcome{}};
        auto clean = [&](async::TaskScope& scope) -> Awaitable<> {
          scope.spawn(delete_namespaces());
          outcome = co_await hub1_->source->clean(migration_, names_, confirmed());
          scope.stop();
        };
        co_await async::with_scope(clean);
        auto deleted = co_await hub1_->source->delete_migration_objects(migration_);
        co_return all_done(outcome) && deleted.has_value();
      });
}

TEST_F(InterruptionTest, RollingBackOnTheSource) {
  interrupt_at_every_request(
      source,
      [&]() -> Awaitable<> {
        co_await two_clusters();
        co_await hub1_->source->initialize(migration_, names_, kubeconfig_);
      },
      [&]() -> Awaitable<bool> {
        auto outcome = co_await hub1_->source->roll_back(migration_, Stage::deploying, names_);
        auto deleted = co_await hub1_->source->delete_migration_objects(migration_);
        co_return all_done(outcome) && deleted.has_value();
      });
}

TEST_F(InterruptionTest, RollingBackDetachedClusters) {
  interrupt_at_every_request(
      source,
      [&]() -> Awaitable<> {
        co_await two_clusters();
        co_await hub1_->source->initialize(migration_, names_, kubeconfig_);
        co_await hub1_->source->detach(migration_, names_);
      },
      [&]() -> Awaitable<bool> {
        bool good = false;
        auto body = [&](async::TaskScope& scope) -> Awaitable<> {
          scope.spawn(keep_alive());
          auto outcome = co_await hub1_->source->roll_back(migration_, Stage::registering, names_);
          good = all_done(outcome);
          scope.stop();
        };
        co_await async::with_scope(body);
        for (const auto& name : names_)
          co_await hub1_->server.api().remove(kube::resources::leases, {name, ocm::names::cluster_lease});
        co_return good;
      });
}

TEST_F(InterruptionTest, InitializingAndDeletingObjectsOnTheTarget) {
  interrupt_at_every_request(
      target, []() -> Awaitable<> { co_return; },
      [&]() -> Awaitable<bool> {
        auto token = co_await hub2_->target->issue_token(migration_, identity_);
        auto begun = co_await hub2_->target->initialize(migration_, identity_);
        auto permitted = co_await hub2_->target->permit_registration(migration_, identity_);
        co_return token.has_value() && begun.has_value() && permitted.has_value();
      });
  interrupt_at_every_request(
      target,
      [&]() -> Awaitable<> {
        co_await hub2_->target->issue_token(migration_, identity_);
        co_await hub2_->target->initialize(migration_, identity_);
        co_await hub2_->target->permit_registration(migration_, identity_);
      },
      [&]() -> Awaitable<bool> {
        auto removed = co_await hub2_->target->delete_migration_objects(migration_, identity_);
        co_return removed.has_value();
      });
}

TEST_F(InterruptionTest, DeployingOnTheTarget) {
  interrupt_at_every_request(
      target,
      [&]() -> Awaitable<> {
        co_await two_clusters();
        bundle_ = co_await collected(*hub1_, names_);
      },
      [&]() -> Awaitable<bool> {
        auto outcome = co_await hub2_->target->deploy(migration_, bundle_);
        co_return all_done(outcome);
      });
}

TEST_F(InterruptionTest, RollingBackOnTheTarget) {
  interrupt_at_every_request(
      target,
      [&]() -> Awaitable<> {
        co_await two_clusters();
        bundle_ = co_await collected(*hub1_, names_);
        co_await hub2_->target->deploy(migration_, bundle_);
      },
      [&]() -> Awaitable<bool> {
        auto outcome = co_await hub2_->target->roll_back(migration_, Stage::registering, names_);
        co_return all_done(outcome);
      });
}

TEST_F(InterruptionTest, CleaningOnTheTarget) {
  interrupt_at_every_request(
      target,
      [&]() -> Awaitable<> {
        co_await two_clusters();
        bundle_ = co_await collected(*hub1_, names_);
        co_await hub2_->target->deploy(migration_, bundle_);
      },
      [&]() -> Awaitable<bool> {
        auto outcome = co_await hub2_->target->clean(migration_, names_);
        co_return all_done(outcome);
      });
}

}  // namespace
}  // namespace hubferry::hubagent
