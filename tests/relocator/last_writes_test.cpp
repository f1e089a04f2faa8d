#include "intercepting_api.hpp"
#include "state_test.hpp"

/// The last writes of a move, while Hive finalizes the source at once: what they are for is done although the
/// ClusterDeployment is gone before they are answered, or their answer says something else.
namespace hubferry::relocator::test {
namespace {

class LastWritesTest : public StateTest {
 protected:
  LastWritesTest() = default;
  explicit LastWritesTest(sim::HiveOptions hive) : StateTest(std::move(hive)) {}

  kube::Api& api() override { return api_; }

  /// Instead of the answer to requests of that verb about ClusterDeployments of the source, which take effect. One
  /// answer comes late instead if it is none of ours.
  Awaitable<kube::Result<Object>> answer(kube::Api& real, kube::Request request) {
    const bool concerned = request.verb == verb && request.resource == ocm::cluster_deployments;
    auto answered = co_await real.call(std::move(request));
    if (!concerned || !answered) co_return answered;
    if (verb == kube::Verb::patch && annotation(*answered, names::relocated) == "-") co_return answered;
    co_await sleep(late_by);
    if (instead) co_return *instead;
    co_return answered;
  }

  kube::Verb verb = kube::Verb::remove;
  async::Duration late_by{0};
  std::optional<kube::Error> instead;

 private:
  InterceptingApi api_{std::shared_ptr<kube::Api>{std::shared_ptr<void>{}, &source.server.api()},
                       [this](kube::Api& real, kube::Request request) { return answer(real, std::move(request)); }};
};

TEST_F(LastWritesTest, AMoveWhoseDeletionTookEffectAndWasAnsweredByAConflictIsCountedOnce) {
  given_move();
  instead = kube::Error{kube::ErrorKind::conflict, 409, "Conflict", "the object has been modified", {}};
  live_until([&] { return has_moved(); });
  live_for(1min);
  EXPECT_EQ(metric("hive_cluster_relocations_total", "r1"), 1);
}

TEST_F(LastWritesTest, AMoveWhoseClusterDeploymentIsGoneBeforeItsDeletionIsAnsweredIsCountedOnce) {
  given_move();
  late_by = 10s;
  live([&]() -> Awaitable<> {
    co_await holds([&] { return has_moved(); });
    co_await sleep(1min);
  });
  EXPECT_EQ(metric("hive_cluster_relocations_total", "r1"), 1);
  EXPECT_THAT(events("Relocated"), testing::ElementsAre("moved to another hub: 1 ClusterDeployment: prod/c1"));
  EXPECT_EQ(on_source(cluster_relocators, "r1")->find({"status", "moved"})->as_int64(), 1);
}

TEST_F(LastWritesTest, OneThatIsUndoneAndDestroyedByAUserInsteadOfDeletedIsNotCounted) {
  given_move();
  instead = kube::Error{kube::ErrorKind::conflict, 409, "Conflict", "the object has been modified", {}};
  change(ocm::cluster_deployments, {"prod", "c1"},
         R"({"metadata": {"finalizers": ["hive.openshift.io/deprovision", "example.com/held"]}})");
  destination.server.faults()
      .on({.verb = "patch", .resource = "clusterdeployments"})
      .always()
      .delay(sim::Latency::fixed(20s));
  live([&]() -> Awaitable<> {
    co_await holds([&] { return annotation(on_source(ocm::cluster_deployments, "c1"), names::relocated) == "r1"; });
    const auto undo = json::parse(R"({"metadata": {"labels": {"hive-instance": null}, "annotations":
        {"hive.openshift.io/relocated": null, "hive.openshift.io/relocate": null}}})");
    const Key key{"prod", "c1"};
    co_await source.server.api().merge_patch(ocm::cluster_deployments, key, undo.as_object());
    co_await sleep(1min);
  });
  EXPECT_TRUE(is_on_source());
  EXPECT_EQ(metric("hive_cluster_relocations_total", "r1"), 0);
}

/// Hive as it is installed: its own relocation controller deletes what has moved.
class LastWritesBesideHiveTest : public LastWritesTest {
 protected:
  LastWritesBesideHiveTest() : LastWritesTest(sim::HiveOptions{}) {}

  void expect_confirmed() {
    expect_moved();
    EXPECT_EQ(annotation(on_destination(ocm::cluster_deployments, "c1"), names::confirmed), "true");
    EXPECT_EQ(metric("hive_cluster_relocations_total", "r1"), 1);
  }
};

TEST_F(LastWritesBesideHiveTest, AnArrivalIsConfirmedAlthoughTheSourceIsFinalizedMeanwhile) {
  given_move();
  destination.server.faults()
      .on({.verb = "patch", .resource = "clusterdeployments"})
      .always()
      .delay(sim::Latency::fixed(5s));
  live([&]() -> Awaitable<> {
    co_await holds([&] { return has_moved(); });
    co_await sleep(1min);
  });
  expect_confirmed();
}

TEST_F(LastWritesBesideHiveTest, AnArrivalIsConfirmedAlthoughTheSourceIsFinalizedBeforeItsAnnotationIsAnswered) {
  given_move();
  verb = kube::Verb::patch;
  late_by = 10s;
  live([&]() -> Awaitable<> {
    co_await holds([&] { return has_moved(); });
    co_await sleep(1min);
  });
  expect_confirmed();
}

TEST_F(LastWritesBesideHiveTest, ADestinationThatDoesNotAnswerAnyMoreDoesNotHoldTheEndOfTheMove) {
  given_move();
  destination.server.faults()
      .on({.verb = "patch", .resource = "clusterdeployments"})
      .always()
      .delay(sim::Latency::fixed(24h));
  live([&]() -> Awaitable<> {
    co_await holds([&] { return has_moved(); });
    co_await sleep(1min);
    EXPECT_EQ(metric("hive_cluster_relocations_total", "r1"), 1);
  });
  expect_no_deprovision();
}

}  // namespace
}  // namespace hubferry::relocator::test
