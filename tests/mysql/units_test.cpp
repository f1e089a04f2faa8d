#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "hubferry/mysql/controller.hpp"
#include "hubferry/mysql/exporter.hpp"
#include "hubferry/mysql/resource.hpp"
#include "hubferry/sql/sql.hpp"
#include "mysql/backup_job.hpp"
#include "mysql/candidate.hpp"
#include "mysql/children.hpp"
#include "mysql/cron.hpp"
#include "mysql/gtid.hpp"
#include "mysql/server.hpp"
#include "mysql_test.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::mysql {
namespace {

using namespace std::chrono_literals;

TEST(Gtid, APositionHasMoreIfOneDomainIsAheadOrDiverged) {
  const auto one = parse_gtid("0-100-5,1-100-7");
  EXPECT_FALSE(has_more(one, one));
  EXPECT_TRUE(has_more(parse_gtid("0-100-6"), one));
  EXPECT_TRUE(has_more(parse_gtid("2-1-1"), one));
  EXPECT_TRUE(has_more(parse_gtid("0-101-5"), one)) << "the same number, written by another server";
  EXPECT_FALSE(has_more(parse_gtid("0-101-4"), one));
  EXPECT_FALSE(has_more(parse_gtid(""), one));
  EXPECT_EQ(parse_gtid("nonsense,,0-x"), GtidPosition{});
}

Candidate candidate(std::string pod, std::size_t ordinal, const char* received, std::optional<double> lag) {
  Candidate made;
  made.pod = std::move(pod);
  made.ordinal = ordinal;
  made.received = made.applied = parse_gtid(received);
  made.replicated = true;
  made.lag = lag;
  return made;
}

TEST(Candidates, OfEqualPositionTheLeastLagIsFirstAndUnknownLagLast) {
  const auto order = ranked(
      {candidate("a", 0, "0-1-5", std::nullopt), candidate("b", 1, "0-1-5", 20.0), candidate("c", 2, "0-1-5", 5.0)},
      30s);
  ASSERT_EQ(order.size(), 3U);
  EXPECT_EQ(order[0].pod, "c");
  EXPECT_EQ(order[1].pod, "b");
  EXPECT_EQ(order[2].pod, "a");
}

TEST(Candidates, WhoReceivedLessIsNotEligibleWhateverItsLag) {
  const auto order = ranked({candidate("a", 0, "0-1-4", 0.0), candidate("b", 1, "0-1-5", 29.0)}, 30s);
  ASSERT_EQ(order.size(), 1U);
  EXPECT_EQ(order[0].pod, "b");
}

TEST(Candidates, LaggardsThoseWithAnErrorAndThoseThatNeverReplicatedAreNotEligible) {
  auto failed = candidate("a", 0, "0-1-5", 0.0);
  failed.sql_error = 1062;
  auto fresh = candidate("b", 1, "", 0.0);
  fresh.replicated = false;
  EXPECT_TRUE(ranked({failed, fresh, candidate("c", 2, "0-1-5", 31.0)}, 30s).empty());
}

TEST(Exporter, MissingSeriesAreUnknownAndAnExporterWithoutItsServerIsUnreachable) {
  EXPECT_EQ(verdict_of(std::nullopt), Verdict::unreachable);
  EXPECT_EQ(verdict_of(parse_metrics("mysql_up 0\n")), Verdict::unreachable);
  EXPECT_EQ(verdict_of(parse_metrics("mysql_up 1\n")), Verdict::unknown);
  EXPECT_EQ(verdict_of(parse_metrics("mysql_up 1\nmysql_global_variables_read_only 1\n")), Verdict::read_only);
  const auto sample = parse_metrics(
      "# HELP mysql_up x\nmysql_up 1\nmysql_global_variables_read_only 0\n"
      "mysql_version_info{innodb_version=\"a\",version=\"10.11.19-MariaDB\"} 1\n"
      "mysql_slave_status_seconds_behind_master{connection_name=\"\",master_host=\"h\"} 3\n"
      "mysql_slave_status_slave_io_running{connection_name=\"other\"} 1\n");
  EXPECT_EQ(verdict_of(sample), Verdict::writable);
  EXPECT_EQ(sample.version, "10.11.19-MariaDB");
  EXPECT_EQ(sample.lag, 3.0);
  EXPECT_EQ(sample.io_running, std::nullopt) << "a named connection is not the cluster's replication";
}

TEST(Exporter, ACollectorThatFailedIsNotTakenForAServerWithoutReplication) {
  const auto sample =
      parse_metrics("mysql_up 1\nmysql_exporter_scrape_errors_total{collector=\"collect.slave_status\"} 4\n");
  EXPECT_TRUE(sample.replica_unknown);
}

TEST(Exporter, NumbersThatAreNoneAreMissing) {
  const auto sample = parse_metrics(
      "mysql_up 1\nmysql_slave_status_seconds_behind_master NaN\nmysql_global_variables_read_only -nan\n"
      "mysql_slave_status_last_sql_errno 1e300\nmysql_slave_status_master_server_id -1\n"
      "mysql_global_variables_server_id +Inf\nmysql_global_variables_rpl_semi_sync_master_timeout inf\n");
  EXPECT_TRUE(sample.up);
  EXPECT_EQ(sample.lag, std::nullopt);
  EXPECT_EQ(sample.read_only, std::nullopt);
  EXPECT_EQ(sample.sql_error, std::nullopt);
  EXPECT_EQ(sample.master_server_id, std::nullopt);
  EXPECT_EQ(sample.server_id, std::nullopt);
  EXPECT_EQ(sample.semi_sync_timeout, std::nullopt);
}

/// A server that describes itself with this row, and replicates from nobody.
class OneRow final : public sql::Connection {
 public:
  explicit OneRow(sql::Row row) : row_(std::move(row)) {}
  async::Awaitable<sql::Result<sql::Rows>> query(std::string statement, async::TimePoint) override {
    co_return statement.starts_with("SHOW") ? sql::Rows{} : sql::Rows{row_};
  }

 private:
  sql::Row row_;
};

sql::Result<Facts> facts_of(sql::Row row) {
  async::VirtualLoop loop;
  Session session{std::make_unique<OneRow>(std::move(row)), loop.clock(), nullptr};
  return loop.run(session.facts());
}

// MariaDB 12 has words for it. Taken for read-only, an old primary would count as fenced while it accepts writes.
TEST(Facts, AServerIsReadOnlyOnlyIfItSaysSo) {
  for (const auto* word : {"0", "OFF"}) EXPECT_FALSE(facts_of({{"read_only", word}})->read_only) << word;
  for (const auto* word : {"1", "ON", "NO_LOCK", "NO_LOCK_NO_ADMIN"})
    EXPECT_TRUE(facts_of({{"read_only", word}})->read_only) << word;
  EXPECT_FALSE(facts_of({{"read_only", "perhaps"}}));
  EXPECT_FALSE(facts_of({{"read_only", std::nullopt}}));
  EXPECT_FALSE(facts_of({{"another column", "1"}}));
}

// As server_id, the last three would be the number of another server.
TEST(Facts, NumbersThatAreNoneAreZero) {
  for (const auto* text : {"1e300", "nan", "-1", "4294967396"}) {
    const auto facts = facts_of({{"read_only", "1"}, {"server_id", text}, {"now", text}, {"uptime", "1e300"}});
    ASSERT_TRUE(facts) << text;
    EXPECT_EQ(facts->server_id, 0U) << text;
  }
}

TEST(ClusterSpec, HasItsDefaultsAlsoWhereTheDefinitionHasNone) {
  const auto spec = read_cluster_spec(boost::json::parse(R"({"spec": {}})").as_object());
  EXPECT_EQ(spec.replicas, 3U);
  EXPECT_EQ(spec.version, "10.11");
  EXPECT_EQ(spec.storage_size, "10Gi");
  EXPECT_EQ(spec.service_type, "NodePort");
  EXPECT_TRUE(spec.semi_sync);
  EXPECT_EQ(spec.lag_limit, 30s);
  EXPECT_EQ(spec.cool_down, 300s);
}

// A number that says "never".
TEST(ClusterSpec, AVeryLongTimeIsNoneThatIsOverAlready) {
  for (const auto* seconds : {"99999999999", "9223372036854775807"}) {
    const auto text = std::string{R"({"spec": {"failoverCoolDownSeconds": )"} + seconds +
                      R"(, "drainTimeoutSeconds": )" + seconds + "}}";
    const auto spec = read_cluster_spec(boost::json::parse(text).as_object());
    EXPECT_GT(spec.cool_down, 24h * 365) << seconds;
    EXPECT_GT(spec.drain_timeout, 24h * 365) << seconds;
  }
  const auto negative = R"({"spec": {"drainTimeoutSeconds": -1}})";
  EXPECT_EQ(read_cluster_spec(boost::json::parse(negative).as_object()).drain_timeout, 0s);
}

/// What a server takes from its configuration: of several values of one section the last.
std::map<std::string, std::string> settings_of(const ClusterSpec& spec) {
  const auto config = wanted_config({"demo", "db"}, spec);
  std::istringstream lines{std::string{kube::string_at(config, {"data", "hubferry.cnf"})}};
  std::map<std::string, std::string> settings;
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('[')) section = line;
    const auto equals = line.find('=');
    if (section == "[mariadbd]" && equals != std::string::npos)
      settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return settings;
}

// Otherwise an old primary that returns accepts writes beside the new one.
TEST(ClusterSpec, ItsConfigurationCannotMakeAServerStartWritable) {
  ClusterSpec spec;
  spec.config = "max_connections=500\nread_only=OFF\nskip_slave_start=OFF\nlog_slave_updates=OFF\n[client]\nuser=me";
  const auto settings = settings_of(spec);
  EXPECT_EQ(settings.at("max_connections"), "500");
  for (const auto* name : {"read_only", "skip_slave_start", "log_slave_updates", "gtid_strict_mode"})
    EXPECT_EQ(settings.at(name), "ON") << name;
}

TEST(ClusterSpec, MalformedReferencesVersionsAndSizesAreNamed) {
  ClusterSpec spec;
  EXPECT_TRUE(problems_of(spec, "db").empty());
  for (const auto* reference : {"ref://", "ref://a/b/c", "ref://other/a", "ref://UPPER", "ref://db/"}) {
    spec.root_password = obs::Secret{reference};
    EXPECT_FALSE(problems_of(spec, "db").empty()) << reference;
  }
  spec.root_password = obs::Secret{"ref://db/mine"};
  EXPECT_TRUE(problems_of(spec, "db").empty());
  for (const auto* version : {"latest", "10", "10.", ".1", "10..1", "10.11-beta"}) {
    spec.version = version;
    EXPECT_FALSE(problems_of(spec, "db").empty()) << version;
  }
  spec.version = "10.11.6";
  for (const auto* size : {"", "ten", "-1Gi", "10Gb", "1e"}) {
    spec.storage_size = size;
    EXPECT_FALSE(problems_of(spec, "db").empty()) << size;
  }
}

TEST(Cron, FindsTheNextTime) {
  const auto next = [](const char* schedule, const char* after) {
    const auto parsed = CronSchedule::parse(schedule);
    const auto found = parsed ? parsed->next(async::parse_time(after)) : std::nullopt;
    return found ? async::format_time(*found) : "never";
  };
  EXPECT_EQ(next("0 3 * * *", "2030-01-01T03:00:00Z"), "2030-01-02T03:00:00Z");
  EXPECT_EQ(next("0 3 * * *", "2030-01-01T02:59:59Z"), "2030-01-01T03:00:00Z");
  EXPECT_EQ(next("*/20 8-9 * * 1-5", "2030-01-04T09:40:00Z"), "2030-01-07T08:00:00Z") << "a Friday, then Monday";
  EXPECT_EQ(next("0 0 29 2 *", "2030-01-01T00:00:00Z"), "2032-02-29T00:00:00Z");
  EXPECT_EQ(next("0 0 13 * 5", "2030-01-01T00:00:00Z"), "2030-01-04T00:00:00Z") << "the 13th, or a Friday";
  EXPECT_EQ(next("0 0 * * 7", "2030-01-01T00:00:00Z"), "2030-01-06T00:00:00Z") << "Sunday is 0 and 7";
  EXPECT_EQ(next("0 0 30 2 *", "2030-01-01T00:00:00Z"), "never");
  for (const auto* bad : {"", "* * * *", "60 * * * *", "* * 0 * *", "a * * * *", "*/0 * * * *", "5-1 * * * *", "@never",
                          "0 0 * MON *", "0 0 * * MONDAY"})
    EXPECT_FALSE(CronSchedule::parse(bad)) << bad;
}

TEST(Cron, KnowsTheWordsThatCronJobsKnow) {
  const auto next = [](const char* schedule) {
    return async::format_time(
        CronSchedule::parse(schedule).value().next(async::parse_time("2030-01-01T00:00:00Z")).value());
  };
  EXPECT_EQ(next("@daily"), "2030-01-02T00:00:00Z");
  EXPECT_EQ(next("@weekly"), "2030-01-06T00:00:00Z");
  EXPECT_EQ(next("@monthly"), "2030-02-01T00:00:00Z");
  EXPECT_EQ(next("0 5 * * mon-FRI"), "2030-01-01T05:00:00Z");
  EXPECT_EQ(next("0 5 * * SAT"), "2030-01-05T05:00:00Z");
  EXPECT_EQ(next("0 0 1 Mar *"), "2030-03-01T00:00:00Z");
  EXPECT_EQ(next("0 5 ? * SAT"), "2030-01-05T05:00:00Z");
  EXPECT_EQ(next("0 5 */2 * SAT"), "2030-01-01T05:00:00Z") << "every other day, or a Saturday";
}

TEST(Cron, FindsTheLastTimeThatPassedHoweverManyThereWere) {
  const auto last = [](const char* schedule, const char* from, const char* to) {
    const auto found =
        CronSchedule::parse(schedule).value().last_between(async::parse_time(from), async::parse_time(to));
    return found ? async::format_time(*found) : "none";
  };
  EXPECT_EQ(last("* * * * *", "1990-01-01T00:00:00Z", "2030-01-01T00:00:30Z"), "2030-01-01T00:00:00Z");
  EXPECT_EQ(last("0 3 * * *", "2029-12-01T00:00:00Z", "2030-01-01T02:00:00Z"), "2029-12-31T03:00:00Z");
  EXPECT_EQ(last("0 3 1 * *", "2029-06-01T00:00:00Z", "2030-01-01T02:00:00Z"), "2029-12-01T03:00:00Z");
  EXPECT_EQ(last("0 3 1 6 *", "2025-06-01T04:00:00Z", "2030-01-01T02:00:00Z"), "2029-06-01T03:00:00Z");
  EXPECT_EQ(last("0 3 * * *", "2030-01-01T03:00:00Z", "2030-01-02T02:59:59Z"), "none")
      << "the first is not after itself";
  EXPECT_EQ(last("0 3 * * *", "2030-01-01T03:00:00Z", "2030-01-02T03:00:00Z"), "2030-01-02T03:00:00Z");
}

TEST(Passwords, AreSixteenHarmlessCharactersAndDiffer) {
  const auto one = generate_password(16);
  EXPECT_THAT(one.reveal(), testing::MatchesRegex("[A-Za-z0-9]{16}"));
  EXPECT_FALSE(one == generate_password(16));
}

std::string text_of_source(const std::filesystem::path& path) {
  std::ifstream file{std::filesystem::path{HUBFERRY_SOURCE_ROOT} / path};
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Scenarios, EachIsInTheTableWithTestsThatExist) {
  std::set<std::string, std::less<>> in_memory;
  const auto& program = *testing::UnitTest::GetInstance();
  for (int suite = 0; suite < program.total_test_suite_count(); ++suite)
    for (int test = 0; test < program.GetTestSuite(suite)->total_test_count(); ++test) {
      const std::string name = program.GetTestSuite(suite)->GetTestInfo(test)->name();
      in_memory.insert(name.substr(0, name.find('/')));
    }
  std::string on_real_servers;
  const std::filesystem::path real_mysql{"tests/real-mysql"};
  for (const auto& entry :
       std::filesystem::directory_iterator{std::filesystem::path{HUBFERRY_SOURCE_ROOT} / real_mysql})
    if (entry.path().extension() == ".cpp") on_real_servers += text_of_source(real_mysql / entry.path().filename());
  std::istringstream table{text_of_source("tests/mysql/README.md")};
  int last = 0;
  for (std::string line; std::getline(table, line);) {
    if (!line.starts_with("| " + std::to_string(last + 1) + " |")) continue;
    ++last;
    std::vector<std::string> cells;
    std::istringstream row{line};
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 6U) << line;
    int counts[] = {0, 0};
    std::istringstream memory{cells[4]};
    for (std::string test; memory >> test; ++counts[0]) EXPECT_TRUE(in_memory.contains(test)) << last << ": " << test;
    std::istringstream real{cells[5]};
    for (std::string test; real >> test; ++counts[1])
      EXPECT_THAT(on_real_servers, testing::HasSubstr(", " + test + ") {")) << last;
    if (cells[2].find('A') != std::string::npos) EXPECT_GE(counts[0], 1) << last;
    if (cells[2].find('M') != std::string::npos) EXPECT_GE(counts[1], 1) << last;
  }
  EXPECT_EQ(last, 54);
}

// After all others: this file is the last of the program.
TEST(Coverage, EveryTransitionOfBothMachinesIsTakenBySomeTest) {
  if (testing::GTEST_FLAG(filter) != "*") GTEST_SKIP() << "not all tests ran";
  EXPECT_EQ(test::coverage().missing(cluster_definition().tables()), "");
  EXPECT_EQ(test::coverage().missing(backup_definition().tables()), "");
}

TEST(Sql, LiteralsCannotEndEarly) {
  EXPECT_EQ(sql::quoted("it's"), "'it\\'s'");
  EXPECT_EQ(sql::quoted("\\' OR 1"), "'\\\\\\' OR 1'");
}

}  // namespace
}  // namespace hubferry::mysql
