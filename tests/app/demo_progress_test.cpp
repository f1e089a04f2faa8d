#include "app/demo/demo_progress.hpp"

#include <gmock/gmock.h>

namespace hubferry::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const async::TimePoint start{};
const Terminal narrow{.interactive = true, .colour = false, .width = 80, .height = 24};

MigrationView migration(const std::string& name, const std::string& phase, std::int64_t migrated = 0,
                        std::int64_t failed = 0) {
  MigrationView view;
  view.key = {"default", name};
  view.phase = phase;
  view.from = "hub1";
  view.to = "hub2";
  view.clusters.total = 4;
  view.clusters.migrated = migrated;
  view.clusters.failed = failed;
  return view;
}

TEST(DemoProgress, ReportsEachChangeOnce) {
  DemoProgress progress{start};
  EXPECT_THAT(progress.observe(migration("a", ""), start), IsEmpty());
  EXPECT_THAT(progress.observe(migration("a", "Validating"), start + 1s), ElementsAre("1.0s   a: Validating"));
  EXPECT_THAT(progress.observe(migration("a", "Validating"), start + 2s), IsEmpty());
  EXPECT_THAT(progress.observe(migration("a", "Registering", 3), start + 3500ms),
              ElementsAre("3.5s   a: Registering (Validating took 2.5s)", "3.5s   a: 3 of 4 clusters are on hub2"));
  auto back = migration("a", "Failed", 3, 1);
  back.clusters.rolled_back = 1;
  back.conditions.push_back({"ResourceRolledBack", "True", "ResourceRolledBack", "all is back", {}});
  EXPECT_THAT(progress.observe(back, start + 65s), ElementsAre("65s    a: Failed (Registering took 61s): all is back",
                                                               "65s    a: 1 cluster failed, 1 is back on hub1"));
}

TEST(DemoProgress, ALineShowsPhaseProgressRateErrorsAndTimes) {
  DemoProgress progress{start};
  progress.observe(migration("a", "Validating"), start);
  progress.observe(migration("a", "Registering", 2, 1), start + 1s);
  const auto lines = progress.lines(start + 5s, Terminal{});
  EXPECT_THAT(lines,
              ElementsAre("a  Registering   [##########..........] 2/4      0.5/s   1 error    Val 1.0s  Reg 4.0s  ",
                          "5.0s, 2 of 4 clusters moved"));
}

TEST(DemoProgress, TheSummaryShowsOnlyPhasesThatWereEntered) {
  DemoProgress progress{start};
  for (const auto* name : {"b", "a"}) {
    progress.observe(migration(name, "Validating"), start);
    progress.observe(migration(name, "Registering"), start + 1s);
    EXPECT_FALSE(progress.all_ended());
    progress.observe(migration(name, "Completed", 4), start + 3s);
  }
  EXPECT_TRUE(progress.all_ended());
  EXPECT_TRUE(progress.all_succeeded());
  EXPECT_EQ(progress.moved(), 8);
  EXPECT_EQ(progress.took(), 3s);
  EXPECT_THAT(progress.summary(Terminal{}), ElementsAre("MIGRATION  RESULT     MOVED  BACK  TOOK  VALID  REGISTER",
                                                        "a          Completed  4/4    0     3.0s  1.0s   2.0s",
                                                        "b          Completed  4/4    0     3.0s  1.0s   2.0s"));
}

TEST(DemoProgress, EverythingFitsInto80Columns) {
  DemoProgress progress{start};
  for (const auto* name : {"move-2", "move-100", "move-1"}) {
    auto now = start;
    for (const auto* phase : {"Validating", "Initializing", "Deploying", "Registering", "Rollbacking", "Failed"}) {
      auto seen = migration(name, phase);
      seen.clusters.total = 1000;
      seen.clusters.rolled_back = 1000;
      progress.observe(seen, now);
      now += 11s;
      for (const auto& line : progress.lines(now, narrow)) EXPECT_LE(columns(line), 80U + 2) << line;
    }
  }
  const auto lines = progress.lines(start + 66s, narrow);
  EXPECT_THAT(lines, ElementsAre(StartsWith("move-1  "), StartsWith("move-2  "), StartsWith("move-100  "),
                                 HasSubstr("0 of 3000 clusters moved")));
  for (const auto& line : progress.summary(narrow)) EXPECT_LE(columns(line), 80U) << line;
}

// What ran last matters most.
TEST(DemoProgress, OnANarrowScreenTheFirstTimesAreOmitted) {
  DemoProgress progress{start};
  progress.observe(migration("move-1", "Deploying"), start);
  progress.observe(migration("move-1", "Registering"), start + 1s);
  EXPECT_EQ(progress.lines(start + 5s, narrow)[0],
            "move-1  Registering   [............] 0/4      -       0 errors   Reg 4.0s  ");
}

TEST(DemoProgress, ShowsWhyMigrationsFailed) {
  DemoProgress progress{start};
  for (int number = 1; number <= 7; ++number) {
    auto failed = migration("move-" + std::to_string(number), "Failed", 0, 5);
    failed.conditions.push_back({"ClusterRegistered", "False", "Timeout", "nobody came", {}});
    failed.conditions.push_back({"ResourceRolledBack", "True", "ResourceRolledBack", "all is back", {}});
    for (const auto* cluster : {"c1", "c2", "c3", "c4"})
      failed.failures.push_back({cluster, "Registering", "Timeout", "not there"});
    const auto news = progress.observe(failed, start);
    EXPECT_THAT(news[0], HasSubstr("Failed: Timeout: nobody came"));
  }
  const auto lines = progress.failures(Terminal{});
  EXPECT_THAT(std::vector<std::string>(lines.begin(), lines.begin() + 5),
              ElementsAre("move-1 failed: Timeout: nobody came", "  c1: Timeout: not there", "  c2: Timeout: not there",
                          "  c3: Timeout: not there", "  … and 2 more"));
  EXPECT_EQ(lines.back(), "… and 2 more migrations failed");
}

TEST(DemoProgress, WithoutMigrationsNoneHasEnded) {
  DemoProgress progress{start};
  EXPECT_EQ(progress.migrations(), 0U);
  EXPECT_EQ(progress.took(), 0s);
  EXPECT_THAT(progress.lines(start, Terminal{}), ElementsAre("0.0s, 0 of 0 clusters moved"));
}

}  // namespace
}  // namespace hubferry::app
