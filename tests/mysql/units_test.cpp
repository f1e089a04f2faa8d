#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
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

TEST(Scenarios, EachIsInTheTableWithTestsThatExist) {
  const std::filesystem::path root{HUBFERRY_SOURCE_ROOT "/tests"};
  std::stringstream sources;
  for (const auto* directory : {"mysql", "real-mysql", "phase"})
    for (const auto& file : std::filesystem::directory_iterator{root / directory})
      if (file.path().extension() == ".cpp") sources << std::ifstream{file.path()}.rdbuf();
  const auto tests = sources.str();
  std::ifstream table{root / "mysql/README.md"};
  const std::regex numbers{"^\\| ([0-9]+)(?:, ([0-9]+))? \\|"};
  const std::regex name{"[A-Z][A-Za-z0-9]{11,}"};  // longer than the name of a suite
  std::size_t last = 0;
  for (std::string line; std::getline(table, line);) {
    std::smatch row;
    if (!std::regex_search(line, row, numbers)) continue;
    EXPECT_EQ(std::stoul(row[1]), last + 1) << line;
    last = std::stoul(row[2].matched ? row[2] : row[1]);
    const auto cell = line.substr(line.rfind(" | "));
    int count = 0;
    for (std::sregex_iterator at{cell.begin(), cell.end(), name}, end; at != end; ++at) {
      if (at->str() == "OperatorCrash") continue;
      EXPECT_NE(tests.find(", " + at->str()), std::string::npos) << line << at->str();
      ++count;
    }
    EXPECT_GE(count, 1) << line;
  }
  EXPECT_EQ(last, 54U);
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

TEST(ClusterSpec, MalformedReferencesVersionsAndSizesAreNamed) {
  ClusterSpec spec;
  EXPECT_TRUE(problems_of(spec, "db").empty());
  for (const auto* reference : {"ref://", "ref://a/b/c", "ref://other/a", "ref://UPPER", "ref://db/"}) {
    spec.root_password = reference;
    EXPECT_FALSE(problems_of(spec, "db").empty()) << reference;
  }
  spec.root_password = "ref://db/mine";
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

// The part of the Job's script after the backup, with a directory of ours for /backup.
TEST(Retention, KeepsTheLastOfTheScheduleAndNothingElseGoes) {
  const hubferry::test::TemporaryDirectory directory;
  BackupJob job;
  job.cluster = "demo";
  job.keep = 2;
  const auto made = wanted_job(job);
  std::string script{made.at("spec").at("template").at("spec").at("containers").at(0).at("command").at(2).as_string()};
  const auto begin = script.find("[ \"$KEEP\" -gt 0 ]");
  ASSERT_NE(begin, std::string::npos);
  script = script.substr(begin);
  const auto claim = directory.path().string();
  const auto at = script.find("/backup/");
  ASSERT_NE(at, std::string::npos);
  script.replace(at, std::string{"/backup"}.size(), claim);
  ASSERT_EQ(script.find("/backup"), std::string::npos);
  for (const auto* name : {"demo-203001010300", "demo-203001020300", "demo-203001030300", "demo-by-hand",
                           "demo-203001040300.part", "demo-2-203001010300", "other-203001010300"})
    std::filesystem::create_directories(directory.path() / name / "data");
  const auto keep = "export KEEP=" + std::to_string(job.keep) + " CLUSTER=" + job.cluster + "\n";
  ASSERT_EQ(std::system(("set -eu\n" + keep + script).c_str()), 0);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator{directory.path()})
    left.push_back(entry.path().filename().string());
  EXPECT_THAT(left,
              testing::UnorderedElementsAre("demo-203001020300", "demo-203001030300", "demo-by-hand",
                                            "demo-203001040300.part", "demo-2-203001010300", "other-203001010300"));
}

TEST(Passwords, AreSixteenHarmlessCharactersAndDiffer) {
  const auto one = generate_password(16);
  EXPECT_THAT(one.reveal(), testing::MatchesRegex("[A-Za-z0-9]{16}"));
  EXPECT_FALSE(one == generate_password(16));
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
