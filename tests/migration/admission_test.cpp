#include "migration/admission.hpp"

#include <gmock/gmock.h>

#include "hubferry/async/random.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"

namespace hubferry::migration::test {
namespace {

using testing::HasSubstr;
using testing::Optional;

Migration migration_in(const Phase& phase, const std::string& uid, const ClusterNames& clusters) {
  kube::json::object object{{"metadata",
                             {{"name", "m" + uid},
                              {"namespace", "ns"},
                              {"uid", uid},
                              {"creationTimestamp", "2030-01-01T00:00:0" + uid + "Z"}}},
                            {"spec",
                             {{"from", "hub1"},
                              {"to", "hub2"},
                              {"includedManagedClusters", kube::json::array(clusters.begin(), clusters.end())}}},
                            {"status", {{"phase", phase}}}};
  return Migration{phase::KubeResource{kube::Object{std::move(object)}}};
}

TEST(Readmission, ARequestedRollbackWaitsForASlotAsWell) {
  Admission admission{1};
  admission.see(migration_in(phases::deploying, "1", {"a"}));
  const auto rollback = migration_in(phases::rollbacking, "2", {"b"});
  EXPECT_THAT(admission.readmit(rollback, {"b"}), Optional(HasSubstr("waiting for one of 1 migrations")));
  admission.forget("1");
  EXPECT_EQ(admission.readmit(rollback, {"b"}), std::nullopt);
}

// Of thousands that wait, the end of one concerns few.
TEST(AdmissionWaits, OnlyThoseWakeUpWhoCanGoOnOrWaitForSomethingElse) {
  async::VirtualLoop loop;
  async::TaskScope scope{loop.executor()};
  Admission admission{10};
  admission.see(migration_in(phases::deploying, "1", {"a"}));
  admission.see(migration_in(phases::deploying, "2", {"b"}));
  std::map<std::string, int> woken;
  auto wait = [&](std::string uid) -> async::Awaitable<> {
    while (auto obstacle = admission.obstacle(uid)) {
      co_await admission.changed(uid, *obstacle);
      ++woken[uid];
    }
    admission.begin(uid);
  };
  admission.see(migration_in(phases::pending, "3", {"a"}));
  admission.see(migration_in(phases::pending, "4", {"b"}));
  admission.see(migration_in(phases::pending, "5", {"b", "c"}));
  for (const auto* uid : {"3", "4", "5"}) scope.spawn(wait(uid));
  loop.run_for(std::chrono::seconds{1});
  EXPECT_TRUE(woken.empty());
  admission.forget("1");
  loop.run_for(std::chrono::seconds{1});
  EXPECT_EQ(woken, (std::map<std::string, int>{{"3", 1}}));
  admission.forget("2");
  loop.run_for(std::chrono::seconds{1});
  EXPECT_EQ(woken, (std::map<std::string, int>{{"3", 1}, {"4", 1}, {"5", 1}})) << "5 waits for 4 now";
  scope.stop();
  loop.run(scope.join());
}

/// A model of what the phases do with an Admission: migrations that wait in Pending, and requested rollbacks, in any
/// order of cache events, restarts of the manager, and steps.
class AdmissionModel {
 public:
  explicit AdmissionModel(std::uint64_t seed) : random_(seed) {
    for (int number = 1; number <= 5; ++number) {
      Actor actor;
      actor.uid = std::to_string(number);
      for (const char* cluster : {"a", "b", "c"})
        if (random_.chance(0.5)) actor.clusters.emplace_back(cluster);
      if (actor.clusters.empty()) actor.clusters = {"a"};
      actor.phase = random_.chance(0.7) ? phases::rollbacking : phases::pending;
      actors_.push_back(std::move(actor));
    }
    start();
  }

  /// Empty, or how it got stuck.
  std::string run() {
    for (int step = 0; step < 400; ++step) {
      if (random_.chance(0.05)) start();
      auto& actor = actors_[random_.below(actors_.size())];
      if (random_.chance(0.3) && !actor.ended) admission_->see(cached(actor));
      take_step(actor);
      if (auto broken = find_overlap(); !broken.empty()) return broken;
    }
    // No more accidents: every one must come to its end.
    for (std::size_t round = 0; round < 3 * actors_.size(); ++round)
      for (auto& actor : actors_) take_step(actor);
    std::string stuck;
    for (const auto& actor : actors_)
      if (!actor.ended) stuck += " " + actor.uid + " in " + actor.phase;
    return stuck;
  }

 private:
  struct Actor {
    std::string uid;
    ClusterNames clusters;
    Phase phase;
    bool works = false;
    bool ended = false;
  };

  Migration cached(const Actor& actor) const {
    return migration_in(actor.works && actor.phase == phases::pending ? Phase{phases::deploying} : actor.phase,
                        actor.uid, actor.clusters);
  }
  /// A manager starts, and sees what is there. A rollback that was readmitted has that on record.
  void start() {
    admission_ = std::make_unique<Admission>(2);
    for (const auto& actor : actors_)
      if (!actor.ended) admission_->see(cached(actor));
  }
  void take_step(Actor& actor) {
    if (actor.ended) return;
    if (actor.works) {
      if (!random_.chance(0.5)) return;
      actor.works = false;
      actor.ended = true;
      admission_->forget(actor.uid);
    } else if (actor.phase == phases::rollbacking) {
      actor.works = !admission_->readmit(cached(actor), actor.clusters);
    } else if (!admission_->obstacle(actor.uid)) {
      admission_->begin(actor.uid);
      actor.works = true;
    }
  }
  std::string find_overlap() {
    std::set<std::string> taken;
    for (const auto& actor : actors_)
      if (actor.works)
        for (const auto& cluster : actor.clusters)
          if (!taken.insert(cluster).second) return "cluster " + cluster + " belongs to two migrations";
    return {};
  }

  async::Random random_;
  std::vector<Actor> actors_;
  std::unique_ptr<Admission> admission_;
};

TEST(AdmissionModelTest, NoClusterBelongsToTwoAndNobodyWaitsForEver) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const auto stuck = AdmissionModel{seed}.run();
    ASSERT_EQ(stuck, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace hubferry::migration::test
