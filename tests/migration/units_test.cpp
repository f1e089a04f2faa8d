#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "hubferry/async/virtual_loop.hpp"
#include "migration/admission.hpp"
#include "migration/deadlines.hpp"
#include "migration/pending.hpp"
#include "migration/status_report.hpp"

/// The pure functions of the controller.
namespace hubferry::migration::test {
namespace {

using namespace std::chrono_literals;
using hubagent::Stage;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Migration with_spec(std::string_view spec, std::string_view status = "{}") {
  kube::json::object object{
      {"metadata", kube::json::object{{"name", "m1"}, {"namespace", "ns"}, {"uid", "u1"}, {"generation", 3}}},
      {"spec", boost::json::parse({spec.data(), spec.size()})},
      {"status", boost::json::parse({status.data(), status.size()})}};
  return Migration{phase::KubeResource{kube::Object{std::move(object)}}};
}

const auto sound = R"({"from": "hub1", "to": "hub2", "includedManagedClusters": ["b", "a", "b"]})";

TEST(PhaseTimeout, CountsFromTheStartOfThePhaseEvenIfTheClockWasSetBack) {
  async::VirtualLoop loop;
  const auto now = loop.clock().wall_now();
  EXPECT_EQ(phase_deadline(now - 2min, 5min, loop.clock()), loop.clock().now() + 3min);
  EXPECT_EQ(phase_deadline(now - 1h, 5min, loop.clock()), loop.clock().now() - 55min);
  EXPECT_EQ(phase_deadline(now + 1h, 5min, loop.clock()), loop.clock().now() + 5min);
  EXPECT_LT(phase_deadline(WallTime::min(), 5min, loop.clock()), loop.clock().now());
}

TEST(Ledger, IsReadFromItsConfigMapAsWritten) {
  Ledger ledger;
  ledger.all = {"a", "b", "c", "d"};
  ledger.succeed("a");
  ledger.succeed("d");
  ledger.fail("b", {"Deploying", "Error", "a \"quoted\" sentence"});
  ledger.rolled_back = {"b"};
  ledger.undone = {"b", "c"};
  ledger.unverified = {"a"};
  ledger.cleaned = {"d"};
  ledger.left_behind = {"hub1", "hub2/a"};
  EXPECT_EQ(ledger_from_data(to_data(ledger)), ledger);
  EXPECT_EQ(to_data(ledger).at("all-clusters"), R"(["a","b","c","d"])");
  EXPECT_EQ(to_data(ledger).at("success"), R"(["a","d"])");
  EXPECT_EQ(to_data(ledger).at("failure"), R"(["b"])");
}

// An API server accepts 1 MiB; the longest names, all failed, all rolled back.
TEST(Ledger, FiveThousandClustersFitIntoAConfigMapWhateverTheirResult) {
  Ledger ledger;
  for (int index = 0; index < 5000; ++index) ledger.all.push_back(std::to_string(10000 + index) + std::string(58, 'x'));
  for (const auto& name : ledger.all) {
    const bool early = name < "12500";
    ledger.fail(name, {early ? "Deploying" : "Registering", early ? "Error" : "Timeout", std::string(100, 'm')});
    ledger.rolled_back.insert(name);
    if (name != "13000" + std::string(58, 'x')) ledger.undone.insert(name);
  }
  const auto data = to_data(ledger);
  EXPECT_LT(kube::json::serialize(data).size(), 1000u * 1024);
  const auto back = ledger_from_data(data);
  EXPECT_EQ(back.all, ledger.all);
  EXPECT_EQ(back.rolled_back, ledger.rolled_back);
  EXPECT_EQ(back.undone, ledger.undone);
  EXPECT_EQ(back.failures.size(), 5000u);
  EXPECT_EQ(back.failures.at(ledger.all.front()).stage, "Deploying");
  EXPECT_EQ(back.failures.at(ledger.all.back()).reason, "Timeout");
}

// 7,900 clusters with the longest names: the lists of the successful and the failed ones would not fit beside theirs.
TEST(Ledger, ThousandsOfTheLongestNamesFitWhateverBecomesOfThem) {
  Ledger ledger;
  for (int index = 0; index < 7900; ++index) ledger.all.push_back(std::to_string(10000 + index) + std::string(58, 'x'));
  ASSERT_TRUE(fits_ledger(ledger.all));
  for (std::size_t index = 0; index < ledger.all.size(); ++index) {
    const auto& name = ledger.all[index];
    if (index % 2 == 0) {
      ledger.succeed(name);
      (index % 4 == 0 ? ledger.cleaned : ledger.unverified).insert(name);
    } else {
      ledger.fail(name, {index % 4 == 1 ? "Deploying" : "Registering", "Timeout", std::string(100, 'm')});
      ledger.rolled_back.insert(name);
      ledger.undone.insert(name);
    }
  }
  const auto data = to_data(ledger);
  EXPECT_LT(kube::json::serialize(data).size(), 1000u * 1024);
  const auto back = ledger_from_data(data);
  EXPECT_EQ(back.success, ledger.success);
  EXPECT_EQ(back.cleaned, ledger.cleaned);
  EXPECT_EQ(back.unverified, ledger.unverified);
  EXPECT_EQ(back.rolled_back, ledger.rolled_back);
  EXPECT_EQ(back.failures.size(), ledger.failures.size());
  EXPECT_EQ(back.failures.at(ledger.all[1]).stage, "Deploying");
}

// A person gives up both hubs, since they are lost: a ledger that cannot be written would keep the migration for ever.
TEST(Ledger, ThousandsOfTheLongestNamesFitAlsoIfAllOfThemAreLeftBehind) {
  Ledger ledger;
  for (int index = 0; index < 7900; ++index) ledger.all.push_back(std::to_string(10000 + index) + std::string(58, 'x'));
  for (std::size_t index = 0; index < ledger.all.size(); ++index) {
    const auto& name = ledger.all[index];
    if (index % 2 == 0)
      ledger.succeed(name);
    else
      ledger.fail(name, {"Registering", "Timeout", std::string(100, 'm')});
    ledger.left_behind.insert("hub2/" + name);
    if (index % 2 == 0) ledger.left_behind.insert("hub1/" + name);
  }
  ledger.left_behind.insert("hub2");
  const auto data = to_data(ledger);
  EXPECT_LT(kube::json::serialize(data).size(), 1000u * 1024);
  const auto back = ledger_from_data(data);
  EXPECT_EQ(back.left_behind, ledger.left_behind);
  EXPECT_EQ(back.success, ledger.success);
}

TEST(TimeBudget, ATinyTimeoutLeavesTimeForAnAttempt) {
  async::VirtualLoop loop;
  const TimeBudget time{loop.clock(), loop.clock().wall_now(), Duration{2}, true};
  EXPECT_GE(time.attempt_timeout(), 1s);
  EXPECT_GE(time.guaranteed_until(), loop.clock().now() + 1s);
  EXPECT_GE(time.unlimited().attempt_timeout(), 10s);
}

TEST(Ledger, IndicesOutOfRangeAreIgnored) {
  const auto ledger = ledger_from_data(
      {{"all-clusters", R"(["a","b"])"}, {"cleaned", R"([[1, 9], [-1, 0], [0], [5, 7], ["a", "b"], 3])"}});
  EXPECT_THAT(ledger.cleaned, ElementsAre("b"));
}

TEST(Ledger, GarbageIsEmpty) {
  EXPECT_EQ(ledger_from_data({}), Ledger{});
  EXPECT_EQ(ledger_from_data({{"all-clusters", "[1, {}"}, {"success", "{}"}, {"failure", 7}}), Ledger{});
}

// Two lists of the same size are not the same clusters.
TEST(Ledger, ANameThatSomebodyHasPutInCountsAsNoArrival) {
  const auto ledger = ledger_from_data({{"all-clusters", R"(["a","b"])"},
                                        {"success", R"(["a","stranger"])"},
                                        {"failure", R"(["another"])"},
                                        {"cleaned", R"(["stranger"])"}});
  EXPECT_FALSE(ledger.all_arrived());
  EXPECT_THAT(ledger.success, ElementsAre("a"));
  EXPECT_THAT(ledger.failures, IsEmpty());
  EXPECT_THAT(ledger.cleaned, IsEmpty());
  EXPECT_THAT(ledger.in_flight(), ElementsAre("b"));
}

// Indices count in the list for which they were written.
TEST(Ledger, ClustersThatAreKnownOtherwiseAreNotReadFromTheListOfAll) {
  for (const auto* all : {R"(["b","stranger"])", "[]", "["}) {
    const auto ledger = ledger_from_data(
        {{"all-clusters", all}, {"success", R"(["a","stranger"])"}, {"undone", "[[0,9]]"}}, {"a", "b"});
    EXPECT_THAT(ledger.all, ElementsAre("a", "b"));
    EXPECT_THAT(ledger.success, ElementsAre("a"));
    EXPECT_THAT(ledger.undone, IsEmpty());
  }
  const auto untouched = ledger_from_data({{"all-clusters", R"(["a","b"])"}, {"undone", "[[1,1]]"}}, {"a", "b"});
  EXPECT_THAT(untouched.undone, ElementsAre("b"));
}

// Every request for one of them would be refused, again and again.
TEST(Ledger, NamesThatNoClusterCanHaveAreIgnored) {
  const auto ledger = ledger_from_data({{"all-clusters", R"(["", "a", "../b", "C", "a/b", "a b", "."])"}});
  EXPECT_THAT(ledger.all, ElementsAre("a"));
}

// The lists are rebuilt from the hubs then, and what has arrived stays so.
TEST(Ledger, WithoutTheListOfAllClustersTheOthersAreKept) {
  const auto ledger = ledger_from_data({{"all-clusters", "["}, {"success", R"(["a"])"}, {"cleaned", R"(["a"])"}});
  EXPECT_THAT(ledger.all, IsEmpty());
  EXPECT_THAT(ledger.success, ElementsAre("a"));
  EXPECT_THAT(ledger.cleaned, ElementsAre("a"));
}

// 1 MiB of ranges, each of all clusters: one by one that would be half a billion names.
TEST(Ledger, RangesThatOverlapCostNoMoreThanOne) {
  Ledger ledger;
  for (int index = 0; index < 7900; ++index) ledger.all.push_back(std::to_string(10000 + index));
  kube::json::array ranges;
  kube::json::array groups;
  kube::json::array given_up;
  for (int index = 0; index < 20'000; ++index) {
    ranges.push_back(kube::json::array{index % 3, 7898});
    groups.push_back(kube::json::object{{"stage", "Deploying"}, {"reason", "Error"}, {"clusters", "[[0,7899]]"}});
    given_up.push_back(kube::json::object{{"hub", "hub" + std::to_string(index)}, {"clusters", "[[0,7899]]"}});
  }
  auto data = to_data(ledger);
  data["cleaned"] = kube::json::serialize(ranges);
  data["success"] = kube::json::serialize(ranges);
  data["failure"] = R"([[7899, 7899]])";
  data["failure-details"] = kube::json::serialize(groups);
  data["left-behind"] = kube::json::serialize(given_up);
  const auto back = ledger_from_data(data);
  EXPECT_THAT(back.cleaned, SizeIs(7899));
  EXPECT_THAT(back.success, SizeIs(7899));
  EXPECT_EQ(back.failures.at(ledger.all.back()).stage, "Deploying");
  EXPECT_THAT(back.left_behind, SizeIs(2 * 7900));
}

/// What somebody may have typed: pieces of a ledger, in any order.
std::string typed(async::Random& random) {
  static const std::vector<std::string> pieces{"[",
                                               "]",
                                               "{",
                                               "}",
                                               ",",
                                               ":",
                                               R"("a")",
                                               R"("b")",
                                               "[0,1]",
                                               "[1,0]",
                                               "[-1,9]",
                                               "7",
                                               R"("stage")",
                                               "null",
                                               R"("clusters")",
                                               R"("[[0,9]]")",
                                               R"("hub")",
                                               R"("hub1")",
                                               R"(["a","b"])",
                                               R"({"a":{}})"};
  std::string text = random.chance(0.5) ? "[" : "";
  for (auto left = random.below(8); left > 0; --left)
    text += pieces[random.below(pieces.size())] + (random.chance(0.5) ? "," : "");
  if (text.ends_with(',')) text.pop_back();
  return text + (random.chance(0.5) ? "]" : "");
}

TEST(Ledger, OfWhateverIsTypedIntoItNothingElseThanItsClustersIsRead) {
  async::Random random{17};
  for (int attempt = 0; attempt < 3000; ++attempt) {
    json::object data = to_data(Ledger{});
    if (random.chance(0.8)) data["all-clusters"] = R"(["a","b","c"])";
    for (auto edits = random.below(6); edits > 0; --edits)
      (data.begin() + static_cast<std::ptrdiff_t>(random.below(data.size())))->value() = typed(random);
    const auto read = ledger_from_data(data);
    const auto text = json::serialize(data);
    if (!read.all.empty())
      for (const auto* list :
           {&read.success, &read.rolled_back, &read.undone, &read.unverified, &read.released, &read.cleaned})
        for (const auto& name : *list) EXPECT_THAT(read.all, testing::Contains(name)) << text;
    for (const auto& [name, failure] : read.failures) EXPECT_FALSE(read.success.contains(name)) << text;
    // It is written back with the next change, and must say the same then.
    EXPECT_EQ(ledger_from_data(to_data(read)), read) << text;
  }
}

TEST(Ledger, ALateArrivalIsNotAFailure) {
  Ledger ledger;
  ledger.all = {"a", "b"};
  ledger.fail("a", {"Registering", "Timeout", "late"});
  ledger.succeed("a");
  EXPECT_THAT(ledger.failures, IsEmpty());
  ledger.fail("a", {"Registering", "Timeout", "again"});
  EXPECT_THAT(ledger.failures, IsEmpty());
  EXPECT_THAT(ledger.in_flight(), ElementsAre("b"));
  EXPECT_THAT(ledger.to_roll_back(), ElementsAre("b"));
}

TEST(StatusReport, CountsAddUpToTheTotal) {
  auto migration = with_spec(sound);
  Ledger ledger;
  ledger.all = {"a", "b", "c"};
  ledger.succeed("a");
  ledger.fail("b", {"Deploying", "Error", std::string(1000, 'x')});
  put_counts(migration, ledger, true);
  const auto& counts = migration.status.at("clusters");
  EXPECT_EQ(counts.at("total").to_number<int>(), 3);
  EXPECT_EQ(counts.at("migrating").to_number<int>(), 1);
  EXPECT_EQ(counts.at("pending").to_number<int>(), 0);
  EXPECT_EQ(counts.at("progress"), "1/3");
  EXPECT_LE(counts.at("failures").at(0).at("message").as_string().size(), longest_failure_shown + 3);
}

TEST(StatusReport, ListsNameTheFirstFewAndCountTheRest) {
  EXPECT_EQ(some_names({"a"}), "a");
  EXPECT_EQ(some_names({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(some_names({"a", "b", "c"}, 2), "a, b and 1 more");
  EXPECT_EQ(some_names({}), "");
  EXPECT_EQ(count_clusters(1), "1 cluster");
}

TEST(StatusReport, AReasonThatManyClustersShareIsSaidOnceAndHidesNoOther) {
  Failures failures;
  for (int number = 10; number < 50; ++number)
    failures.emplace("c" + std::to_string(number), Failure{"Registering", "Timeout", "not Available within 15s"});
  failures.at("c49").message = "no route to host";
  EXPECT_EQ(some_failures(failures), "c10, c11, c12 and 36 more: not Available within 15s; c49: no route to host");
  failures.at("c20").message = "denied";
  EXPECT_EQ(some_failures(failures, 1), "c10, c11, c12 and 35 more: not Available within 15s; and 2 more");
  EXPECT_EQ(some_failures({{"a", {"", "", "gone"}}, {"b", {"", "", "gone"}}}), "a and b: gone");
}

// An identical condition is not a change: nothing is written for it.
TEST(StatusReport, AnIdenticalConditionIsNotChanged) {
  auto migration = with_spec(sound);
  const async::WallTime first{1h};
  set_condition(migration, conditions::started, kube::ConditionStatus::no, "Waiting", "for m0", first);
  const auto before = migration.status;
  set_condition(migration, conditions::started, kube::ConditionStatus::no, "Waiting", "for m0", first + 1h);
  EXPECT_EQ(migration.status, before);
  set_condition(migration, conditions::started, kube::ConditionStatus::no, "Waiting", "for m9", first + 1h);
  const auto& condition = migration.status.at("conditions").at(0);
  EXPECT_EQ(condition.at("lastTransitionTime"), "1970-01-01T01:00:00Z");
  EXPECT_EQ(condition.at("lastUpdateTime"), "1970-01-01T02:00:00Z");
  EXPECT_EQ(condition.at("observedGeneration").to_number<int>(), 3);
}

std::string condition_status(const Migration& migration, std::string_view type) {
  const auto* condition = kube::find_condition_in_status(migration.status, type);
  return condition == nullptr ? "absent" : std::string{kube::string_at(*condition, {"status"})};
}

TEST(Summary, IsReadyAndSucceededOnlyAtTheEndAndNotAfterIt) {
  auto migration = with_spec(sound);
  const async::WallTime now{1h};
  for (const auto& phase : {phases::pending, phases::cleaning, phases::rollbacking}) {
    migration.set_phase(phase);
    put_summary(migration, now);
    EXPECT_EQ(condition_status(migration, conditions::ready), "Unknown") << phase;
    EXPECT_EQ(condition_status(migration, conditions::succeeded), "absent") << phase;
    EXPECT_EQ(condition_status(migration, conditions::stalled), "absent") << phase;
  }
  migration.set_phase(phases::completed);
  put_summary(migration, now);
  EXPECT_EQ(condition_status(migration, conditions::ready), "True");
  EXPECT_EQ(condition_status(migration, conditions::succeeded), "True");
  EXPECT_EQ(condition_status(migration, conditions::stalled), "absent");
  migration.set_phase(phases::cleaning);  // deleted before the cleanup was complete
  put_summary(migration, now);
  EXPECT_EQ(condition_status(migration, conditions::ready), "Unknown");
  EXPECT_EQ(condition_status(migration, conditions::succeeded), "absent");
}

TEST(Summary, CountsTheClustersOfTheStatusThatIsAboutToBeWritten) {
  auto migration = with_spec(sound);
  Ledger ledger;
  ledger.all = {"cluster1", "cluster2"};
  for (const auto& cluster : ledger.all) ledger.success.insert(cluster);
  put_counts(migration, ledger, false);
  migration.set_phase(phases::completed);
  put_summary(migration, async::WallTime{1h});
  EXPECT_THAT(condition_message(migration, conditions::succeeded), testing::StartsWith("2 clusters migrated to "));
}

TEST(Summary, OfAFailedMigrationNamesTheCauseAndNotItself) {
  auto migration = with_spec(sound);
  const async::WallTime now{1h};
  migration.set_phase(phases::pending);
  put_summary(migration, now);
  set_condition(migration, conditions::registered, kube::ConditionStatus::no, "Timeout", "cluster1 is missing", now);
  migration.set_phase(phases::failed);
  for (int twice = 0; twice < 2; ++twice) put_summary(migration, now);
  for (const auto* type : {conditions::ready, conditions::succeeded, conditions::stalled}) {
    EXPECT_EQ(condition_reason(migration, type), "Timeout") << type;
    EXPECT_EQ(condition_message(migration, type), "cluster1 is missing") << type;
  }
  EXPECT_EQ(condition_status(migration, conditions::succeeded), "False");
  EXPECT_EQ(condition_status(migration, conditions::stalled), "True");
  EXPECT_EQ(read_status(migration.status).conditions.size(), 1) << "what people read has them not";
}

Contender contender(std::string uid, int age, ClusterNames clusters, bool active = false) {
  return {uid, {"ns", uid}, std::to_string(1000 - age), "hub1", "hub2", std::move(clusters), active};
}

auto obstacles(const std::vector<Contender>& contenders, std::size_t most = 10) {
  std::vector<const Contender*> all;
  for (const auto& entry : contenders) all.push_back(&entry);
  return find_obstacles(all, most);
}

TEST(Admission, UnrelatedMigrationsRunConcurrently) {
  EXPECT_THAT(obstacles({contender("m1", 3, {"a"}), contender("m2", 2, {"b"}), contender("m3", 1, {"c"}, true)}),
              IsEmpty());
}

TEST(Admission, AMigrationWaitsForTheOneThatHasItsCluster) {
  const auto found = obstacles({contender("old", 9, {"a"}), contender("young", 1, {"a"}, true)});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.at("old"), "waiting for migration ns/young, which has cluster a");
}

// Else small migrations could overtake a large one forever.
TEST(Admission, AWaitingMigrationIsNotOvertaken) {
  const auto found =
      obstacles({contender("m1", 9, {"a"}, true), contender("m2", 5, {"a", "b"}), contender("m3", 1, {"b"})});
  EXPECT_THAT(found.at("m2"), HasSubstr("ns/m1"));
  EXPECT_THAT(found.at("m3"), HasSubstr("ns/m2"));
}

TEST(Admission, NoMoreThanAllowedRunAndTheOldestStartFirst) {
  const auto found = obstacles({contender("m1", 1, {"a"}), contender("m2", 5, {"b"}), contender("m3", 3, {"c"})}, 2);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found.at("m1"), HasSubstr("no more run at once"));
}

TEST(Admission, MigrationsOfOneNameMustNotShareAHub) {
  Contender one = contender("u1", 2, {"a"}, true);
  one.key = {"x", "same"};
  Contender two = contender("u2", 1, {"b"});
  two.key = {"y", "same"};
  two.from = "hub3";
  EXPECT_THAT(obstacles({one, two}).at("u2"), HasSubstr("same name"));
  two.to = "hub4";
  EXPECT_THAT(obstacles({one, two}), IsEmpty());
}

// Both are written as Rollbacking before either asks for its clusters, and again after a restart.
TEST(Admission, OfTwoRollbacksThatShareAClusterOneBeginsAndTheOtherFollows) {
  Admission admission{10};
  const auto rolling_back = [](const char* uid, const char* name) {
    kube::json::object object{{"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", uid}}},
                              {"spec", {{"from", "hub1"}, {"to", "hub2"}, {"includedManagedClusters", {"b"}}}},
                              {"status", {{"phase", phases::rollbacking}}}};
    return Migration{phase::KubeResource{kube::Object{std::move(object)}}};
  };
  const auto first = rolling_back("u1", "m1");
  const auto second = rolling_back("u2", "m2");
  admission.see(first);
  admission.see(second);
  EXPECT_THAT(admission.readmit(first, {"b"}), testing::Optional(HasSubstr("ns/m2, which has cluster b")));
  EXPECT_EQ(admission.readmit(second, {"b"}), std::nullopt);
  EXPECT_THAT(admission.readmit(first, {"b"}), testing::Optional(HasSubstr("ns/m2, which has cluster b")));
  admission.forget("u2");
  EXPECT_EQ(admission.readmit(first, {"b"}), std::nullopt);
}

TEST(Admission, TheSecondToClaimAClusterWaitsAgain) {
  Admission admission{10};
  auto first = with_spec(R"({"from": "hub1", "to": "hub2", "includedManagedClustersPlacementRef": "p"})");
  kube::json::object copy = first.object.json();
  copy["metadata"].as_object()["uid"] = "u2";
  copy["metadata"].as_object()["name"] = "m2";
  const Migration second{phase::KubeResource{kube::Object{copy}}};
  admission.see(first);
  admission.see(second);
  for (const auto* uid : {"u1", "u2"}) {
    EXPECT_FALSE(admission.obstacle(uid));
    admission.begin(uid);
  }
  EXPECT_FALSE(admission.claim("u1", {"a", "b"}));
  EXPECT_THAT(admission.claim("u2", {"b", "c"}).value_or(""), HasSubstr("ns/m1, which has cluster b"));
  EXPECT_TRUE(admission.obstacle("u2"));
  admission.forget("u1");
  EXPECT_FALSE(admission.obstacle("u2"));
}

TEST(Rollback, OneThatAPersonEndedNamesWhatStaysAndTheRemedy) {
  auto migration = with_spec(sound);
  migration.set_rollback_stage(Stage::registering);
  Ledger ledger;
  ledger.all = {"a", "b"};
  ledger.rolled_back = {"a"};
  EXPECT_TRUE(judge_rollback(migration, ledger).success);
  ledger.left_behind = {"hub1/b"};
  const auto verdict = judge_rollback(migration, ledger);
  EXPECT_FALSE(verdict.success);
  EXPECT_EQ(verdict.reason, "LeftBehind");
  EXPECT_THAT(verdict.message, testing::AllOf(HasSubstr("hub1/b"), HasSubstr("To roll b back by hand"),
                                              HasSubstr("hubAcceptsClient"), HasSubstr("migration-request: rollback")));
}

TEST(Pending, WhatAPersonLeavesBehindIsNotPending) {
  auto migration = with_spec(sound);
  migration.object = kube::Object{
      {{"metadata",
        kube::json::object{{"annotations", kube::json::object{{names::leave_annotation, " hub2/a , hub3"}}}}}}};
  Pending pending{migration};
  pending.add("hub2", "a", "held by finalizers");
  pending.add_objects("hub3", "does not answer");
  pending.add("hub3", "c", "does not answer");
  EXPECT_TRUE(pending.empty());
  EXPECT_THAT(pending.given_up(), ElementsAre("hub2/a", "hub3", "hub3/c"));
  pending.add("hub1", "a", "not back");
  pending.add("hub2", "b", "held by finalizers");
  pending.add_objects("hub2", "operation on hub 'hub2' failed");
  EXPECT_TRUE(pending.waits_for("hub1"));
  EXPECT_EQ(pending.message(),
            "2 clusters pending: a: not back; b: held by finalizers. operation on hub 'hub2' failed");
}

TEST(RequestedRollback, OnlyAFailedMigrationWithTheExactValueResumes) {
  const auto asked = [](std::string_view phase, std::string_view word) {
    kube::json::object annotations{{names::request_annotation, word}};
    kube::json::object object{
        {"metadata", kube::json::object{{"name", "m"}, {"uid", "u"}, {"annotations", annotations}}},
        {"status", kube::json::object{{"phase", phase}, {"rollbackStage", "Registering"}}}};
    Migration migration{phase::KubeResource{kube::Object{object}}};
    if (!wants_to_resume(migration)) return false;
    prepare_to_resume(migration, phases::rollbacking, async::WallTime{1h});
    return migration.entered(phases::rollbacking) == async::WallTime{1h};
  };
  EXPECT_TRUE(asked("Failed", "rollback"));
  EXPECT_FALSE(asked("Failed", "Rollback"));
  EXPECT_FALSE(asked("Completed", "rollback"));
  EXPECT_FALSE(asked("Registering", "rollback"));
  EXPECT_FALSE(asked("Rollbacking", "rollback"));
}

}  // namespace
}  // namespace hubferry::migration::test
