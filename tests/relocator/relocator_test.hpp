#pragma once

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/relocator/controller.hpp"
#include "hubferry/relocator/plan.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/hive_controllers.hpp"
#include "hubferry/sim/network.hpp"
#include "support/edge_coverage.hpp"

namespace hubferry::relocator::test {

namespace json = boost::json;
using async::Awaitable;
using kube::Key;
using kube::Object;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace std::chrono_literals;

/// The transitions that the tests of this program have taken.
phase::EdgeCoverage& edge_coverage();

/// To be installed on a hub: a test that needs only these is faster.
sim::CrdSelection kinds_of_hive();

/// A hub with Hive.
struct HiveHub {
  HiveHub(const std::string& name, kube::Env env, sim::HiveOptions options)
      : server({.name = name}, env), hive(server.api(), std::move(options), env) {}

  sim::Server server;
  sim::HiveControllers hive;
};

/// Two hubs with Hive, `source` and `destination`, and a controller on the source. The ClusterDeployment `prod/c1`,
/// its objects and the kubeconfig of the destination are made by given_…().
class RelocatorTest : public testing::Test {
 protected:
  explicit RelocatorTest(sim::HiveOptions hive = {});

  /// Runs `script` beside the controllers, then ends them.
  template <typename Script>
  void live(Script script) {
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      auto work = [&](async::TaskScope& workers) -> Awaitable<> {
        workers.spawn(record_history());
        workers.spawn(record_zones());
        workers.spawn(source.hive.run());
        workers.spawn(destination.hive.run());
        std::vector<std::unique_ptr<Controller>> controllers;
        for (std::size_t i = 0; i < managers; ++i)
          controllers.push_back(std::make_unique<Controller>(api(), connect(), options, env));
        std::unique_ptr<Controller> at_destination;
        if (manager_on_destination)
          at_destination = std::make_unique<Controller>(destination.server.api(), connect(), options, env);
        auto inner = [&](async::TaskScope& running) -> Awaitable<> {
          for (auto& controller : controllers) running.spawn(controller->run());
          if (at_destination) running.spawn(at_destination->run());
          co_await script();
          running.stop();
        };
        co_await async::with_scope(inner);
        workers.stop();
      };
      co_await async::with_scope(work);
      scope.stop();
    };
    loop.run(async::with_scope(body));
  }
  void live_for(async::Duration span) {
    live([&, span]() -> Awaitable<> { co_await sleep(span); });
  }
  /// Until the condition holds; fails the test after two hours of virtual time.
  void live_until(std::function<bool()> condition) {
    live([&]() -> Awaitable<> { co_await holds(condition); });
  }
  Awaitable<> holds(std::function<bool()> condition);
  Awaitable<> sleep(async::Duration span) { return loop.clock().sleep_for(span); }

  /// Creates an object from JSON, on the source unless said otherwise. Labels, annotations, status are in the text.
  void create(const kube::Resource& kind, const std::string& text, sim::Server* on = nullptr);
  void given_deployment(const std::string& more_metadata = "", const std::string& more_spec = "",
                        const std::string& name = "c1");
  /// Moves what is labelled hive-instance=hive2 (or `label`) to the destination.
  void given_relocator(const std::string& name = "r1", const std::string& label = "hive2", bool whole = false,
                       const std::string& secret = "to-destination");
  void given_secret(const std::string& name = "to-destination", const std::string& kubeconfig = "");
  /// Everything that a usual move needs.
  void given_move(const std::string& more_spec = "");
  /// The uid of its kube-system.
  static std::string identity(sim::Server& server);
  void change(const kube::Resource& kind, const Key& key, const std::string& merge_patch, sim::Server* on = nullptr);
  void remove(const kube::Resource& kind, const Key& key, sim::Server* on = nullptr);

  std::optional<Object> on_source(const kube::Resource& kind, const std::string& name, const std::string& ns = "prod") {
    return source.server.object(kind, {kind.namespaced ? ns : "", name});
  }
  std::optional<Object> on_destination(const kube::Resource& kind, const std::string& name,
                                       const std::string& ns = "prod") {
    return destination.server.object(kind, {kind.namespaced ? ns : "", name});
  }
  bool is_on_source(const std::string& name = "c1") { return on_source(ocm::cluster_deployments, name).has_value(); }
  bool is_on_destination(const std::string& name = "c1") {
    return on_destination(ocm::cluster_deployments, name).has_value();
  }
  bool has_moved(const std::string& name = "c1") { return is_on_destination(name) && !is_on_source(name); }
  /// "True MoveFailed: message", or "none".
  std::string condition(const std::string& name = "c1");
  /// "name" of the annotation with that key; "-" if there is none.
  static std::string annotation(const std::optional<Object>& object, const std::string& key);
  std::vector<std::string> events(const std::string& reason);
  double metric(const std::string& name, const std::string& relocator, const std::string& reason = "");
  /// The writes to a server other than events, as "verb resource".
  std::vector<std::string> writes(sim::Server& server);

  /// One owner, nothing destroyed, and nothing of the relocation left.
  void expect_moved(const std::string& name = "c1");
  void expect_untouched(const std::string& name = "c1");
  void expect_no_deprovision();

  /// Records what a watcher of the source sees: "c1: Unknown Initialized, relocating, relocated, Hive's annotation".
  Awaitable<> record_history() { return record(ocm::cluster_deployments); }
  Awaitable<> record_zones() { return record(ocm::dns_zones); }
  Awaitable<> record(kube::Resource kind);

  virtual kube::Api& api() { return source.server.api(); }
  virtual hubs::Connect connect();

  async::VirtualLoop loop;
  async::Random random{7};
  obs::Metrics metrics;
  obs::LogCapture log{{.format = obs::LogFormat::text, .level = obs::Level::info, .clock = &loop.clock()}};
  kube::Env env{loop.clock(), random, metrics, log.logger()};
  kube::Env quiet{loop.clock(), random, metrics, obs::Logger{}};
  HiveHub source;
  HiveHub destination;
  sim::Network network;
  ControllerOptions options;
  std::vector<std::string> history;
  std::size_t managers = 1;
  bool manager_on_destination = false;
};

}  // namespace hubferry::relocator::test
