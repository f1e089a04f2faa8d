#include "dying_api.hpp"
#include "relocator_test.hpp"

/// The process dies at every possible point, and its successor finishes the move.
namespace hubferry::relocator::test {
namespace {

class CrashTest : public RelocatorTest {
 protected:
  explicit CrashTest(sim::HiveOptions hive = {}) : RelocatorTest(std::move(hive)) {}

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
  }
  /// Runs until the process dies or it is over; then there is a new process.
  bool live_until_death(const std::function<bool()>& is_over) {
    live([&]() -> Awaitable<> {
      co_await holds([&] { return death.dead.is_set() || is_over(); });
      death.buried.set();
    });
    const bool died = death.dead.is_set();
    death.at = 0;
    death.dead.reset();
    death.buried.reset();
    return died;
  }

  /// What is interrupted, for one ClusterDeployment of that name after the other.
  struct Story {
    std::function<void(const std::string&)> begin;
    std::function<bool(const std::string&)> is_over;
    std::function<void(const std::string&)> verify;  // with a new process
  };
  /// A death before and after the first write, the second, and so on, until there is none left. Returns how many.
  std::size_t die_at_every_write(const Story& story) {
    // The number of writes differs a little with the conflicts between the controllers.
    constexpr int without_death = 3;
    std::size_t deaths = 0;
    int number = 1;
    for (const auto moment : {Death::Moment::before, Death::Moment::after}) {
      int survived = 0;
      for (std::size_t write = 1; survived < without_death; ++write) {
        const auto name = "c" + std::to_string(number++);
        SCOPED_TRACE(name + ": write " + std::to_string(write) +
                     (moment == Death::Moment::after ? ", after" : ", before"));
        story.begin(name);
        death.writes = 0;
        death.at = write;
        death.moment = moment;
        const bool died = live_until_death([&] { return story.is_over(name); });
        deaths += died ? 1 : 0;
        survived = died ? 0 : survived + 1;
        story.verify(name);
        if (HasFailure()) return deaths;
      }
    }
    RecordProperty("deaths", static_cast<int>(deaths));
    return deaths;
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

  void expect_same_move_wherever_it_dies() {
    given_secret();
    given_relocator();
    Story move;
    move.begin = [&](const std::string& name) { begin(name); };
    move.is_over = [&](const std::string& name) { return has_moved(name); };
    move.verify = [&](const std::string& name) {
      live_until([&] { return has_moved(name); });
      live_for(20s);
      expect_arrived(name);
      EXPECT_EQ(annotation(on_destination(ocm::cluster_deployments, name), names::confirmed), "true");
    };
    EXPECT_GE(die_at_every_write(move), 20u);
  }

  Death death;
  DyingApi dying{std::shared_ptr<kube::Api>{std::shared_ptr<void>{}, &source.server.api()}, death};
};

/// Without Hive's own relocation controller, which would release arrivals and write the condition too.
class CrashAloneTest : public CrashTest {
 protected:
  CrashAloneTest() : CrashTest({.relocate_controller = false}) {}
};

TEST_F(CrashTest, ACrashAtAnyWriteEndsInTheSameMoveWithOneOwnerAndNoDeprovision) {
  expect_same_move_wherever_it_dies();
}

// Then nobody but the relocator deletes what has moved.
TEST_F(CrashAloneTest, ACrashAtAnyWriteWithoutHivesRelocationControllerEndsInTheSameMove) {
  expect_same_move_wherever_it_dies();
}

TEST_F(CrashTest, ACrashAtAnyWriteAndADeletionByTheUserNeverDeprovisionsAClusterThatTheDestinationHas) {
  given_secret();
  given_relocator();
  Story move;
  move.begin = [&](const std::string& name) { begin(name); };
  move.is_over = [&](const std::string& name) { return has_moved(name); };
  move.verify = [&](const std::string& name) {
    if (!is_on_source(name)) return;
    const bool arrived = is_on_destination(name);
    remove(ocm::cluster_deployments, {"prod", name});
    live_until([&] { return !is_on_source(name); });
    live_for(2min);
    // Either it was destroyed as the user wanted it, or the destination has it: never both, and never neither.
    EXPECT_EQ(source.hive.count("deprovision prod/" + name), arrived ? 0u : 1u);
    EXPECT_EQ(is_on_destination(name), arrived);
  };
  EXPECT_GE(die_at_every_write(move), 20u);
}

TEST_F(CrashAloneTest, ACrashAtAnyWriteOfAnAbortEndsInTheSameAbort) {
  given_secret();
  given_relocator();
  destination.server.faults().on({.verb = "create", .resource = "secrets"}).always().fail(403);
  Story undone;
  undone.begin = [&](const std::string& name) {
    begin(name);
    live_until([&] { return condition(name).starts_with("True MoveFailed"); });
    change(ocm::cluster_deployments, {"prod", name}, R"({"metadata": {"labels": {"hive-instance": null}}})");
  };
  undone.is_over = [&](const std::string& name) { return condition(name).starts_with("False NoMatching"); };
  undone.verify = [&](const std::string& name) {
    live_until([&] { return undone.is_over(name); });
    live_for(5s);
    expect_untouched(name);
    EXPECT_EQ(annotation(on_source(ocm::dns_zones, name + "-zone"), names::relocating), "-");
    EXPECT_EQ(annotation(on_source(ocm::dns_zones, name + "-zone"), "hive.openshift.io/relocate"), "-");
  };
  EXPECT_GE(die_at_every_write(undone), 4u);
}

TEST_F(CrashAloneTest, ACrashAtAnyWriteOfAReleaseEndsInTheSameRelease) {
  const std::string arriving =
      R"(, "annotations": {"hive.openshift.io/relocating": "r9", "hive.openshift.io/relocation-role": "incoming",
                           "hive.openshift.io/relocate": "r9/incoming"})";
  Story released;
  released.begin = [&](const std::string& name) {
    create(ocm::dns_zones, R"({"metadata": {"name": ")" + name + R"(-zone", "namespace": "prod")" + arriving +
                               R"(}, "spec": {"zone": "example.com"}})");
    given_deployment(arriving, R"(, "manageDNS": true)", name);
  };
  released.is_over = [&](const std::string& name) { return condition(name).starts_with("False NoMatching"); };
  released.verify = [&](const std::string& name) {
    live_until([&] { return released.is_over(name); });
    expect_untouched(name);
    for (const auto* key : {names::relocating, names::role, "hive.openshift.io/relocate"})
      EXPECT_EQ(annotation(on_source(ocm::dns_zones, name + "-zone"), key), "-");
  };
  EXPECT_GE(die_at_every_write(released), 4u);
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
