// The documentation says what the code, the manifests and its own pages have: no name is missing, none left over.
#include <gmock/gmock.h>

#include <map>
#include <regex>

#include "docs/pages.hpp"
#include "manifests/manifest_files.hpp"
#include "support/process.hpp"

namespace hubferry::test {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

/// The first group of every match of `pattern` in `text`.
std::set<std::string> found(const std::string& text, const std::string& pattern) {
  const std::regex expression{pattern};
  std::set<std::string> all;
  for (std::sregex_iterator match{text.begin(), text.end(), expression}, end; match != end; ++match)
    all.insert((*match)[1]);
  return all;
}

/// From `begin` to the next `end`.
std::string part_of(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  if (from == std::string::npos) throw std::runtime_error("there is no " + begin);
  return text.substr(from, text.find(end, from) - from);
}

/// "missing: a b; left over: c", or nothing.
std::string differences(const std::set<std::string>& described, const std::set<std::string>& existing) {
  std::string text;
  for (const auto& name : existing)
    if (!described.contains(name)) text += "missing: " + name + "\n";
  for (const auto& name : described)
    if (!existing.contains(name)) text += "left over: " + name + "\n";
  return text;
}

std::string source(const std::string& name) {
  return text_of(source_root() / name);
}

TEST(Pages, EveryLinkLeadsToAFileAndAHeadingThatExist) {
  const std::regex link{R"(\]\(([^)#\s]*)(#([^)\s]*))?\))"};
  std::size_t count = 0;
  for (const auto& page : all_pages())
    for (std::sregex_iterator match{page.text.begin(), page.text.end(), link}, end; match != end; ++match) {
      const auto path = (*match)[1].str();
      if (path.starts_with("http")) continue;
      const auto target =
          path.empty() ? fs::path{page.name} : (fs::path{page.name}.parent_path() / path).lexically_normal();
      ++count;
      ASSERT_TRUE(fs::exists(source_root() / target)) << page.name << " links to " << path;
      if ((*match)[3].matched)
        EXPECT_THAT(read_page(target).anchors(), Contains((*match)[3].str()))
            << page.name << " links to " << match->str();
    }
  EXPECT_GT(count, 50U);
}

// A command outside of such a block would not be run by commands_test.cpp.
TEST(Pages, EveryBlockNamesItsLanguage) {
  for (const auto& page : all_pages()) {
    for (const auto& block : page.blocks)
      EXPECT_THAT(block.language, AnyOf("sh", "yaml", "text", "mermaid", "cpp")) << page.name << ":" << block.line;
    EXPECT_THAT(page.text, testing::Not(testing::ContainsRegex("\n    (\\$ )?(kubectl|hubferry|\\./dev|helm) ")))
        << page.name << " has commands in a block that names no language";
    // Else they would be run by no test.
    for (const auto& block : page.blocks)
      if (block.language == "text")
        EXPECT_THAT("\n" + block.text, testing::Not(testing::ContainsRegex("\n(kubectl|hubferry|\\./dev|helm) ")))
            << page.name << ":" << block.line;
  }
}

TEST(Pages, EveryKustomizationThatACommandNamesExists) {
  for (const auto& page : all_pages())
    for (const auto& path : found(page.text, R"(-k (manifests/[a-z/-]+))"))
      EXPECT_TRUE(fs::exists(source_root() / path / "kustomization.yaml")) << page.name << ": " << path;
}

std::string help_of(const std::string& command) {
  static std::map<std::string, std::string> known;
  auto& text = known[command];
  if (text.empty()) {
    Process process{{hubferry_binary(), command, "--help"}};
    EXPECT_EQ(process.wait(), 0) << command;
    text = process.out();
  }
  return text;
}

std::set<std::string> commands() {
  Process process{{hubferry_binary(), "--help"}};
  EXPECT_EQ(process.wait(), 0);
  return found(part_of(process.out(), "commands:", "\n\n"), "\n  ([a-z]+) ");
}

TEST(Pages, EveryFlagInThemIsOneOfItsCommand) {
  const std::regex call{R"(hubferry (agent|[a-z]+)((?: [^`|\n&;<>()]*)?))"};
  const auto known = commands();
  std::size_t count = 0;
  for (const auto& page : all_pages())
    for (std::sregex_iterator match{page.text.begin(), page.text.end(), call}, end; match != end; ++match) {
      const auto command = (*match)[1].str();
      if (!known.contains(command)) continue;
      for (const auto& flag : found((*match)[2], R"( (--[a-z-]+))")) {
        ++count;
        EXPECT_THAT(help_of(command) + " --help ", testing::ContainsRegex("[ ,]" + flag + "[ =\n,]"))
            << page.name << ": " << match->str();
      }
    }
  EXPECT_GT(count, 10U);
  for (const auto& flag : names_in_column(read_page("docs/reference.md").section("Commands and flags"), 0))
    if (flag.starts_with("--")) EXPECT_THAT(help_of("manager"), HasSubstr("  " + flag)) << flag;
}

TEST(Reference, HasEveryCommand) {
  const auto section = read_page("docs/reference.md").section("Commands and flags");
  for (const auto& command : commands())
    EXPECT_THAT(section, testing::ContainsRegex("`" + command + "[` ]")) << command;
}

TEST(Runbook, HasASectionForEachAlertAndNoOther) {
  const auto runbook = read_page("docs/runbook.md");
  std::set<std::string> described;
  for (const auto& heading : runbook.headings)
    if (heading.starts_with("Hubferry")) described.insert(heading);
  std::set<std::string> alerts;
  const auto rules = alert_rules();
  for (const auto& group : rules.at("groups").as_array())
    for (const auto& rule : group.at("rules").as_array()) {
      const std::string name{rule.at("alert").as_string()};
      alerts.insert(name);
      EXPECT_EQ(kube::string_at(rule.as_object(), {"annotations", "runbook_url"}),
                "docs/runbook.md#" + anchor_of(name));
    }
  EXPECT_EQ(differences(described, alerts), "");
}

TEST(Reference, HasEveryMetricOfTheCodeAndNoOther) {
  std::set<std::string> in_code;
  const std::string name =
      "\"((?:hubferry|hive|rest_client|workqueue|leader_election|process|event_recorder|mysqlcluster|mysqlbackup)_[a-z_"
      "]*[a-z])\"";
  for (const auto& entry : fs::recursive_directory_iterator(source_root() / "src")) {
    const auto path = fs::relative(entry.path(), source_root()).string();
    // The page reads the metrics of others.
    if (path.starts_with("src/ui/") || (!path.ends_with(".cpp") && !path.ends_with(".hpp"))) continue;
    in_code.merge(found(text_of(entry.path()), name));
  }
  EXPECT_GT(in_code.size(), 50U);
  EXPECT_EQ(differences(names_in_column(read_page("docs/reference.md").section("Metrics"), 0), in_code), "");
}

/// The texts of the constants in a namespace of a header.
std::set<std::string> constants_in(const std::string& header, const std::string& space) {
  return found(part_of(source(header), "namespace " + space + " {", "}  // namespace " + space), "= \"([A-Za-z]+)\";");
}

TEST(Reference, HasEveryConditionAndReasonOfAMigrationAndNoOther) {
  const auto reference = read_page("docs/reference.md");
  const std::string header = "include/hubferry/migration/resource.hpp";
  EXPECT_EQ(differences(names_in_column(reference.section("Conditions of a migration"), 0),
                        constants_in(header, "conditions")),
            "");
  EXPECT_EQ(
      differences(names_in_column(reference.section("Reasons of conditions"), 0), constants_in(header, "reasons")), "");
  auto of_clusters =
      found(part_of(source("src/hubagent/outcome.cpp"), "to_string(FailureReason", "\n}"), "return \"(\\w+)\"");
  of_clusters.insert("Timeout");
  EXPECT_EQ(differences(names_in_column(reference.section("Reasons of clusters"), 0), of_clusters), "");
  std::set<std::string> of_success{"ResourceRolledBack"};
  for (const auto& entry : fs::directory_iterator(source_root() / "src/migration"))
    of_success.merge(found(text_of(entry.path()), "ConditionStatus::yes,\\s+\"(\\w+)\""));
  EXPECT_EQ(differences(names_in_column(reference.section("Conditions of a migration"), 3), of_success), "");
}

/// The name in the first column, and the verbs in the third.
std::map<std::string, std::set<std::string>> verbs_by_role(const std::string& table) {
  std::map<std::string, std::set<std::string>> rows;
  std::istringstream lines{table};
  for (std::string line; std::getline(lines, line);)
    for (const auto& role : names_in_column(line, 0)) rows[role] = names_in_column(line, 2);
  return rows;
}

// "It reads Secrets" is easily written of an account that may delete them.
TEST(SecurityPage, SaysWhatEachRoleMayDoWithSecrets) {
  std::map<std::string, std::set<std::string>> granted;
  for (const auto& manifest : all_manifests()) {
    if (manifest.kind() != "Role" && manifest.kind() != "ClusterRole") continue;
    for (const auto& rule : manifest.content.at("rules").as_array())
      for (const auto& resource : rule.at("resources").as_array())
        if (resource == "secrets")
          for (const auto& verb : rule.at("verbs").as_array())
            granted[manifest.name()].insert(std::string{verb.as_string()});
  }
  EXPECT_EQ(verbs_by_role(read_page("SECURITY.md").section("Permissions on Secrets, by role")), granted);
}

TEST(Reference, ThePageOfTheRelocatorHasEveryReason) {
  const auto page = read_page("docs/relocator.md");
  const auto reasons = constants_in("include/hubferry/relocator/names.hpp", "reasons");
  EXPECT_GT(reasons.size(), 8U);
  for (const auto& reason : reasons) EXPECT_NE(page.text.find(reason), std::string::npos) << reason;
}

}  // namespace
}  // namespace hubferry::test
