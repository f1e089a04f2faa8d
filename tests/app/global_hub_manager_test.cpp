#include "app/manager/global_hub_manager.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "hubferry/async/task_scope.hpp"
#include "sim/sim_test.hpp"

namespace hubferry::app {
namespace {

using namespace std::chrono_literals;
using sim::Awaitable;
using testing::HasSubstr;

const kube::Resource global_hubs{"operator.open-cluster-management.io", "v1alpha4", "multiclusterglobalhubs",
                                 "MulticlusterGlobalHub", true};

/// A global hub, on which multicluster-global-hub may be installed.
class BesideGlobalHub : public testing::Test {
 protected:
  Awaitable<> install_operator() {
    auto created = co_await api_.create(
        kube::resources::custom_resource_definitions,
        kube::json::parse(R"({"metadata":{"name":"multiclusterglobalhubs.operator.open-cluster-management.io"},
          "spec":{"group":"operator.open-cluster-management.io","scope":"Namespaced",
            "names":{"plural":"multiclusterglobalhubs","kind":"MulticlusterGlobalHub"},
            "versions":[{"name":"v1alpha4","served":true,"storage":true,
              "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})")
            .as_object());
    EXPECT_TRUE(created) << created.error();
    co_await env_.clock.sleep_for(1s);
  }
  Awaitable<> install_instance() {
    auto created = co_await api_.create(
        global_hubs, kube::json::parse(R"({"metadata":{"name":"mgh","namespace":"default"}})").as_object());
    EXPECT_TRUE(created) << created.error();
  }
  Awaitable<> uninstall_instance() {
    auto removed = co_await api_.remove(global_hubs, {"default", "mgh"});
    EXPECT_TRUE(removed) << removed.error();
  }
  /// Runs the controller beside `script`.
  void run(std::function<Awaitable<>()> script, kube::Api* as = nullptr) {
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      auto work = [this]() -> Awaitable<> {
        readiness_.pass();
        ++starts_;
        struct Ending {
          bool& running;
          ~Ending() { running = false; }
        } const ending{running_ = true};
        co_await env_.clock.sleep_for(24h);
      };
      scope.spawn(while_no_global_hub_manager(as != nullptr ? *as : api_, env_, readiness_, work));
      co_await script();
      scope.stop();
    };
    loop_.run(async::with_scope(body));
  }
  std::string why_not_ready() const {
    const auto reason = readiness_.check()();
    return reason.value_or("");
  }

  async::VirtualLoop loop_;
  async::Random random_{7};
  obs::Metrics metrics_;
  kube::Env env_{loop_.clock(), random_, metrics_, obs::Logger{}};
  sim::Server server_{sim::Options{}, env_};
  kube::Api& api_ = server_.api();
  obs::CheckState readiness_{"not started"};
  bool running_ = false;
  int starts_ = 0;
};

TEST_F(BesideGlobalHub, TheControllerRunsWhereItIsNotInstalled) {
  run([&]() -> Awaitable<> {
    co_await env_.clock.sleep_for(1s);
    EXPECT_TRUE(running_);
    // The operator alone does nothing.
    co_await install_operator();
    co_await env_.clock.sleep_for(5min);
    EXPECT_TRUE(running_);
    EXPECT_EQ(starts_, 1);
  });
}

TEST_F(BesideGlobalHub, NoMigrationIsTouchedWhileItIsInstalled) {
  run([&]() -> Awaitable<> {
    co_await install_operator();
    co_await install_instance();
    co_await env_.clock.sleep_for(2min);
    EXPECT_FALSE(running_) << "it was installed while the controller ran";
    EXPECT_THAT(why_not_ready(), HasSubstr("MulticlusterGlobalHub default/mgh is installed"));
    co_await uninstall_instance();
    co_await env_.clock.sleep_for(15s);
    EXPECT_TRUE(running_);
    EXPECT_EQ(why_not_ready(), "");
  });
}

TEST_F(BesideGlobalHub, TheControllerIsNotStartedWhereItIsInstalledAlready) {
  loop_.run(install_operator());
  loop_.run(install_instance());
  run([&]() -> Awaitable<> { co_await env_.clock.sleep_for(5min); });
  EXPECT_EQ(starts_, 0);
}

TEST_F(BesideGlobalHub, WhatMayNotBeListedCountsAsInstalled) {
  loop_.run(install_operator());
  const auto stranger = server_.api_as({"stranger", {}, ""});
  run([&]() -> Awaitable<> { co_await env_.clock.sleep_for(5min); }, stranger.get());
  EXPECT_EQ(starts_, 0);
  EXPECT_THAT(why_not_ready(), HasSubstr("may not list: apply manifests/base"));
}

}  // namespace
}  // namespace hubferry::app
