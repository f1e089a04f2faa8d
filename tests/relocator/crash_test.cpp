#include "dying_api.hpp"
#include "relocator_test.hpp"

/// The process dies at every possible point, and its successor finishes the move.
namespace hubferry::relocator::test {
namespace {

class CrashTest : public RelocatorTest {
 protected:
  kube::Api& api() override { return dying; }
  hubs::Connect connect() override {
    return [this](const std::string&, const kube::ClientConfig& config) -> std::shared_ptr<kube::Api> {
      return std::make_shared<DyingApi>(network.connect(config), death);
    };
  }

  void begin(const std::string& name) {
    given_deployment("", R"(, "manageDNS": true)", name);
    create(ocm::dns_zones,
           R"({"metadata": {"name": ")" + name + R"(-zone", "namespace": "prod"}, "spec": {"linkToParentDomain": true},
                               "status": {"nameServers": ["ns1"]}})");
    create(kube::resources::secrets, R"({"metadata": {"name": ")" + name + R"(-kubeconfig", "namespace": "prod"}})");
    create(ocm::machine_pools, R"({"metadata": {"name": ")" + name + R"(-worker", "namespace": "prod"},
                                   "spec": {"clusterDeploymentRef": {"name": ")" +
                                   name + R"("}}})");
    death.writes = 0;
  }
  /// Runs until the process dies or the move is over; then there is a new process.
  bool live_until_death(const std::string& name) {
    live([&]() -> Awaitable<> {
      co_await holds([&] { return death.dead.is_set() || has_moved(name); });
      death.buried.set();
    });
    const bool died = death.dead.is_set();
    death.at = 0;
    death.dead.reset();
    death.buried.reset();
    return died;
  }
  void expect_arrived(const std::string& name) {
    expect_moved(name);
    const auto copy = on_destination(ocm::cluster_deployments, name);
    EXPECT_EQ(annotation(copy, "hive.openshift.io/relocate"), "-");
    EXPECT_TRUE(on_destination(ocm::dns_zones, name + "-zone"));
    EXPECT_EQ(annotation(on_destination(ocm::dns_zones, name + "-zone"), "hive.openshift.io/relocate"), "-");
    EXPECT_TRUE(on_destination(kube::resources::secrets, name + "-kubeconfig"));
    EXPECT_TRUE(on_destination(ocm::machine_pools, name + "-worker"));
    EXPECT_FALSE(on_source(ocm::dns_zones, name + "-zone"));
  }

  Death death;
  DyingApi dying{std::shared_ptr<kube::Api>{std::shared_ptr<void>{}, &source.server.api()}, death};
};

TEST_F(CrashTest, ACrashAtAnyWriteEndsInTheSameMoveWithOneOwnerAndNoDeprovision) {
  given_secret();
  given_relocator();
  begin("c0");
  live_until([&] { return has_moved("c0"); });
  const auto writes = death.writes;
  EXPECT_GE(writes, 14u);
  live_for(1min);
  expect_arrived("c0");
  int number = 1;
  std::size_t deaths = 0;
  for (const auto moment : {Death::Moment::before, Death::Moment::after}) {
    for (std::size_t write = 1; write <= writes; ++write) {
      const auto name = "c" + std::to_string(number++);
      SCOPED_TRACE(name + ": write " + std::to_string(write) +
                   (moment == Death::Moment::after ? ", after" : ", before"));
      death.at = write;
      death.moment = moment;
      begin(name);
      deaths += live_until_death(name) ? 1 : 0;
      live_until([&] { return has_moved(name); });
      live_for(5s);
      expect_arrived(name);
      if (HasFailure()) return;
    }
  }
  // The number of writes differs a little with the conflicts between the controllers.
  EXPECT_GE(deaths, 2 * writes - 8);
}

TEST_F(CrashTest, ACrashAtAnyWriteAndADeletionByTheUserNeverDeprovisionsAClusterThatTheDestinationHas) {
  given_secret();
  given_relocator();
  begin("c0");
  live_until([&] { return has_moved("c0"); });
  const auto writes = death.writes;
  int number = 1;
  for (const auto moment : {Death::Moment::before, Death::Moment::after}) {
    for (std::size_t write = 1; write <= writes; ++write) {
      const auto name = "c" + std::to_string(number++);
      SCOPED_TRACE(name + ": write " + std::to_string(write) +
                   (moment == Death::Moment::after ? ", after" : ", before"));
      death.at = write;
      death.moment = moment;
      begin(name);
      live_until_death(name);
      if (!is_on_source(name)) continue;
      const bool arrived = is_on_destination(name);
      remove(ocm::cluster_deployments, {"prod", name});
      live_until([&] { return !is_on_source(name); });
      live_for(2min);
      // Either it was destroyed as the user wanted it, or the destination has it: never both, and never neither.
      EXPECT_EQ(source.hive.count("deprovision prod/" + name), arrived ? 0u : 1u);
      EXPECT_EQ(is_on_destination(name), arrived);
      if (HasFailure()) return;
    }
  }
}

TEST_F(RelocatorTest, TwoManagersAtOnceMoveEachClusterDeploymentOnce) {
  managers = 2;
  given_secret();
  given_relocator();
  for (int i = 0; i < 10; ++i) given_deployment("", "", "c" + std::to_string(i));
  live_until([&] {
    for (int i = 0; i < 10; ++i)
      if (!has_moved("c" + std::to_string(i))) return false;
    return true;
  });
  live_for(1min);
  for (int i = 0; i < 10; ++i) expect_moved("c" + std::to_string(i));
}

TEST_F(RelocatorTest, AnAnswerThatIsLostChangesNothing) {
  given_move();
  for (auto* server : {&source.server, &destination.server})
    server->faults().on({.verb = "write"}).rate(0.3).reset_after();
  live_until([&] { return has_moved(); });
  for (auto* server : {&source.server, &destination.server}) server->faults().clear();
  live_for(5min);
  expect_moved();
}

}  // namespace
}  // namespace hubferry::relocator::test
