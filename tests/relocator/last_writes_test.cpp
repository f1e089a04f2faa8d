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
  EXPECT_EQ(metric("hive_cluster_relocations", "r1"), 1);
}

TEST_F(LastWritesTest, AMoveWhoseClusterDeploymentIsGoneBeforeItsDeletionIsAnsweredIsCountedOnce) {
  given_move();
  late_by = 10s;
  live([&]() -> Awaitable<> {
    co_await holds([&] { return has_moved(); });
    co_await sleep(1min);
  });
  EXPECT_EQ(metric("hive_cluster_relocations", "r1"), 1);
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
  EXPECT_EQ(metric("hive_cluster_relocations", "r1"), 0);
}

/// Moves that the destination could not be told of in time.
class ReleaseTest : public StateTest {
 protected:
  /// The source has deleted it, and the copy waits.
  void given_unreleased() {
    given_move(R"(, "manageDNS": true)");
    given_zone();
    hang();
    live([&]() -> Awaitable<> {
      co_await holds([&] { return has_moved(); });
      co_await sleep(1min);
    });
    EXPECT_EQ(copy_annotation(names::relocating), "r1");
    EXPECT_EQ(copy_annotation(names::confirmed), "-");
  }
  void hang() {
    for (const auto* verb : {"patch", "update"})
      destination.server.faults()
          .on({.verb = verb, .resource = "clusterdeployments"})
          .always()
          .delay(sim::Latency::fixed(24h));
  }
  std::string copy_annotation(const char* key) {
    return annotation(on_destination(ocm::cluster_deployments, "c1"), key);
  }
  bool is_confirmed() { return copy_annotation(names::confirmed) == "true"; }
  /// "False ReleasePending: …"
  std::string released() {
    const auto relocator = on_source(cluster_relocators, "r1");
    const auto* found = kube::find_condition(*relocator, "Released");
    if (found == nullptr) return "none";
    return std::string{kube::string_at(*found, {"status"})} + " " + std::string{kube::string_at(*found, {"reason"})} +
           ": " + std::string{kube::string_at(*found, {"message"})};
  }
  std::string unreleased() {
    const auto relocator = on_source(cluster_relocators, "r1");
    const auto* names = relocator->find({"status", "unreleased"});
    return names == nullptr ? "none" : json::serialize(*names);
  }
  double waiting() {
    return metrics.gauge_family("hubferry_relocator_cluster_deployments", "Read by a test.", {"state"})
        .with({"unreleased"})
        .value();
  }
};

TEST_F(ReleaseTest, ACopyThatCouldNotBeReleasedInTimeIsShownAndReleasedLater) {
  given_unreleased();
  EXPECT_EQ(unreleased(),
            R"([{"namespace":"prod","name":"c1","destination":")" + identity(destination.server) + "\"}]");
  EXPECT_THAT(released(), HasSubstr("False ReleasePending: "));
  EXPECT_THAT(released(), HasSubstr("1 ClusterDeployment: prod/c1"));
  EXPECT_THAT(events("ReleasePending"), Contains(HasSubstr("the destination did not answer within 15 s")));
  EXPECT_EQ(waiting(), 1);
  live([&]() -> Awaitable<> {
    co_await sleep(20min);
    EXPECT_FALSE(is_confirmed());
    destination.server.faults().clear();
    co_await holds([&] { return is_confirmed(); });
    co_await sleep(10s);
  });
  expect_moved();
  EXPECT_EQ(copy_annotation(names::relocating), "-");
  EXPECT_EQ(annotation(on_destination(ocm::dns_zones, "c1-zone"), names::relocating), "-");
  EXPECT_EQ(unreleased(), "none");
  EXPECT_THAT(released(), HasSubstr("True AllReleased"));
  EXPECT_EQ(waiting(), 0);
}

TEST_F(ReleaseTest, ASuccessorReleasesWhatItsPredecessorCouldNot) {
  given_unreleased();
  destination.server.faults().clear();
  live_until([&] { return is_confirmed(); });
  expect_moved();
  live_for(1min);
  EXPECT_EQ(unreleased(), "none");
}

// Another hub does not have it, which says nothing of the one that has.
TEST_F(ReleaseTest, ARelocatorThatIsRepointedDoesNotForgetWhatTheFirstHubHas) {
  given_unreleased();
  given_repointing();
  destination.server.faults().clear();
  live_for(30min);
  EXPECT_NE(unreleased(), "none");
  EXPECT_THAT(released(), HasSubstr("ClusterRelocator r1 leads to another hub now"));
  point_at(destination.server);
  live_until([&] { return is_confirmed(); });
}

TEST_F(ReleaseTest, ACopyThatTheDestinationDoesNotHaveAnyMoreIsNotWaitedFor) {
  given_unreleased();
  destination.server.faults().clear();
  change(ocm::cluster_deployments, {"prod", "c1"}, R"({"metadata": {"finalizers": null}})", &destination.server);
  remove(ocm::cluster_deployments, {"prod", "c1"}, &destination.server);
  live_until([&] { return unreleased() == "none"; });
}

// Its release is that of its next move, and not due before.
TEST_F(ReleaseTest, AnArrivalOfBeforeIsForgottenIfTheClusterDeploymentIsBack) {
  given_unreleased();
  destination.server.faults().clear();
  change(cluster_relocators, {"", "r1"},
         R"({"spec": {"clusterDeploymentSelector": {"matchLabels": {"hive-instance": "x"}}}})");
  given_deployment("", R"(, "manageDNS": true)");
  live_until([&] { return unreleased() == "none"; });
  EXPECT_EQ(copy_annotation(names::relocating), "r1");
  EXPECT_FALSE(is_confirmed());
}

// It died after Hive had removed the last object that could have said so to its successor.
TEST_F(ReleaseTest, ASuccessorReleasesWhatItsPredecessorKnewNothingOfAnyMore) {
  given_unreleased();
  destination.server.faults().clear();
  const auto forget = json::parse(R"({"status": {"unreleased": null}})");
  EXPECT_TRUE(loop.run(source.server.api().merge_patch(cluster_relocators, {"", "r1"}, forget.as_object(), "status")));
  EXPECT_EQ(unreleased(), "none");
  live_until([&] { return is_confirmed(); });
  expect_moved();
  EXPECT_EQ(copy_annotation(names::relocating), "-");
  EXPECT_EQ(annotation(on_destination(ocm::dns_zones, "c1-zone"), names::relocating), "-");
}

// Whoever deletes a relocator once everything has moved does not know of the releases.
TEST_F(ReleaseTest, ARelocatorThatIsCreatedAgainReleasesWhatItsPredecessorLeft) {
  given_unreleased();
  remove(cluster_relocators, {"", "r1"});
  live_for(10min);
  destination.server.faults().clear();
  live([&]() -> Awaitable<> {
    co_await sleep(10min);
    EXPECT_FALSE(is_confirmed());
    const auto again = json::parse(R"({"metadata": {"name": "r1"}, "spec": {"kubeconfigSecretRef": {"namespace":
        "hive", "name": "to-destination"}, "clusterDeploymentSelector": {"matchLabels": {"hive-instance": "hive2"}}}})");
    co_await source.server.api().create(cluster_relocators, again.as_object());
    co_await holds([&] { return is_confirmed(); });
  });
  expect_moved();
}

// The source may have it again, or still: its own move releases it.
TEST_F(ReleaseTest, NothingIsReleasedThatTheSourceHas) {
  given_secret();
  given_relocator("r1", "nothing");
  given_copy_on_destination("", "");
  given_deployment();
  live_for(30min);
  EXPECT_FALSE(is_confirmed());
}

/// Hive as it is installed: its own relocation controller deletes what has moved.
class LastWritesBesideHiveTest : public LastWritesTest {
 protected:
  LastWritesBesideHiveTest() : LastWritesTest(sim::HiveOptions{}) {}

  void expect_confirmed() {
    expect_moved();
    EXPECT_EQ(annotation(on_destination(ocm::cluster_deployments, "c1"), names::confirmed), "true");
    EXPECT_EQ(metric("hive_cluster_relocations", "r1"), 1);
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

TEST_F(LastWritesBesideHiveTest, AnArrivalIsConfirmedAlthoughTheAnswerToTheAnnotationIsLostAndTheSourceFinalized) {
  given_move();
  verb = kube::Verb::patch;
  late_by = 10s;
  instead = kube::Error{kube::ErrorKind::ambiguous, 0, {}, "the connection was lost", {}};
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
    EXPECT_EQ(metric("hive_cluster_relocations", "r1"), 1);
  });
  expect_no_deprovision();
}

}  // namespace
}  // namespace hubferry::relocator::test
