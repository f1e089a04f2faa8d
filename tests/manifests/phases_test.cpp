#include <gmock/gmock.h>

#include <algorithm>
#include <regex>
#include <set>

#include "hubferry/migration/phases.hpp"
#include "manifest_files.hpp"

/// What users install and read names the phases of the controller's table, no more and no fewer.
namespace hubferry::test {
namespace {

using migration::phase_table;
using migration::PhaseInfo;

std::vector<std::string> phases_where(const std::function<bool(const PhaseInfo&)>& predicate) {
  std::vector<std::string> names;
  for (const auto& phase : phase_table)
    if (predicate(phase)) names.emplace_back(phase.name);
  return names;
}

/// The values that `label` is compared with in an expression: {phase="A"}, {phase=~"A|B"}.
std::vector<std::string> label_values(const std::string& expression, const std::string& label) {
  std::vector<std::string> values;
  const std::regex matcher{"\\b" + label + "(=|=~|!=|!~)\"([^\"]*)\""};
  for (std::sregex_iterator match{expression.begin(), expression.end(), matcher}, end; match != end; ++match) {
    std::istringstream alternatives{(*match)[2].str()};
    for (std::string value; std::getline(alternatives, value, '|');) values.push_back(value);
  }
  return values;
}

TEST(PhasesInManifests, TheSchemaOfStatusPhaseListsTheTable) {
  const auto crd = find_manifest("CustomResourceDefinition", migration::managed_cluster_migrations.plural + "." +
                                                                 migration::managed_cluster_migrations.group);
  const auto& version = crd.content.at("spec").at("versions").as_array().at(0);
  const auto* listed =
      kube::find(version, {"schema", "openAPIV3Schema", "properties", "status", "properties", "phase", "enum"});
  ASSERT_NE(listed, nullptr);
  std::vector<std::string> names;
  for (const auto& name : listed->as_array()) names.emplace_back(name.as_string());
  EXPECT_EQ(names, phases_where([](const PhaseInfo&) { return true; }));
}

TEST(PhasesInManifests, LabelValuesAreFoundInExpressions) {
  EXPECT_THAT(label_values(R"(sum by (phase) (a{phase=~"B|C", x="D"}) unless b{phase="E"})", "phase"),
              testing::ElementsAre("B", "C", "E"));
}

TEST(PhasesInManifests, AlertsAndDashboardNameOnlyPhasesOfTheTable) {
  const auto all = phases_where([](const PhaseInfo&) { return true; });
  const auto undone = phases_where([](const PhaseInfo& phase) { return phase.rollback_depth.has_value(); });
  for (const auto& query : all_queries()) {
    if (query.expression.find("hubferry_migration") == std::string::npos) continue;
    EXPECT_THAT(label_values(query.expression, "phase"), testing::Each(testing::AnyOfArray(all))) << query.origin;
    EXPECT_THAT(label_values(query.expression, "stage"), testing::Each(testing::AnyOfArray(undone))) << query.origin;
  }
}

// A migration that waits in Pending is not stuck, and one that has ended stays where it is.
TEST(PhasesInManifests, TheAlertForStuckMigrationsCoversEveryActivePhase) {
  const auto rules = alert_rules();
  std::vector<std::string> watched;
  for (const auto& group : rules.at("groups").as_array())
    for (const auto& rule : group.at("rules").as_array())
      if (rule.at("alert") == "HubferryMigrationStuck")
        watched = label_values(std::string{rule.at("expr").as_string()}, "phase");
  EXPECT_EQ(watched, phases_where([](const PhaseInfo& phase) { return migration::is_active(phase.name); }));
}

TEST(PhasesInManifests, TheDocumentationHasARowForEachPhaseWithItsTimeout) {
  const auto page = text_of(source_root() / "docs/migrations.md");
  for (const auto& phase : phase_table) {
    if (!migration::is_active(phase.name)) continue;
    const std::regex row{"\\| " + std::string{phase.name} + " \\|[^\\n]*\\| " +
                         std::to_string(phase.default_timeout.count()) + " min \\|"};
    EXPECT_TRUE(std::regex_search(page, row)) << phase.name;
  }
}

}  // namespace
}  // namespace hubferry::test
