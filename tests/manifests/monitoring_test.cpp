#include <gmock/gmock.h>

#include <boost/json/serialize.hpp>
#include <fstream>
#include <regex>
#include <set>

#include "app/manager_process.hpp"
#include "manifest_files.hpp"

namespace hubferry::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(MetricNames, AreFoundInExpressions) {
  EXPECT_THAT(metric_names(R"(sum by (phase) (rate(a_total{x="b", y=~"c|d"}[5m])) / on (x) e:f > 2 unless absent(g))"),
              ElementsAre("a_total", "e:f", "g"));
}

TEST(Alerts, PromtoolAcceptsThem) {
  TemporaryFolder folder;
  const auto file = folder.path() + "/rules.json";
  std::ofstream{file} << json::serialize(alert_rules());
  Process promtool{{"promtool", "check", "rules", "--lint-fatal", file}};
  EXPECT_EQ(promtool.wait(), 0) << promtool.out() << promtool.err();
}

// What must fire and what must not, minute by minute: see alerts_test.yaml.
TEST(Alerts, FireWhenTheyShould) {
  TemporaryFolder folder;
  std::ofstream{folder.path() + "/rules.json"} << json::serialize(alert_rules());
  std::ofstream{folder.path() + "/alerts_test.yaml"} << text_of(source_root() / "tests/manifests/alerts_test.yaml");
  Process promtool{{"promtool", "test", "rules", folder.path() + "/alerts_test.yaml"}};
  EXPECT_EQ(promtool.wait(), 0) << promtool.out() << promtool.err();
}

TEST(Alerts, EachSaysWhatIsWrongAndWhatToDo) {
  const auto rules = alert_rules();
  for (const auto& group : rules.at("groups").as_array())
    for (const auto& rule : group.at("rules").as_array()) {
      EXPECT_TRUE(rule.at("labels").as_object().contains("severity"));
      EXPECT_TRUE(rule.at("annotations").as_object().contains("summary"));
      EXPECT_TRUE(rule.at("annotations").as_object().contains("description"));
    }
}

std::set<std::string> metrics_of(const std::string& page) {
  std::set<std::string> names;
  std::istringstream lines{page};
  const std::regex type{R"(# TYPE ([a-zA-Z0-9_:]+) ([a-z]+)\r?)"};
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, match, type)) continue;
    names.insert(match[1]);
    if (match[2] == "histogram")
      for (const auto* suffix : {"_bucket", "_count", "_sum"}) names.insert(match[1].str() + suffix);
  }
  return names;
}

// A query for a metric that nobody has would show an empty panel, or an alert that never fires.
TEST(Queries, NameOnlyMetricsThatALeadingManagerServes) {
  ManagerProcess manager{{"--leader-elect", "--namespace=default", "--leader-elect-resource-name=hubferry-manager"}};
  TcpClient client{manager.metrics_port()};
  const auto served = metrics_of(client.get("/metrics"));
  EXPECT_GT(served.size(), 20U);
  for (const auto& query : all_queries())
    for (const auto& name : metric_names(query.expression))
      EXPECT_TRUE(served.contains(name)) << query.origin << " asks for " << name;
}

}  // namespace
}  // namespace hubferry::test
