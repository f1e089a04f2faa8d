#include "app/status/migration_view.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "app/cli/terminal.hpp"
#include "migration_samples.hpp"

namespace hubferry::app {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const auto now = async::parse_time("2030-01-01T00:00:20Z");

MigrationView view(const std::string& name, const std::string& status) {
  return view_of(kube::Object{migration_object(name, status)});
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

TEST(MigrationView, ReadsSpecAndStatus) {
  const auto migration = view("m", registering_status);
  EXPECT_EQ(migration.phase, "Registering");
  EXPECT_EQ(migration.clusters.total, 4);
  EXPECT_EQ(migration.clusters.migrated, 1);
  ASSERT_EQ(migration.failures.size(), 1U);
  EXPECT_EQ(migration.failures[0].reason, "ClusterConflict");
  ASSERT_NE(migration.latest_condition(), nullptr);
  EXPECT_EQ(migration.latest_condition()->message, "waiting for 2 clusters")
      << "an update is news even without a transition";
}

TEST(MigrationView, AcceptsAnObjectWithoutAStatus) {
  const auto migration = view("m", "");
  EXPECT_EQ(migration.phase, "");
  EXPECT_EQ(migration.clusters.total, 4) << "as many as the spec lists";
  EXPECT_EQ(migration.latest_condition(), nullptr);
  EXPECT_FALSE(migration.time_left(now));
}

TEST(MigrationView, AcceptsAMalformedStatus) {
  const auto migration = view("m", R"({"phase": 7, "clusters": [], "conditions": [1, {"type": 2}], "state": "x",
                                       "startTime": "yesterday", "rollback": {"a": 1}})");
  EXPECT_EQ(migration.phase, "");
  EXPECT_EQ(migration.conditions.size(), 1U);
  EXPECT_FALSE(migration.started);
  EXPECT_THAT(migration.problems, IsEmpty());
}

TEST(MigrationView, TheTimelineFollowsTheClock) {
  std::vector<std::string> seen;
  for (const auto& span : view("m", registering_status).timeline())
    seen.push_back(span.phase + " " + (span.end ? short_duration(*span.end - *span.start) : "open"));
  EXPECT_THAT(seen, ElementsAre("Validating 2s", "Deploying 6s", "Registering open")) << "nothing that was not there";
}

TEST(MigrationView, PendingIsPartOfTheTimeline) {
  const auto migration = view("m", R"({"phase": "Validating", "startTime": "2030-01-01T00:00:02Z",
    "state": {"Pending": {"done": true, "startTime": "2030-01-01T00:00:01Z"}}})");
  ASSERT_FALSE(migration.timeline().empty());
  EXPECT_EQ(migration.timeline()[0].phase, "Pending");
  EXPECT_EQ(*migration.timeline()[0].end - *migration.timeline()[0].start, 2s);
}

// One cluster in ten seconds: the other two need twenty more. The failed one is waited for no longer.
TEST(MigrationView, TheTimeLeftIsEstimatedFromTheRateSoFar) {
  EXPECT_EQ(view("m", registering_status).time_left(now), 20s);
  EXPECT_FALSE(view("m", completed_status).time_left(now));
}

TEST(ShortDuration, IsFormattedAsInKubectl) {
  EXPECT_EQ(short_duration(-1s), "0s");
  EXPECT_EQ(short_duration(119s), "119s");
  EXPECT_EQ(short_duration(200s), "3m20s");
  EXPECT_EQ(short_duration(180s), "3m");
  EXPECT_EQ(short_duration(75min), "75m");
  EXPECT_EQ(short_duration(5h + 10min), "5h10m");
  EXPECT_EQ(short_duration(30h), "30h");
  EXPECT_EQ(short_duration(72h), "3d");
}

TEST(StatusText, ATableOfAllMigrationsInOrder) {
  const auto lines =
      migration_table({view("z", registering_status), view("a", completed_status), view("n", "")}, {}, now, Terminal{});
  EXPECT_THAT(lines, ElementsAre("NAME   PHASE         FROM   TO     CLUSTERS   AGE   ETA    MESSAGE",
                                 "a      Completed     hub1   hub2   4/4        20s   -      all is done",
                                 "n      New           hub1   hub2   0/4        20s   -      waiting for a manager: "
                                 "none has reconciled it yet",
                                 "z      Registering   hub1   hub2   1/4        20s   ~20s   waiting for 2 clusters"));
}

TEST(StatusText, NamespacesHaveAColumnIfTheyDiffer) {
  const auto there = view_of(kube::Object{migration_object("b", "", "elsewhere")});
  EXPECT_THAT(migration_table({there, view("a", "")}, {}, now, Terminal{})[1], StartsWith("default     a "));
  EXPECT_THAT(migration_table({there}, {}, now, Terminal{})[0], StartsWith("NAME "));
  const TableOptions always{.wide = false, .namespaces = NamespaceColumn::always};
  EXPECT_THAT(migration_table({there}, always, now, Terminal{})[0], StartsWith("NAMESPACE "));
}

TEST(StatusText, MigrationsAreInNaturalOrder) {
  const auto lines = migration_table({view("m-10", ""), view("m-9", ""), view("m-1", "")}, {}, now, Terminal{});
  EXPECT_THAT(lines, ElementsAre(StartsWith("NAME"), StartsWith("m-1 "), StartsWith("m-9 "), StartsWith("m-10 ")));
}

// The latest message of a rollback is that all clusters are back; the cause matters more.
TEST(StatusText, AFailedMigrationShowsTheCause) {
  auto failed = view("m", timed_out_status);
  EXPECT_THAT(migration_table({failed}, {}, now, Terminal{})[1], EndsWith("Timeout: 1 of 20 clusters came"));
  const TableOptions wide{.wide = true, .namespaces = NamespaceColumn::never};
  EXPECT_THAT(migration_table({failed}, wide, now, Terminal{})[1], EndsWith("Timeout   1 of 20 clusters came"));
  EXPECT_THAT(migration_line(failed),
              EndsWith("Failed 1/20, 19 failed (19 rolled back): Timeout: 1 of 20 clusters came"))
      << "20 clusters, not 39";
  const Terminal narrow{.interactive = true, .colour = false, .width = 30, .height = 50};
  EXPECT_THAT(joined(migration_details(failed, "", now, narrow)),
              AllOf(HasSubstr("Failure:    Timeout: 1 of 20\n            clusters came\nMessage:    back on hub\n"
                              "            'hub1': 19\n            clusters\n"),
                    HasSubstr("Phase:      Failed\n")));
  EXPECT_EQ(view("m", registering_status).cause(), nullptr) << "not before it fails";
}

TEST(StatusText, OnlyTheFirstFailedClustersAreListed) {
  auto failed = view("m", timed_out_status);
  failed.failures.clear();
  for (int number = 19; number > 0; --number)
    failed.failures.push_back({"c" + std::to_string(number), "Registering", "Timeout", "not there"});
  add_failures(failed, kube::Object{kube::json::object{{"data", kube::json::object{{"failure", "[]"}}}}});
  const auto text = joined(migration_details(failed, "", now, Terminal{}));
  EXPECT_THAT(text, HasSubstr("\n  c1        Registering   Timeout   not there\n  c2 "));
  EXPECT_THAT(text, HasSubstr("\n  c10  "));
  EXPECT_THAT(text, Not(HasSubstr("\n  c11  ")));
  EXPECT_THAT(text, HasSubstr("\n  … and 9 more (all: hubferry status m -o wide)\n"));
  EXPECT_THAT(joined(migration_details(failed, "", now, Terminal{}, 19)), HasSubstr("\n  c19  "));
}

// Names may have 253 characters: a script that reads the list needs all of each, and all of them.
TEST(StatusText, WideListsThousandsOfLongNamesInFull) {
  auto failed = view("m", timed_out_status);
  failed.failures.clear();
  const auto name = [](int number) { return std::string(240, 'c') + std::to_string(number); };
  for (int number = 0; number < 5000; ++number)
    failed.failures.push_back({name(number), "Registering", "Timeout", "not there"});
  const Terminal narrow{.interactive = true, .colour = false, .width = 80, .height = 50};
  for (const auto& terminal : {Terminal{}, narrow}) {
    const auto lines = migration_details(failed, "", now, terminal, failed.failures.size());
    const auto is_one = [](const std::string& line) { return line.starts_with("  ccc"); };
    EXPECT_EQ(std::ranges::count_if(lines, is_one), 5000);
    EXPECT_THAT(lines, testing::Contains(testing::StartsWith("  " + name(4999))));
  }
}

TEST(StatusText, WideShowsMore) {
  const auto lines = migration_table({view("a", failed_status)}, {.wide = true, .namespaces = NamespaceColumn::never},
                                     now, Terminal{});
  EXPECT_THAT(
      lines,
      ElementsAre("NAME   PHASE    FROM   TO     CLUSTERS   FAILED   ROLLED-BACK   TOOK   AGE   ETA   REASON   MESSAGE",
                  "a      Failed   hub1   hub2   0/4        0        4             70s    20s   -     -        -"));
}

TEST(StatusText, OneMigrationInDetail) {
  auto migration = view("m", registering_status);
  const kube::json::object lists{
      {"data", kube::json::object{{"failure", R"(["c4","c9","c8"])"},
                                  {"failure-details", R"({"c9": {"stage": "Registering", "reason": "Timeout"}})"}}}};
  add_failures(migration, kube::Object{lists});
  const auto text =
      joined(migration_details(migration, "[x] Validating: check\n  [!] hubs -- no answer\n", now, Terminal{}));
  for (const auto* part :
       {"Migration:  default/m\n", "Hubs:       hub1 -> hub2\n", "Phase:      Registering for 10s\n",
        "Clusters:   1 of 4 migrated, 2 migrating, 1 failed\n", "ETA:        ~20s\n",
        "Created:    2030-01-01T00:00:00Z (20s ago)\n", "  Validating    00:00:02   2s",
        "  Registering   00:00:10   10s    running\n", "  [x] Validating: check\n    [!] hubs -- no answer\n",
        "  ClusterRegistered   False    Waiting", "  c4        Deploying     ClusterConflict   exists there\n",
        "  c9        Registering   Timeout           -\n", "  c8        -             -                 -\n"})
    EXPECT_THAT(text, HasSubstr(part)) << text;
}

TEST(StatusText, AnEndedMigrationShowsItsDuration) {
  EXPECT_THAT(migration_details(view("m", completed_status), "", now, Terminal{}),
              Contains("Phase:      Completed, took 70s"));
  const auto failed = joined(migration_details(view("m", failed_status), "", now, Terminal{}));
  EXPECT_THAT(failed, HasSubstr("Problem:    rollback, remove helpers: the target does not answer"));
  EXPECT_THAT(failed, Not(HasSubstr("Failed clusters")));
}

TEST(StatusText, ColoursAreForTerminals) {
  const Terminal colourful{.interactive = true, .colour = true, .width = 100, .height = 50};
  EXPECT_THAT(joined(migration_table({view("a", completed_status)}, {}, now, colourful)),
              HasSubstr("\x1b[32mCompleted\x1b[0m"));
  EXPECT_THAT(joined(migration_details(view("a", registering_status), "[x] a\n", now, Terminal{})),
              Not(HasSubstr("\x1b")));
}

TEST(StatusText, TheChecklistIsTheControllersOwn) {
  const auto text = migration_checklist(view("m", registering_status));
  EXPECT_THAT(text, HasSubstr("[x] Validating"));
  EXPECT_THAT(text, HasSubstr("[>] Registering"));
  EXPECT_THAT(text, HasSubstr("\n  [x] hubs"));
  EXPECT_THAT(text, HasSubstr("\n[ ] Cleaning"));
  EXPECT_THAT(text, Not(HasSubstr("Rollbacking"))) << "not before something fails";
  const auto brief = migration_checklist(view("m", registering_status), true);
  EXPECT_THAT(brief, Not(HasSubstr("\n  [x] hubs")));
  EXPECT_THAT(brief, HasSubstr("\n  [>] cut-over"));
  EXPECT_THAT(brief, HasSubstr("\n  [ ] arrivals"));
}

TEST(StatusText, TheChecklistMarksTheRunningStep) {
  const auto text = migration_checklist(view("m", R"({"phase": "Registering", "state": {
    "Registering": {"startTime": "2030-01-01T00:00:10Z", "state": {
      "cut-over": {"done": true, "startTime": "2030-01-01T00:00:10Z"}}}}})"));
  EXPECT_THAT(text, HasSubstr("\n  [x] cut-over"));
  EXPECT_THAT(text, HasSubstr("\n  [>] permission"));
  EXPECT_THAT(text, HasSubstr("\n  [ ] arrivals"));
  const auto later = migration_checklist(view("m", R"({"phase": "Registering", "state": {
    "Registering": {"startTime": "2030-01-01T00:00:10Z", "state": {
      "cut-over": {"done": true, "startTime": "2030-01-01T00:00:10Z"},
      "permission": {"done": false, "startTime": "2030-01-01T00:00:11Z"},
      "arrivals": {"done": false, "startTime": "2030-01-01T00:00:12Z"}}}}})"));
  EXPECT_THAT(later, HasSubstr("\n  [x] permission"));
  EXPECT_THAT(later, HasSubstr("\n  [>] arrivals"));
  const auto back = migration_checklist(view("m", R"({"phase": "Rollbacking", "state": {"Rollbacking": {"state": {
      "take-up": {"done": true}, "acknowledge": {"done": true}}}}})"));
  EXPECT_THAT(back, HasSubstr("[>] clusters"));
  EXPECT_THAT(back, HasSubstr("[ ] objects"));
  EXPECT_THAT(back, HasSubstr("[ ] conclusion"));
}

TEST(StatusText, TheChecklistShowsOnlyWhatTheStatusHas) {
  EXPECT_THAT(migration_checklist(view("m", registering_status)), Not(HasSubstr("Pending"))) << "it never was";
  EXPECT_THAT(migration_checklist(view("m", "")), HasSubstr("[ ] Pending")) << "it will be";
  EXPECT_THAT(migration_checklist(view("m", failed_status)), Not(HasSubstr("[ ]"))) << "nothing is to come";
}

TEST(StatusText, MarksAreColouredOnATerminal) {
  const Terminal colourful{.interactive = true, .colour = true, .width = 100, .height = 50};
  EXPECT_THAT(joined(migration_details(view("a", ""), "[x] a\n  [ ] b\n", now, colourful)),
              HasSubstr("  \x1b[32m[x]\x1b[0m a\n    \x1b[2m[ ]\x1b[0m b\n"));
}

TEST(StatusText, OneLogLine) {
  EXPECT_EQ(migration_line(view("m", registering_status)),
            "default/m Registering 1/4, 1 failed: waiting for 2 clusters");
  EXPECT_EQ(migration_line(view("m", "")), "default/m New 0/4: waiting for a manager: none has reconciled it yet");
}

}  // namespace
}  // namespace hubferry::app
