#pragma once

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "fake_hubs.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/migration/controller.hpp"
#include "hubferry/migration/resource.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/server.hpp"
#include "support/coroutine_test.hpp"
#include "support/edge_coverage.hpp"

namespace hubferry::migration::test {

namespace json = boost::json;
using kube::Key;
using testing::HasSubstr;
using testing::Not;

/// A simulated global hub, two hubs in memory with three clusters on the first, and a controller between them.
class MigrationTest : public testing::Test {
 protected:
  MigrationTest();

  /// Runs `script` beside a controller and the clusters' agents, then ends them.
  template <typename Script>
  void live(Script script) {
    auto body = [&](async::TaskScope& scope) -> Awaitable<> {
      Controller controller{api(), hubs, options, env};
      auto work = [&](async::TaskScope& workers) -> Awaitable<> {
        workers.spawn(controller.run());
        workers.spawn(hubs.fleet());
        co_await script();
        workers.stop();
      };
      co_await async::with_scope(work);
      scope.stop();
    };
    loop.run(async::with_scope(body));
  }
  /// Until the migration is in that phase.
  void live_until(const std::string& name, const std::string& phase) {
    live([&]() -> Awaitable<> { co_await reaches(name, phase); });
  }

  /// A migration of the clusters from hub1 to hub2; `more` is merged into its spec.
  Awaitable<> create(std::string name, ClusterNames clusters, json::object more = {}, std::string ns = "default");
  /// The same before anything runs.
  void given(const std::string& name, ClusterNames clusters, json::object more = {}, std::string ns = "default");
  Awaitable<> remove(std::string name);
  Awaitable<> annotate(std::string name, std::string key, std::string value);

  /// Waits on virtual time, and fails the test after a day of it.
  Awaitable<> reaches(std::string name, std::string phase, std::string ns = "default");
  Awaitable<> vanishes(std::string name, std::string ns = "default");
  Awaitable<> holds(std::function<bool()> condition);
  /// The agents of all clusters that are Available on the hub renew their leases there until the phase has ended.
  Awaitable<> renew_leases(std::string hub, std::string name, std::string during);
  Awaitable<> sleep(Duration span) { return loop.clock().sleep_for(span); }

  kube::Object migration(const std::string& name, const std::string& ns = "default");
  bool exists(const std::string& name, const std::string& ns = "default");
  std::string phase(const std::string& name, const std::string& ns = "default");
  /// "True ResourceCleaned: message".
  std::string condition(const std::string& name, const std::string& type);
  std::int64_t clusters(const std::string& name, const std::string& count);
  /// A list of the migration's ConfigMap.
  std::vector<std::string> listed(const std::string& name, const std::string& key);
  std::vector<std::string> events(const std::string& reason);

  /// The hubs as users see them: which clusters are Available where, and that nothing else is left.
  std::set<std::string> available_on(const std::string& hub);
  void expect_nothing_left(const std::string& name);
  void expect_moved(const std::string& name, const std::set<std::string>& moved, const std::set<std::string>& stayed);

  virtual kube::Api& api() { return global.api(); }

  async::VirtualLoop loop;
  async::Random random{7};
  obs::Metrics metrics;
  obs::LogCapture log{{.format = obs::LogFormat::text, .level = obs::Level::info, .clock = &loop.clock()}};
  kube::Env env{loop.clock(), random, metrics, log.logger()};
  sim::Server global{sim::Options{}, {loop.clock(), random, metrics, obs::Logger{}}};
  FakeHubs hubs{loop.clock()};
  ControllerOptions options;
};

/// The transitions that the tests of this program have taken: edges_test.cpp holds them against the definition.
phase::EdgeCoverage& edge_coverage();

}  // namespace hubferry::migration::test
