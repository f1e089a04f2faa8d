#include "ui/model.hpp"

#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>

#include "app/status/migration_json.hpp"
#include "hubferry/migration/phases.hpp"
#include "ui_samples.hpp"

namespace hubferry::ui {
namespace {

using migration::ClusterRecord;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

const kube::Key move_key{"default", "move"};
const std::string move_name = "default/move";

class ModelTest : public testing::Test {
 protected:
  std::string states() { return std::string{model_.clusters(move_name)->at("states").as_string()}; }

  Model model_{app::migration_json, {{"version", "1"}}};
  async::WallTime now_ = async::parse_time("2030-01-01T00:01:00Z");
};

ClusterRecord failed_record(const std::string& name, bool rolled_back) {
  ClusterRecord record;
  record.name = name;
  record.failed = true;
  record.rolled_back = rolled_back;
  record.stage = "Registering";
  record.reason = "Timeout";
  record.message = "not Available on hub 'hub2'";
  return record;
}

TEST_F(ModelTest, AViewerThatAppliesTheEventsHasWhatASnapshotWouldSay) {
  model_.put(migration_object("", {"a", "b", "c"}), now_);
  model_.take_events(now_);
  EXPECT_EQ(states(), "ppp");
  const auto version = model_.clusters(move_name)->at("version").to_number<std::uint64_t>();

  model_.put(migration_object("Registering", {"a", "b", "c"}), now_);
  model_.arrive(move_key, "b", now_);
  const auto events = model_.take_events(now_);
  EXPECT_EQ(event_content(events, "migration").at("it").at("phase"), "Registering");
  const auto clusters = event_content(events, "clusters");
  EXPECT_EQ(clusters.at("version").to_number<std::uint64_t>(), version + 1) << "no event is missing between them";
  EXPECT_EQ(json::serialize(clusters.at("changes")), R"({"m":[0,2],"d":[1]})");
  EXPECT_EQ(clusters.at("counts").at("migrated"), 1);
  EXPECT_EQ(states(), "mdm");
  EXPECT_FALSE(model_.changed());
}

// As `kubectl replace --force` does, between two events: a page that has the clusters of the first must take the
// second's.
TEST_F(ModelTest, AMigrationMadeAgainUnderTheSameNameHasAHigherVersion) {
  const auto version = [this] { return model_.clusters(move_name)->at("version").to_number<std::uint64_t>(); };
  model_.put(migration_object("Registering", {"a", "b"}), now_);
  model_.arrive(move_key, "a", now_);
  model_.take_events(now_);
  const auto before = version();
  model_.remove(move_key);
  model_.put(migration_object("", {"c"}), now_);
  model_.take_events(now_);
  EXPECT_GT(version(), before);
}

TEST_F(ModelTest, ClustersAreNotPartOfTheSnapshot) {
  std::vector<std::string> names;
  for (int number = 0; number < 5000; ++number) names.push_back("cluster-" + std::to_string(10000 + number));
  model_.put(migration_object("Registering", names), now_);
  const auto text = json::serialize(model_.snapshot(now_));
  EXPECT_LT(text.size(), 10'000U);
  EXPECT_EQ(model_.clusters(move_name)->at("names").as_array().size(), 5000U);
}

TEST_F(ModelTest, ALedgerThatIsOlderThanAnArrivalDoesNotTakeItBack) {
  model_.put(migration_object("Registering", {"a", "b"}), now_);
  model_.arrive(move_key, "a", now_);
  ClusterRecord a;
  a.name = "a";
  ClusterRecord b;
  b.name = "b";
  model_.put_clusters(move_key, "uid-1", {a, b}, now_);
  EXPECT_EQ(states(), "dm");
}

TEST_F(ModelTest, ARollbackIsShownWithItsReasonAndHistory) {
  model_.put(migration_object("Registering", {"a"}), now_);
  model_.put_clusters(move_key, "uid-1", {failed_record("a", false)}, now_ + 10s);
  model_.put(migration_object("Rollbacking", {"a"}), now_ + 11s);
  model_.put_clusters(move_key, "uid-1", {failed_record("a", true)}, now_ + 20s);
  const auto cluster = model_.cluster(move_name, "a").value();
  EXPECT_EQ(cluster.at("state"), "rolledBack");
  EXPECT_EQ(cluster.at("reason"), "Timeout");
  EXPECT_EQ(cluster.at("stage"), "Registering");
  std::string history;
  for (const auto& entry : cluster.at("history").as_array())
    history +=
        std::string{entry.at("state").as_string()} + "@" +
        std::to_string(entry.at("since").as_int64() == 0 ? 0 : entry.at("since").as_int64() - milliseconds(now_)) + " ";
  EXPECT_EQ(history, "migrating@0 failed@10000 rolledBack@20000 ");
}

TEST_F(ModelTest, ALedgerOfAnotherMigrationOfTheSameNameIsIgnored) {
  model_.put(migration_object("Registering", {"a"}), now_);
  model_.put_clusters(move_key, "uid-of-a-deleted-one", {failed_record("a", true)}, now_);
  EXPECT_EQ(states(), "m");
}

TEST_F(ModelTest, AMigrationThatWasReplacedStartsOver) {
  model_.put(migration_object("Completed", {"a"}), now_);
  model_.arrive(move_key, "a", now_);
  model_.take_events(now_);
  model_.put(migration_object("", {"a", "b"}, "move", "uid-2"), now_);
  EXPECT_EQ(states(), "pp");
  EXPECT_TRUE(event_content(model_.take_events(now_), "clusters").contains("replaced"));
}

TEST_F(ModelTest, ADeletedMigrationIsReportedOnce) {
  model_.put(migration_object("Completed", {"a"}), now_);
  model_.remove(move_key);
  const auto events = model_.take_events(now_);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(event_content(events, "removed").at("key").as_string(), move_name);
  EXPECT_FALSE(model_.clusters(move_name));
  EXPECT_TRUE(model_.take_events(now_).empty());
}

// A server-sent event ends with an empty line: whatever a name or a message holds must not end it earlier.
TEST_F(ModelTest, HostileTextCannotBreakOutOfAnEvent) {
  const std::string hostile = "<script>alert(1)</script>\n\nevent: snapshot\ndata: {}\r\n\r\n";
  model_.put(migration_object("Registering", {hostile}), now_);
  auto record = failed_record(hostile, false);
  record.message = hostile;
  model_.put_clusters(move_key, "uid-1", {record}, now_);
  for (const auto& event : model_.take_events(now_)) {
    EXPECT_EQ(event.find("\n\n"), event.size() - 2);
    EXPECT_THAT(event, Not(HasSubstr("\r")));
  }
  EXPECT_EQ(model_.cluster(move_name, hostile)->at("message").as_string(), hostile);
}

TEST_F(ModelTest, APlacementHasItsClustersFromTheLedger) {
  auto migration = migration_object("Deploying", {}).json();
  migration["spec"] = json::object{{"from", "hub1"}, {"to", "hub2"}, {"includedManagedClustersPlacementRef", "all"}};
  model_.put(kube::Object{migration}, now_);
  EXPECT_EQ(states(), "");
  ClusterRecord a;
  a.name = "a";
  model_.put_clusters(move_key, "uid-1", {a}, now_);
  EXPECT_EQ(states(), "m");
}

}  // namespace
}  // namespace hubferry::ui
