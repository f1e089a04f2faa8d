#include "hubferry/hubs/hub_directory.hpp"

#include <gmock/gmock.h>

#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/virtual_world.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::hubs {
namespace {

namespace json = kube::json;
using async::Awaitable;
using hubagent::ClusterNames;
using hubagent::FailureReason;
using hubagent::Outcome;
using hubagent::Result;
using hubagent::SourceHub;
using hubagent::TargetHub;
using kube::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

const hubagent::MigrationRef migration{"default", "move", "uid-1"};

/// A client whose lists and watches throw `faults` times, as one that ran out of memory does.
class ThrowingApi final : public kube::Api {
 public:
  ThrowingApi(std::shared_ptr<kube::Api> inner, int& faults) : inner_(std::move(inner)), faults_(faults) {}

  Awaitable<kube::Result<kube::Object>> call(kube::Request request) override {
    return inner_->call(std::move(request));
  }
  Awaitable<kube::Result<kube::ListPage>> list(kube::Resource resource, kube::ListOptions options,
                                               const kube::Decoder& decoder) override {
    throw_fault();
    return inner_->list(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<std::unique_ptr<kube::WatchStream>>> watch(kube::Resource resource, kube::WatchOptions options,
                                                                    const kube::Decoder& decoder) override {
    throw_fault();
    return inner_->watch(std::move(resource), std::move(options), decoder);
  }
  Awaitable<kube::Result<json::value>> get_path(std::string path) override {
    // Else the check whether the hub answers again would be a race between two jittered backoffs.
    kube::Error silent;
    silent.kind = kube::ErrorKind::unreachable;
    if (faults_ > 0) co_return silent;
    co_return co_await inner_->get_path(std::move(path));
  }
  [[nodiscard]] std::string_view name() const override { return inner_->name(); }

 private:
  void throw_fault() {
    if (faults_ > 0 && faults_-- > 0) throw std::bad_alloc{};
  }
  std::shared_ptr<kube::Api> inner_;
  int& faults_;
};

class HubDirectoryTest : public testing::Test {
 protected:
  HubDirectoryTest() {
    world_.spawn(directory_.run());
    world_.run_for(1s);
  }
  ~HubDirectoryTest() override { world_.stop(); }

  kube::Api& global() { return world_.global().api(); }

  Awaitable<> put_secret(std::string hub, std::string kubeconfig) {
    json::object patch;
    patch["data"] = json::object{{"kubeconfig", kube::encode_base64(kubeconfig)}};
    auto patched = co_await global().merge_patch(kube::resources::secrets, {hub, "hub-kubeconfig"}, patch);
    EXPECT_TRUE(patched) << patched.error();
    co_await world_.clock().sleep_for(1s);
  }
  Awaitable<Result<Outcome>> initialize_source(std::string hub, ClusterNames clusters) {
    auto operation = [clusters = std::move(clusters)](SourceHub& source) {
      return source.initialize(migration, clusters, obs::Secret{"kubeconfig"});
    };
    return on_source(directory_, std::move(hub), std::move(operation));
  }
  Awaitable<Result<Outcome>> validate_source(std::string hub, ClusterNames clusters) {
    auto operation = [clusters = std::move(clusters)](SourceHub& source) {
      return source.validate(migration, clusters);
    };
    return on_source(directory_, std::move(hub), std::move(operation));
  }
  Awaitable<Result<Outcome>> validate_target(std::string hub, ClusterNames clusters) {
    auto operation = [clusters = std::move(clusters)](TargetHub& target) {
      return target.validate(migration, clusters);
    };
    return on_target(directory_, std::move(hub), std::move(operation));
  }
  double hubs(const char* way) {
    return world_.env()
        .metrics
        .gauge_family("hubferry_hubs", "Hubs that the global hub knows, by how the manager is connected to them.",
                      {"way"})
        .with({way})
        .value();
  }

  sim::VirtualWorld world_{sim::WorldOptions{.hubs = {"hub1", "hub2"}, .clusters = 3}};
  std::vector<std::string> connected_;
  int faults_of_hub1_ = 0;
  Connect connect_ = [this](const std::string& hub, const kube::ClientConfig& config) {
    connected_.push_back(hub);
    std::shared_ptr<kube::Api> api = world_.network().connect(config);
    if (hub == "hub1") api = std::make_shared<ThrowingApi>(std::move(api), faults_of_hub1_);
    return api;
  };
  HubDirectory directory_{
      global(), connect_, {.hub = {}, .global_server = "https://global", .global_ca_pem = "CA"}, world_.env()};
};

TEST_F(HubDirectoryTest, HubsAreFoundAndConnected) {
  auto test = [&]() -> Awaitable<> {
    auto hub1 = co_await directory_.find("hub1");
    EXPECT_TRUE(hub1.exists && hub1.available && hub1.is_hub);
    EXPECT_THAT(hub1.server_url, HasSubstr("hub1"));
    EXPECT_THAT(hub1.ca_pem, HasSubstr("BEGIN CERTIFICATE"));
    auto none = co_await directory_.find("nowhere");
    EXPECT_FALSE(none.exists || none.available || none.is_hub);
    EXPECT_THAT(connected_, testing::UnorderedElementsAre("hub1", "hub2"));
    EXPECT_EQ(hubs("direct"), 2);
    EXPECT_EQ(hubs("none"), 0);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, AllHubsAreNamedWhetherOrNotTheyCanBeReached) {
  auto test = [&]() -> Awaitable<> {
    auto removed = co_await global().remove(kube::resources::secrets, {"hub2", "hub-kubeconfig"});
    EXPECT_TRUE(removed);
    co_await world_.clock().sleep_for(1s);
    EXPECT_FALSE(directory_.connection("hub2"));
    const auto names = co_await directory_.names();
    EXPECT_THAT(names, testing::ElementsAre("hub1", "hub2"));
  };
  world_.run(test());
}

// Without it, clusters would be given a bootstrap kubeconfig with which they trust nobody, or everybody.
TEST_F(HubDirectoryTest, AnAuthorityThatCannotBeReadIsNotLeftOutSilently) {
  auto test = [&]() -> Awaitable<> {
    world_.global().faults().on({"get", "managedclusters"}).times(1).fail(500);
    auto unread = co_await directory_.find("hub1");
    CO_ASSERT_TRUE(unread.ca_error.has_value());
    auto again = co_await directory_.find("hub1");
    EXPECT_FALSE(again.ca_error.has_value());
    EXPECT_THAT(again.ca_pem, HasSubstr("BEGIN CERTIFICATE"));
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, OperationsRunOnTheHub) {
  auto test = [&]() -> Awaitable<> {
    auto outcome = co_await initialize_source("hub1", world_.world().clusters());
    CO_ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->done.size(), 3U);
    EXPECT_TRUE(world_.server("hub1").object(ocm::klusterlet_configs, {{}, "migration-move"}));
    auto validated = co_await validate_target("hub2", {"new"});
    CO_ASSERT_TRUE(validated);
    EXPECT_THAT(validated->done, ElementsAre("new"));
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, TheErrorForAHubWithoutAConnectionSaysWhatToDo) {
  auto test = [&]() -> Awaitable<> {
    auto unknown = directory_.connection("nowhere");
    CO_ASSERT_TRUE(!unknown);
    EXPECT_EQ(unknown.error().reason(), FailureReason::hub_not_found);
    EXPECT_FALSE(may_recover(unknown.error()));
    EXPECT_TRUE(directory_.connection("hub2"));
    co_await global().remove(kube::resources::secrets, {"hub2", "hub-kubeconfig"});
    co_await world_.clock().sleep_for(1s);
    auto gone = directory_.connection("hub2");
    CO_ASSERT_TRUE(!gone);
    EXPECT_EQ(gone.error().reason(), FailureReason::hub_unreachable);
    EXPECT_TRUE(may_recover(gone.error()));
    EXPECT_THAT(gone.error().message(), HasSubstr("create a Secret in namespace hub2"));
    auto late = co_await validate_target("hub2", {});
    CO_ASSERT_TRUE(!late);
    EXPECT_EQ(late.error().reason(), FailureReason::hub_unreachable);
    EXPECT_EQ(hubs("direct"), 1);
    EXPECT_EQ(hubs("none"), 1);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, AnInvalidKubeconfigIsReportedWithoutItsContent) {
  auto test = [&]() -> Awaitable<> {
    const auto good = kube::to_kubeconfig(world_.world().admin_config("hub1"));
    for (const std::string text : {"token: hunter2: oops", "", "a"}) {
      co_await put_secret("hub1", text);
      auto source = directory_.connection("hub1");
      CO_ASSERT_TRUE(!source);
      EXPECT_THAT(source.error().message(), HasSubstr("Secret hub1/hub-kubeconfig"));
      EXPECT_THAT(source.error().message(), testing::Not(HasSubstr("hunter2")));
    }
    co_await put_secret("hub1", good);
    EXPECT_TRUE(directory_.connection("hub1"));
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, AHubWithoutHttpsIsRefused) {
  auto test = [&]() -> Awaitable<> {
    auto config = world_.world().admin_config("hub1");
    config.server = "http://hub1.example:6443";
    config.ca_pem.clear();
    co_await put_secret("hub1", kube::to_kubeconfig(config));
    auto refused = directory_.connection("hub1");
    CO_ASSERT_TRUE(!refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("is not https"));
  };
  world_.run(test());
}

// A rotated credential must not fail a running operation: it is restarted on the new connection.
TEST_F(HubDirectoryTest, ARunningOperationSurvivesAChangeOfTheSecret) {
  auto test = [&]() -> Awaitable<> {
    const auto clusters = world_.world().clusters();
    world_.server("hub1").faults().on({"patch", "managedclusters"}).times(3).delay(sim::Latency::fixed(1h));
    std::optional<Result<Outcome>> outcome;
    auto operation = [&]() -> Awaitable<> { outcome = co_await initialize_source("hub1", clusters); };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(operation());
      co_await world_.clock().sleep_for(5s);
      EXPECT_FALSE(outcome);
      co_await put_secret("hub1", kube::to_kubeconfig(world_.world().admin_config("hub1")) + "\n");
      co_await world_.clock().sleep_for(30s);
      CO_ASSERT_TRUE(outcome.has_value());
      CO_ASSERT_TRUE(*outcome);
      EXPECT_EQ((*outcome)->done.size(), 3U);
      scope.stop();
    };
    co_await async::with_scope(both);
    EXPECT_THAT(connected_, testing::UnorderedElementsAre("hub1", "hub2", "hub1"));
  };
  world_.run(test());
}

// What was sent over the old connection may take effect as long as an API server works on it. An operation that undoes
// it must come after that.
TEST_F(HubDirectoryTest, WritesOverAConnectionThatWasReplacedAreStillWaitedFor) {
  auto test = [&]() -> Awaitable<> {
    const ClusterNames one{world_.world().clusters().front()};
    world_.server("hub1").faults().on({"patch", "managedclusters"}).times(1).delay(sim::Latency::fixed(1h));
    auto operation = [&]() -> Awaitable<> { (void)co_await initialize_source("hub1", one); };
    auto both = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(operation());
      co_await world_.clock().sleep_for(5s);
      co_await put_secret("hub1", kube::to_kubeconfig(world_.world().admin_config("hub1")) + "\n");
      co_await world_.clock().sleep_for(10s);
      const auto began = world_.clock().now();
      auto accept = [&](SourceHub& source) { return source.accept(migration, one); };
      auto accepted = co_await on_source(directory_, "hub1", accept);
      EXPECT_TRUE(accepted);
      EXPECT_GE(world_.clock().now() - began, 30s);
      scope.stop();
    };
    co_await async::with_scope(both);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, ReachabilityOfAHubIsAMetric) {
  auto reachable = [&] {
    return world_.env()
        .metrics.gauge_family("hubferry_hub_reachable", "Whether a hub answered the last operation.", {"hub"})
        .with({"hub1"})
        .value();
  };
  auto test = [&]() -> Awaitable<> {
    EXPECT_EQ(reachable(), 1);
    world_.server("hub1").outage(true);
    auto unanswered = co_await validate_source("hub1", {});
    EXPECT_FALSE(unanswered);
    EXPECT_EQ(reachable(), 0);
    world_.server("hub1").outage(false);
    co_await world_.clock().sleep_for(1min);
    EXPECT_EQ(reachable(), 1) << "without another operation";
    auto again = co_await validate_source("hub1", {});
    EXPECT_TRUE(again);
    EXPECT_EQ(reachable(), 1);
    co_await global().remove(kube::resources::secrets, {"hub1", "hub-kubeconfig"});
    co_await world_.clock().sleep_for(1s);
    EXPECT_EQ(reachable(), 0);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, WhatIsWrongWithAHubIsKnownWithinTwoSecondsAndForgottenWhenItAnswers) {
  auto test = [&]() -> Awaitable<> {
    auto& server = world_.server("hub1");
    auto operation = [&]() -> Awaitable<> { (void)co_await initialize_source("hub1", world_.world().clusters()); };
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      EXPECT_EQ(directory_.troubles.find("hub1"), "");
      server.outage(true);
      scope.spawn(operation());
      co_await world_.clock().sleep_for(2s);
      EXPECT_THAT(directory_.troubles.find("hub1"), HasSubstr("hub 'hub1' does not answer: "));
      EXPECT_EQ(directory_.troubles.find("hub2"), "");
      server.outage(false);
      co_await world_.clock().sleep_for(1min);
      EXPECT_EQ(directory_.troubles.find("hub1"), "");
      server.faults().on({"get", "managedclusters"}).delay(sim::Latency::fixed(1h));
      server.faults().on({"update", "managedclusters"}).delay(sim::Latency::fixed(1h));
      scope.spawn(operation());
      co_await world_.clock().sleep_for(2s);
      EXPECT_THAT(directory_.troubles.find("hub1"),
                  HasSubstr("hub 'hub1' has not answered a request for more than 1s"));
      scope.stop();
    };
    co_await async::with_scope(body);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, ARejectedCredentialNamesItsSecretAndARepairedOneIsReported) {
  auto test = [&]() -> Awaitable<> {
    const auto good = world_.world().admin_config("hub1");
    auto bad = good;
    bad.token = "expired";
    bad.client_certificate_pem.clear();
    bad.client_key_pem.clear();
    co_await put_secret("hub1", kube::to_kubeconfig(bad));
    auto refused = co_await validate_source("hub1", world_.world().clusters());
    EXPECT_THAT(directory_.troubles.find("hub1"), HasSubstr("rejects the credential of Secret hub1/hub-kubeconfig"));
    bool recovered = false;
    auto wait = [&]() -> Awaitable<> {
      co_await directory_.troubles.recovered();
      recovered = true;
    };
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(wait());
      co_await put_secret("hub1", kube::to_kubeconfig(good));
      EXPECT_TRUE(recovered);
      EXPECT_EQ(directory_.troubles.find("hub1"), "");
      scope.stop();
    };
    co_await async::with_scope(body);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, AHubWhoseSecretNeverWorkedIsNotReachableInTheMetrics) {
  auto test = [&]() -> Awaitable<> {
    EXPECT_THAT(world_.env().metrics.text(), testing::Not(HasSubstr("hubferry_hub_reachable{hub=\"hub9\"}")));
    json::object labels{{ocm::names::deploy_mode_label, "default"}};
    json::object cluster{{"metadata", json::object{{"name", "hub9"}, {"labels", std::move(labels)}}}};
    auto made = co_await global().create(ocm::managed_clusters, std::move(cluster));
    EXPECT_TRUE(made);
    co_await world_.clock().sleep_for(1s);
    EXPECT_THAT(world_.env().metrics.text(), HasSubstr("hubferry_hub_reachable{hub=\"hub9\"} 0"));
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, AnExceptionOutOfOneHubsConnectionIsContained) {
  auto reachable = [&](const char* hub) {
    return world_.env()
        .metrics.gauge_family("hubferry_hub_reachable", "Whether a hub answered the last operation.", {"hub"})
        .with({hub})
        .value();
  };
  auto test = [&]() -> Awaitable<> {
    faults_of_hub1_ = 3;
    co_await put_secret("hub1", kube::to_kubeconfig(world_.world().admin_config("hub1")) + "\n");
    EXPECT_EQ(reachable("hub1"), 0);
    EXPECT_EQ(reachable("hub2"), 1);
    EXPECT_TRUE(directory_.connection("hub2"));
    co_await world_.clock().sleep_for(1min);
    EXPECT_EQ(faults_of_hub1_, 0) << "retried, with a backoff";
    EXPECT_EQ(reachable("hub1"), 1);
    auto outcome = co_await initialize_source("hub1", world_.world().clusters());
    EXPECT_TRUE(outcome);
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, LocalClusterIsTheGlobalHubItself) {
  auto test = [&]() -> Awaitable<> {
    json::object cluster;
    cluster["metadata"] = json::object{{"name", "local"}, {"labels", json::object{{"local-cluster", "true"}}}};
    cluster["spec"] = json::object{{"hubAcceptsClient", true}};
    auto made = co_await global().create(ocm::managed_clusters, cluster);
    CO_ASSERT_TRUE(made);
    co_await world_.clock().sleep_for(1s);
    auto info = co_await directory_.find("local");
    EXPECT_TRUE(info.exists && info.available && info.is_hub);
    EXPECT_EQ(info.server_url, "https://global");
    EXPECT_EQ(info.ca_pem, "CA");
    auto outcome = co_await validate_source("local", {"local", "hub1", "other"});
    CO_ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->failed.size(), 3U) << "itself, a hub, and one that is not there";
  };
  world_.run(test());
}

TEST_F(HubDirectoryTest, AClusterThatIsNotAHubHasNoConnection) {
  auto test = [&]() -> Awaitable<> {
    json::object cluster;
    cluster["metadata"] = json::object{{"name", "plain"}};
    cluster["spec"] = json::object{{"hubAcceptsClient", true}};
    auto made = co_await global().create(ocm::managed_clusters, cluster);
    CO_ASSERT_TRUE(made);
    co_await world_.clock().sleep_for(1s);
    auto info = co_await directory_.find("plain");
    EXPECT_TRUE(info.exists);
    EXPECT_FALSE(info.is_hub);
    EXPECT_FALSE(directory_.connection("plain"));
  };
  world_.run(test());
}

// When the manager stops, no caller may hang in an operation.
TEST_F(HubDirectoryTest, RunningOperationsEndWithTheDirectory) {
  HubDirectory second{global(), connect_, {}, world_.env()};
  auto test = [&]() -> Awaitable<> {
    EXPECT_FALSE(second.connection("hub1")) << "not synced yet";
    std::optional<Result<>> waited;
    auto operation = [&](TargetHub& target) {
      return target.await_arrivals(migration, {"c"}, world_.clock().wall_now(), {[](const std::string&) {}});
    };
    auto wait = [&]() -> Awaitable<> { waited = co_await on_target(second, "hub2", operation); };
    auto outer = [&](async::TaskScope& scope) -> Awaitable<> {
      auto inner = [&](async::TaskScope& life) -> Awaitable<> {
        life.spawn(second.run());
        co_await world_.clock().sleep_for(1s);
        EXPECT_TRUE(second.connection("hub2"));
        scope.spawn(wait());
        co_await world_.clock().sleep_for(10s);
        EXPECT_FALSE(waited);
        life.stop();
      };
      co_await async::with_scope(inner);
    };
    co_await async::with_scope(outer);
    CO_ASSERT_TRUE(waited.has_value());
    EXPECT_FALSE(*waited);
    EXPECT_THAT(waited->error().message(), HasSubstr("stopping"));
    EXPECT_FALSE(second.connection("hub1"));
  };
  world_.run(test());
}

}  // namespace
}  // namespace hubferry::hubs
