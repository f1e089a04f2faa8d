// Worlds of agents and hubs in which everything goes wrong. By default a sample runs; for all:
//   HUBFERRY_AGENT_WORLDS=1..2000 test_agent_worlds
// and a single one again, with its plan: HUBFERRY_AGENT_WORLDS=17..17.
#include <gtest/gtest.h>

#include <cstdlib>

#include "agent_world.hpp"

namespace hubferry::klusterlet::worlds {
namespace {

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = 10;
};

Seeds seeds_to_run() {
  const char* given = std::getenv("HUBFERRY_AGENT_WORLDS");
  if (given == nullptr) return {};
  const std::string text{given};
  const auto dots = text.find("..");
  if (dots == std::string::npos) throw std::invalid_argument("HUBFERRY_AGENT_WORLDS must be FIRST..LAST");
  return {std::stoull(text.substr(0, dots)), std::stoull(text.substr(dots + 2))};
}

/// The violations of a plan.
std::string violations_of(const Plan& plan) {
  return AgentWorld{plan}.run();
}

/// The same plan without the steps that are not needed for a violation.
Plan shortened(Plan plan) {
  for (std::size_t index = 0; index < plan.steps.size();) {
    auto shorter = plan;
    shorter.steps.erase(shorter.steps.begin() + static_cast<std::ptrdiff_t>(index));
    if (violations_of(shorter).empty())
      ++index;
    else
      plan = std::move(shorter);
  }
  return plan;
}

TEST(AgentWorldsTest, NoAgentIsWithoutAHubThatWouldTakeItAndNoneIsOnTwo) {
  const auto seeds = seeds_to_run();
  std::size_t agents = 0;
  for (auto seed = seeds.first; seed <= seeds.last; ++seed) {
    const auto plan = make_plan(seed);
    agents += plan.agents;
    const auto violations = violations_of(plan);
    if (violations.empty()) continue;
    const auto shortest = shortened(plan);
    ADD_FAILURE() << violations << to_string(plan) << "shortest: " << to_string(shortest) << violations_of(shortest);
  }
  RecordProperty("agents", static_cast<int>(agents));
}

TEST(AgentWorldsTest, AWorldGoesTheSameWayAgain) {
  AgentWorld first{make_plan(3)};
  AgentWorld again{make_plan(3)};
  EXPECT_EQ(first.run(), again.run());
  EXPECT_EQ(first.fingerprint(), again.fingerprint());
}

// A harness that cannot fail proves nothing: an agent that never comes back must be noticed.
TEST(AgentWorldsTest, AnAgentThatCannotLeaveADeadHubIsNoticed) {
  Plan plan;
  plan.seed = 1;
  plan.busy = 30min;
  plan.steps = {{.act = Act::outage, .at = 1min, .lasts = 25min, .hub = 0},
                {.act = Act::freeze, .at = 30s, .lasts = 25min}};
  EXPECT_NE(violations_of(plan).find("is without a hub although hub2 would take it"), std::string::npos);
}

}  // namespace
}  // namespace hubferry::klusterlet::worlds
