#include <fstream>
#include <sstream>

#include "hubferry/phase/render.hpp"
#include "relocator/deployment.hpp"
#include "relocator/slots.hpp"
#include "relocator_test.hpp"

namespace hubferry::relocator::test {
namespace {

TEST(ChildZone, ALongNameIsCutAndHashed) {
  EXPECT_EQ(child_zone_name("c1"), "c1-zone");
  EXPECT_EQ(child_zone_name(std::string(58, 'a')).size(), 63u);
  const std::string name(70, 'a');
  const auto zone = child_zone_name(name);
  EXPECT_EQ(zone.size(), 63u);
  EXPECT_EQ(zone.substr(0, 50), std::string(49, 'a') + "-");
  EXPECT_EQ(zone.substr(58), "-zone");
  EXPECT_NE(child_zone_name(std::string(71, 'a')), zone);
}

TEST(RelocationState, ThePresenceOfAKeyDecidesAndRelocatedWins) {
  const auto stage = [](const std::string& annotations) {
    return relocation_of(json::parse(R"({"metadata": {"annotations": )" + annotations + "}}").as_object()).stage;
  };
  EXPECT_EQ(stage("{}"), Stage::none);
  EXPECT_EQ(stage(R"({"hive.openshift.io/relocating": ""})"), Stage::outgoing);
  EXPECT_EQ(stage(R"({"hive.openshift.io/relocating": "r", "hive.openshift.io/relocation-role": "incoming"})"),
            Stage::incoming);
  EXPECT_EQ(stage(R"({"hive.openshift.io/relocating": "r", "hive.openshift.io/relocated": "r"})"), Stage::complete);
}

class SlotsTest : public testing::Test {
 protected:
  void want(const std::string& relocator, int count, const std::string& destination = "d") {
    for (int i = 0; i < count; ++i) scope.spawn(one(relocator, destination));
  }
  Awaitable<> one(std::string relocator, std::string destination) {
    const auto slot = co_await slots.acquire(destination, relocator);
    served.push_back(relocator);
    most = std::max(most, slots.used(destination));
    co_await loop.clock().sleep_for(1s);
  }

  async::VirtualLoop loop;
  Slots slots{2};
  async::TaskScope scope{loop.executor()};
  std::vector<std::string> served;
  std::size_t most = 0;
};

TEST_F(SlotsTest, RelocatorsThatShareADestinationTakeTurns) {
  want("big", 20);
  want("small", 2);
  loop.run(scope.join());
  EXPECT_EQ(served.size(), 22u);
  EXPECT_EQ(most, 2u);
  const auto last_small = std::find(served.rbegin(), served.rend(), "small");
  EXPECT_LT(served.rend() - last_small, 8);
  EXPECT_EQ(slots.used("d"), 0u);
}

TEST_F(SlotsTest, DestinationsDoNotWaitForEachOther) {
  want("big", 20);
  want("elsewhere", 1, "e");
  loop.run_ready();
  EXPECT_THAT(served, Contains("elsewhere"));
  loop.run(scope.join());
}

TEST_F(SlotsTest, AWaiterThatIsCancelledLeavesNothingBehind) {
  want("a", 5);
  loop.run_for(500ms);
  scope.stop();
  loop.run(scope.join());
  EXPECT_EQ(slots.used("d"), 0u);
  async::TaskScope again{loop.executor()};
  again.spawn(one("b", "d"));
  loop.run(again.join());
  EXPECT_EQ(served.back(), "b");
}

std::string text_of_file(const std::string& path) {
  std::ifstream file{HUBFERRY_SOURCE_ROOT "/" + path};
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Scenarios, EachIsInTheTableWithTestsThatExist) {
  std::set<std::string, std::less<>> tests;
  const auto& program = *testing::UnitTest::GetInstance();
  for (int suite = 0; suite < program.total_test_suite_count(); ++suite)
    for (int test = 0; test < program.GetTestSuite(suite)->total_test_count(); ++test) {
      const std::string name = program.GetTestSuite(suite)->GetTestInfo(test)->name();
      tests.insert(name.substr(0, name.find('/')));
    }
  std::istringstream table{text_of_file("tests/relocator/README.md")};
  int last = 0;
  for (std::string line; std::getline(table, line);) {
    if (!line.starts_with("| " + std::to_string(last + 1) + " |")) continue;
    ++last;
    std::vector<std::string> cells;
    std::istringstream row{line};
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell);
    ASSERT_GE(cells.size(), 4u) << line;
    std::istringstream named{cells[3]};
    int count = 0;
    for (std::string test; named >> test; ++count) EXPECT_TRUE(tests.contains(test)) << last << ": " << test;
    EXPECT_GE(count, 1) << last;
  }
  EXPECT_EQ(last, 52);
}

// What the framework asks of a controller's author beside the phases: no include, comment, or brace alone is counted.
TEST(Wiring, TakesAtMostFortyLines) {
  std::istringstream source{text_of_file("src/relocator/controller.cpp")};
  int lines = 0;
  for (std::string line; std::getline(source, line);) {
    const auto start = line.find_first_not_of(" ");
    const bool counts = start != std::string::npos && line.find_first_not_of(" {};") != std::string::npos &&
                        !line.starts_with("#") && !line.starts_with("namespace") && !line.starts_with("}  // ") &&
                        line.compare(start, 2, "//") != 0;
    lines += counts ? 1 : 0;
  }
  EXPECT_GT(lines, 20);
  EXPECT_LE(lines, 40);
}

// The last suite of this program (by its name, tests run in the order of their files).
TEST(ZTransitions, EachDeclaredOneIsTakenByATest) {
  auto tables = phase_definition().tables();
  tables.error.clear();  // no error is fatal
  EXPECT_EQ(edge_coverage().missing(tables), "");
}

}  // namespace
}  // namespace hubferry::relocator::test
