#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "app/status/mysql_status.hpp"

namespace hubferry::app {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

kube::Object parsed(const std::string& text) {
  return kube::Object{boost::json::parse(text).as_object()};
}

kube::Object failed_over_cluster() {
  return parsed(R"({"metadata": {"name": "demo", "namespace": "db"},
    "spec": {"replicas": 3, "mysqlVersion": "10.11"},
    "status": {"phase": "Running", "primary": "demo-1", "replicas": 2,
      "servers": [{"name": "demo-0", "role": "replica", "health": "read-only", "message": "not attached"},
                  {"name": "demo-1", "role": "primary", "health": "writable"}],
      "lastFailover": {"from": "demo-0", "to": "demo-1", "endTime": "2030-01-01T00:00:00Z", "planned": false,
                       "seconds": 1.25, "without": "demo-2"},
      "conditions": [
        {"type": "PrimaryHealthy", "status": "True", "reason": "HeartbeatOK", "message": "primary demo-1"},
        {"type": "ReplicasHealthy", "status": "False", "reason": "ErrantTransactions", "message": "demo-0: not attached"}
      ]}})");
}

kube::Object backup_of(const std::string& cluster) {
  return parsed(R"({"metadata": {"name": "full-)" + cluster + R"(", "namespace": "db"}, "spec": {"cluster": ")" +
                cluster + R"("}, "status": {"phase": "Failed", "source": "demo-2", "message": "no space left"}})");
}

TEST(MysqlStatus, ListsClustersWithTheirProblemAndBackups) {
  const auto lines = mysql_table({failed_over_cluster()}, {backup_of("demo")}, Terminal{});
  EXPECT_THAT(lines, Contains(ContainsRegex("db/demo +Running +demo-1 +2/3 +10.11 +ErrantTransactions: demo-0")));
  EXPECT_THAT(lines, Contains(ContainsRegex("db/full-demo +demo +Failed +demo-2 .*no space left")));
  EXPECT_THAT(mysql_table({}, {}, Terminal{}), testing::ElementsAre("No MySQL clusters found."));
}

TEST(MysqlStatus, ShowsServersConditionsTheLastFailoverAndTheClustersOwnBackups) {
  const auto lines = mysql_details(failed_over_cluster(), {backup_of("demo"), backup_of("other")}, Terminal{});
  EXPECT_THAT(lines, Contains(ContainsRegex("PrimaryHealthy +True +HeartbeatOK")));
  EXPECT_THAT(lines, Contains(ContainsRegex("demo-0 +replica +read-only +not attached")));
  EXPECT_THAT(lines, Contains("Last failover: 2030-01-01T00:00:00Z, from demo-0 to demo-1, 1.2s after the third failed "
                              "probe; given up: demo-2"));
  EXPECT_THAT(lines, Contains(HasSubstr("full-demo")));
  EXPECT_THAT(lines, Each(Not(HasSubstr("full-other"))));
}

}  // namespace
}  // namespace hubferry::app
