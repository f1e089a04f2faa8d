#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <fstream>
#include <regex>
#include <set>

#include "manifest_files.hpp"
#include "support/process.hpp"
#include "support/tcp_client.hpp"
#include "support/temporary_directory.hpp"

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
  TemporaryDirectory directory;
  const auto file = directory.file("rules.json");
  std::ofstream{file} << json::serialize(alert_rules());
  Process promtool{{"promtool", "check", "rules", "--lint-fatal", file}};
  EXPECT_EQ(promtool.wait(), 0) << promtool.out() << promtool.err();
}

// What must fire and what must not, minute by minute: see alerts_test.yaml.
TEST(Alerts, FireWhenTheyShould) {
  TemporaryDirectory directory;
  std::ofstream{directory.file("rules.json")} << json::serialize(alert_rules());
  std::ofstream{directory.file("alerts_test.yaml")} << text_of(source_root() / "tests/manifests/alerts_test.yaml");
  Process promtool{{"promtool", "test", "rules", directory.file("alerts_test.yaml")}};
  EXPECT_EQ(promtool.wait(), 0) << promtool.out() << promtool.err();
}

TEST(Alerts, EachDescribesTheProblemAndWhatToDo) {
  const auto rules = alert_rules();
  for (const auto& group : rules.at("groups").as_array())
    for (const auto& rule : group.at("rules").as_array()) {
      EXPECT_TRUE(rule.at("labels").as_object().contains("severity"));
      EXPECT_TRUE(rule.at("annotations").as_object().contains("summary"));
      EXPECT_TRUE(rule.at("annotations").as_object().contains("description"));
    }
}

/// The selectors of metrics whose names are not ours alone: "workqueue_depth{name=...}".
std::vector<std::string> shared_selectors(const std::string& expression) {
  std::vector<std::string> selectors;
  const std::regex selector{R"(\b(workqueue|rest_client|process|event_recorder)_[a-z_]+(\{[^}]*\})?)"};
  for (std::sregex_iterator match{expression.begin(), expression.end(), selector}, end; match != end; ++match)
    selectors.push_back(match->str());
  return selectors;
}

// Every operator has these metrics: an alert on all of them would wake somebody for the trouble of a stranger.
TEST(Queries, SelectOnlyOurOwnSeries) {
  std::size_t checked = 0;
  for (const auto& query : all_queries())
    for (const auto& selector : shared_selectors(query.expression)) {
      ++checked;
      // The dashboard's variable has the jobs that serve hubferry_build_info.
      EXPECT_THAT(selector, testing::AnyOf(HasSubstr("job=\"hubferry\""), HasSubstr("job=~\"$job\""))) << query.origin;
    }
  EXPECT_GT(checked, 15U);
}

// The alerts' job="hubferry" is the value of that label of the Service.
TEST(Queries, AServiceMonitorOfEachManagerNamesTheJobThatTheAlertsSelect) {
  for (const std::string suffix : {"", "-mysql"}) {
    const auto monitor = find_manifest("ServiceMonitor", "hubferry" + suffix);
    EXPECT_EQ(kube::string_at(monitor.content, {"spec", "jobLabel"}), "app.kubernetes.io/name");
    const auto service = find_manifest("Service", "hubferry" + suffix + "-metrics");
    const auto& labels = service.content.at("metadata").at("labels");
    EXPECT_EQ(labels.at("app.kubernetes.io/name"), "hubferry");
    EXPECT_EQ(monitor.content.at("spec").at("selector").at("matchLabels"), labels) << "it selects that Service";
    EXPECT_EQ(kube::string_at(monitor.content, {"metadata", "namespace"}),
              kube::string_at(service.content, {"metadata", "namespace"}));
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

/// Reads on in what a process logs as JSON until `message` comes, and returns that line's port.
std::uint16_t port_in(Process& process, const std::string& message) {
  std::istringstream lines{process.await_error_text("\"" + message + "\"")};
  for (std::string line; std::getline(lines, line);) {
    const auto object = json::parse(line).as_object();
    if (std::string{object.at("msg").as_string()} == message) return object.at("port").to_number<std::uint16_t>();
  }
  throw std::runtime_error("no port in the log");
}

// A query for a metric that nobody has would show an empty panel, or an alert that never fires. They are all there from
// the start, before the first migration.
TEST(Queries, UseOnlyMetricsThatALeadingManagerServes) {
  TemporaryDirectory directory;
  Process world{{hubferry_binary(), "sim", "--clusters", "1", "--kubeconfig-dir", directory.path()}};
  world.await_output_text("hub2.kubeconfig");
  Process manager{{hubferry_binary(), "manager", "--kubeconfig", directory.file("global.kubeconfig"), "--leader-elect",
                   "--namespace=default", "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0",
                   "--controllers=migration,relocator,mysql"}};
  const auto port = port_in(manager, "serving metrics");
  manager.await_error_text("migration cache synced");
  std::set<std::string> served;
  const auto give_up = std::chrono::steady_clock::now() + Process::timeout;
  // The hubs are looked at a moment later.
  while (!served.contains("hubferry_hub_reachable") && std::chrono::steady_clock::now() < give_up) {
    TcpClient client{port};
    served = metrics_of(client.get("/metrics"));
  }
  EXPECT_GT(served.size(), 50U);
  // By relocator: they begin with its first relocation (tests/relocator).
  served.insert({"hive_cluster_relocations", "hive_aborted_cluster_relocations"});
  for (const auto& query : all_queries())
    for (const auto& name : metric_names(query.expression))
      EXPECT_TRUE(served.contains(name)) << query.origin << " asks for " << name;
  manager.signal(SIGTERM);
  EXPECT_EQ(manager.wait(), 0);
}

}  // namespace
}  // namespace hubferry::test
