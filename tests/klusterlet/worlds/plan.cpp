#include "plan.hpp"

#include <algorithm>
#include <array>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/random.hpp"

namespace hubferry::klusterlet::worlds {

using namespace std::chrono_literals;

namespace {

struct Kind {
  Act act;
  const char* name;
  int weight;
  bool lasts;
};

constexpr std::array kinds{Kind{Act::outage, "outage", 6, true},
                           Kind{Act::fault, "fault", 10, true},
                           Kind{Act::revoke, "revoke", 2, true},
                           Kind{Act::forget, "forget", 1, false},
                           Kind{Act::cut_watches, "cut watches", 2, false},
                           Kind{Act::compact, "compact", 1, false},
                           Kind{Act::deny, "deny", 6, true},
                           Kind{Act::delete_cluster, "delete ManagedCluster", 3, false},
                           Kind{Act::delete_lease, "delete Lease", 2, false},
                           Kind{Act::lease_duration, "lease duration", 3, false},
                           Kind{Act::kill, "kill", 6, true},
                           Kind{Act::clock, "clock", 4, false},
                           Kind{Act::reorder, "reorder list", 2, false},
                           Kind{Act::remove_hub, "remove hub from list", 3, true},
                           Kind{Act::break_list, "break list", 3, true},
                           Kind{Act::fresh_token, "fresh token", 3, false},
                           Kind{Act::full_disk, "full disk", 3, true},
                           Kind{Act::dead_disk, "dead disk", 2, true},
                           Kind{Act::stop, "stop", 0, true},
                           Kind{Act::freeze, "freeze", 0, true}};

struct Fault {
  const char* name;
  bool severe;
};
constexpr std::array<Fault, fault_kinds> faults{{{"errors 500 on 20% of writes", false},
                                                 {"errors 500 on 80% of requests", true},
                                                 {"conflicts on 30% of updates", false},
                                                 {"429 with Retry-After on 30% of requests", false},
                                                 {"reset before 20% of requests", false},
                                                 {"reset after 20% of writes", false},
                                                 {"answers take up to 2s", false},
                                                 {"answers take 12s", true},
                                                 {"half of all requests hang", true},
                                                 {"events late by up to 20s, some watches cut", false},
                                                 {"stale lists, history compacted", false},
                                                 {"a fifth of all events lost", true}}};

const Kind& draw_kind(async::Random& random) {
  int all = 0;
  for (const auto& kind : kinds) all += kind.weight;
  auto left = static_cast<int>(random.below(static_cast<std::uint64_t>(all)));
  for (const auto& kind : kinds)
    if ((left -= kind.weight) < 0) return kind;
  return kinds.front();
}

/// Few agents in most worlds: what one agent does wrong shows with one. Many in some, for what they do together.
std::size_t draw_agents(async::Random& random) {
  const auto dice = random.below(100);
  if (dice < 50) return 1 + random.below(3);
  if (dice < 95) return 4 + random.below(9);
  return 13 + random.below(38);
}

/// Most faults are over before an agent has to leave its hub, some last longer than it may be without one.
Duration draw_length(async::Random& random) {
  return random.below(100) < 75 ? random.between(5s, 8min) : random.between(8min, 30min);
}

std::int64_t draw_number(Act act, async::Random& random) {
  static constexpr std::array<std::int64_t, 6> durations{5, 20, 60, 300, 3600, 86400};
  // Seconds: a leap, a time zone, a year, a dead battery.
  static constexpr std::array<std::int64_t, 8> clocks{30, -30, 3600, -7200, 86400, -86400, 63072000, -315360000};
  if (act == Act::lease_duration) return durations[random.below(durations.size())];
  if (act == Act::clock) return clocks[random.below(clocks.size())];
  return 0;
}

}  // namespace

Plan make_plan(std::uint64_t seed) {
  async::Random random{seed * 7919 + 17};
  Plan plan;
  plan.seed = seed;
  plan.hubs = 2 + random.below(3);
  plan.agents = draw_agents(random);
  plan.busy = 15min;
  const auto count = 2 + random.below(plan.agents + 9);
  for (std::size_t index = 0; index < count; ++index) {
    const auto& kind = draw_kind(random);
    Step step;
    step.act = kind.act;
    step.at = random.between(0s, plan.busy);
    if (kind.lasts) step.lasts = draw_length(random);
    step.hub = random.below(plan.hubs);
    step.agent = random.below(plan.agents);
    step.detail = random.below(fault_kinds);
    step.number = draw_number(kind.act, random);
    plan.steps.push_back(step);
  }
  // Drawn last: the other steps of a seed are those that were found before there were stops.
  if (random.below(3) == 0) {
    Step step;
    step.act = Act::stop;
    step.at = random.between(0s, plan.busy);
    step.lasts = draw_length(random);
    step.agent = random.below(plan.agents);
    plan.steps.push_back(step);
  }
  std::ranges::sort(plan.steps, {}, &Step::at);  // to the nanosecond: no two are equal
  return plan;
}

std::string to_string(const Step& step) {
  const auto kind = std::ranges::find(kinds, step.act, &Kind::act);
  std::string text =
      async::format_duration(std::chrono::duration_cast<std::chrono::seconds>(step.at)) + " " + kind->name;
  text += " hub" + std::to_string(step.hub + 1) + " agent" + std::to_string(step.agent);
  if (step.act == Act::fault) text += std::string{" ("} + fault_name(step.detail) + ")";
  if (step.number != 0) text += " " + std::to_string(step.number);
  if (step.lasts > 0s)
    text += " for " + async::format_duration(std::chrono::duration_cast<std::chrono::seconds>(step.lasts));
  return text;
}

std::string to_string(const Plan& plan) {
  std::string text = "seed " + std::to_string(plan.seed) + ": " + std::to_string(plan.hubs) + " hubs, " +
                     std::to_string(plan.agents) + " agents\n";
  for (const auto& step : plan.steps) text += "  " + to_string(step) + "\n";
  return text;
}

const char* fault_name(std::size_t detail) {
  return faults.at(detail).name;
}

bool is_severe(std::size_t detail) {
  return faults.at(detail).severe;
}

}  // namespace hubferry::klusterlet::worlds
