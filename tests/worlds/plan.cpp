#include "plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "hubferry/async/clock.hpp"
#include "hubferry/async/random.hpp"

namespace hubferry::worlds {

using namespace std::chrono_literals;

namespace {

struct Kind {
  Act act;
  const char* name;
  int weight;
  bool lasts;
};

constexpr std::array kinds{Kind{Act::outage, "outage", 10, true},
                           Kind{Act::errors, "errors 500", 6, true},
                           Kind{Act::conflicts, "conflicts 409", 4, true},
                           Kind{Act::throttling, "throttling 429", 4, true},
                           Kind{Act::resets_before, "resets before", 4, true},
                           Kind{Act::resets_after, "resets after", 8, true},
                           Kind{Act::slow, "slow answers", 6, true},
                           Kind{Act::hanging, "hanging requests", 6, true},
                           Kind{Act::late_events, "late events", 5, true},
                           Kind{Act::stalled_watches, "stalled watches", 4, true},
                           Kind{Act::reordered_events, "reordered events", 3, true},
                           Kind{Act::repeated_events, "repeated events", 2, true},
                           Kind{Act::stale_lists, "stale lists", 4, true},
                           Kind{Act::refusals, "refusals", 5, true},
                           Kind{Act::hub_clock, "wrong clock", 3, true},
                           Kind{Act::cut_watches, "cut watches", 3, false},
                           Kind{Act::compaction, "compaction", 2, false},
                           Kind{Act::kill, "kill manager", 12, true},
                           Kind{Act::pause, "pause manager", 8, true},
                           Kind{Act::lease_deletion, "delete Lease", 2, false},
                           Kind{Act::lease_theft, "steal Lease", 2, false},
                           Kind{Act::clock_jump, "jump of the clock of manager", 2, true},
                           Kind{Act::severance, "agents cut off from the target", 6, true},
                           Kind{Act::agent_off, "agent off", 6, true},
                           Kind{Act::agent_restart, "agent restart", 4, false},
                           Kind{Act::migration_deletion, "delete migration", 5, false},
                           Kind{Act::rollback_request, "request rollback", 3, false},
                           Kind{Act::cluster_edit, "edit ManagedCluster", 3, false},
                           Kind{Act::denial, "deny cluster", 2, true},
                           Kind{Act::copy_deletion, "delete copy", 2, false},
                           Kind{Act::late_copy_deletion, "delete copy in Cleaning", 2, false},
                           Kind{Act::object_deletion, "delete copied object", 3, false},
                           Kind{Act::acceptance, "accept on the source again", 4, true},
                           Kind{Act::namespace_deletion, "delete namespace", 2, false},
                           Kind{Act::kubeconfig_edit, "edit kubeconfig", 3, true},
                           Kind{Act::ledger_edit, "edit ledger", 3, false},
                           Kind{Act::spec_edit, "edit spec", 3, false},
                           Kind{Act::lost_events, "lost events", 0, true},
                           Kind{Act::ledger_omission, "take out of the ledger", 0, false},
                           Kind{Act::slow_clock, "slow clock of manager", 0, false},
                           Kind{Act::sabotage, "sabotage", 0, false}};

constexpr std::array refused{"managedclusters",
                             "klusterletaddonconfigs",
                             "klusterletconfigs",
                             "secrets",
                             "namespaces",
                             "configmaps",
                             "clusterrolebindings",
                             "managedclustermigrations",
                             "managedclusters/status",
                             "delete managedclusters",
                             "delete namespaces",
                             "delete secrets",
                             "create secrets",
                             "create configmaps"};

constexpr std::size_t details = 5040;

const Kind& draw_kind(async::Random& random) {
  int all = 0;
  for (const auto& kind : kinds) all += kind.weight;
  auto left = static_cast<int>(random.below(static_cast<std::uint64_t>(all)));
  for (const auto& kind : kinds)
    if ((left -= kind.weight) < 0) return kind;
  return kinds.front();
}

const Kind& kind_of(Act act) {
  return *std::ranges::find(kinds, act, &Kind::act);
}

/// As likely to be short as long: from `low` to `high`, uniform in its logarithm.
Duration draw_span(async::Random& random, Duration low, Duration high) {
  const auto ratio = static_cast<double>(high.count()) / static_cast<double>(low.count());
  return Duration{static_cast<Duration::rep>(static_cast<double>(low.count()) * std::pow(ratio, random.fraction()))};
}

/// What goes wrong mostly shows with few clusters; some worlds have many, for what they do together.
std::size_t draw_clusters(async::Random& random) {
  const auto dice = random.below(1000);
  if (dice < 700) return 1 + random.below(4);
  if (dice < 950) return 5 + random.below(12);
  if (dice < 995) return 17 + random.below(40);
  return 57 + random.below(144);
}

std::size_t draw_migrations(async::Random& random, std::size_t clusters) {
  const auto dice = random.below(100);
  std::size_t count = 1;
  if (dice >= 60) count = 2 + random.below(3);
  if (dice >= 95) count = 5 + random.below(16);
  return std::min(count, clusters + 2);
}

/// Those of its clusters that are on its source, and in no other migration's set: a cluster is in one.
void make_set(const Plan& plan, MigrationPlan& migration) {
  const auto is_free = [&](std::size_t cluster) {
    return plan.homes[cluster] == migration.from && std::ranges::none_of(plan.migrations, [&](const auto& other) {
             return other.by_set && std::ranges::find(other.clusters, cluster) != other.clusters.end();
           });
  };
  std::vector<std::size_t> clusters;
  std::ranges::copy_if(migration.clusters, std::back_inserter(clusters), is_free);
  if (clusters.empty()) return;
  migration.clusters = std::move(clusters);
  migration.by_set = true;
}

void draw_migration(async::Random& random, Plan& plan) {
  MigrationPlan migration;
  migration.from = plan.homes[random.below(plan.homes.size())];
  do migration.to = 1 + random.below(plan.hubs);
  while (migration.to == migration.from);
  // Of its source, most of the time all: later ones may name what an earlier one has moved, or is moving.
  for (std::size_t cluster = 0; cluster < plan.homes.size(); ++cluster)
    if (plan.homes[cluster] == migration.from ? random.chance(0.7) : random.chance(0.03))
      migration.clusters.push_back(cluster);
  if (migration.clusters.empty())
    for (std::size_t cluster = 0; cluster < plan.homes.size() && migration.clusters.empty(); ++cluster)
      if (plan.homes[cluster] == migration.from) migration.clusters.push_back(cluster);
  migration.at = plan.migrations.empty() ? Duration{0} : random.between(0s, random.chance(0.5) ? 20s : 25min);
  if (random.chance(0.3)) migration.stage_timeout = random.between(20s, 4min);
  if (random.chance(0.15)) make_set(plan, migration);
  plan.migrations.push_back(std::move(migration));
}

/// These begin when their migration has come to a phase.
bool waits_for_phase(Act act) {
  return act == Act::severance || act == Act::late_copy_deletion || act == Act::object_deletion ||
         act == Act::acceptance || act == Act::namespace_deletion;
}

Step draw_step(async::Random& random, const Plan& plan, const Kind& kind) {
  Step step;
  step.act = kind.act;
  step.migration = random.below(plan.migrations.size());
  const auto& migration = plan.migrations[step.migration];
  // Most of what a manager does, it does in the first seconds; a phase that is disturbed lasts for minutes.
  const auto dice = random.below(10);
  const auto window = dice < 5 ? 6s : dice < 8 ? std::chrono::seconds{90} : std::chrono::seconds{25min};
  step.at = migration.at + random.between(0s, window);
  if (kind.lasts) step.lasts = draw_span(random, 50ms, 20min);
  if (waits_for_phase(step.act)) {
    step.at = migration.at + random.between(0s, 1s);
    if (kind.lasts) step.lasts = draw_span(random, 30s, 20min);
  }
  step.side = static_cast<Side>(random.below(3));
  const auto hub = random.below(5);
  step.hub = hub < 2 ? migration.from : hub < 4 ? migration.to : 0;
  step.cluster = migration.clusters[random.below(migration.clusters.size())];
  step.manager = random.below(plan.managers);
  step.detail = random.below(details);
  return step;
}

std::string clock_text(Duration at) {
  return async::format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(at));
}

std::string hub_text(std::size_t hub) {
  return hub == 0 ? "global" : "hub" + std::to_string(hub);
}

}  // namespace

Plan make_plan(std::uint64_t seed) {
  async::Random random{seed * 7919 + 29};
  Plan plan;
  plan.seed = seed;
  plan.hubs = 2;
  if (random.chance(0.3)) plan.hubs = 3 + random.below(3);
  plan.accounts = plan.hubs % 2 == 0;
  plan.newest_import = plan.hubs > 2;
  if (random.chance(0.3)) plan.newest_import = plan.accounts = !plan.accounts;
  plan.homes.resize(draw_clusters(random), 1);
  for (auto& home : plan.homes)
    if (random.chance(0.2)) home = 1 + random.below(plan.hubs);
  const auto migrations = draw_migrations(random, plan.homes.size());
  for (std::size_t index = 0; index < migrations; ++index) draw_migration(random, plan);
  plan.managers = 1 + random.below(2);
  if (random.chance(0.2)) plan.skew = random.between(-90s, 90s);
  const auto steps = 1 + random.below(random.chance(0.8) ? 6 : 18);
  for (std::size_t index = 0; index < steps; ++index) plan.steps.push_back(draw_step(random, plan, draw_kind(random)));
  plan.rules = random.chance(0.5);
  // What came later has a generator of its own: the other worlds stay what they were.
  async::Random later{seed * 15485863 + 11};
  if (later.chance(0.1)) plan.steps.push_back(draw_step(later, plan, kind_of(Act::lost_events)));
  if (later.chance(0.05)) {
    auto step = draw_step(later, plan, kind_of(Act::ledger_omission));
    // Where neither the spec nor the ledger says which clusters it moves, nothing does.
    const auto hides_list = [&](const Step& other) {
      return other.act == Act::spec_edit && other.migration == step.migration;
    };
    if (!plan.migrations[step.migration].by_set && std::ranges::none_of(plan.steps, hides_list))
      plan.steps.push_back(step);
  }
  std::ranges::sort(plan.steps, {}, &Step::at);  // to the nanosecond: no two are equal
  return plan;
}

Plan with_two_leaders(Plan plan) {
  async::Random random{plan.seed * 104729 + 7};
  plan.managers = 2;
  Duration at = random.between(0s, 4s);
  // Whichever leads first: the other takes over, and is then deceived in its turn.
  for (const std::size_t manager : {0U, 1U, 0U}) {
    Step step;
    step.act = Act::slow_clock;
    step.at = at;
    step.lasts = random.between(80s, 120s);
    step.manager = manager;
    at += random.chance(0.5) ? random.between(16s, 30s) : step.lasts + random.between(0s, 20s);
    plan.steps.push_back(step);
  }
  std::ranges::sort(plan.steps, {}, &Step::at);
  return plan;
}

Duration end_of(const Plan& plan) {
  Duration end{0};
  for (const auto& migration : plan.migrations) end = std::max(end, migration.at);
  for (const auto& step : plan.steps) end = std::max(end, step.at + step.lasts);
  return end;
}

Duration jump_of(std::size_t detail) {
  static constexpr std::array<Duration, 4> jumps{-1h, -40s, 40s, 1h};
  return jumps.at(detail % jumps.size());
}

Duration hub_skew_of(std::size_t detail) {
  static constexpr std::array<Duration, 4> skews{-4min, -40s, 40s, 4min};
  return skews.at(detail % skews.size());
}

std::string refused_write(std::size_t detail) {
  return refused.at(detail % refused.size());
}

std::string to_string(const Step& step) {
  static constexpr std::array sides{"the managers", "the agents", "everybody"};
  std::string text = clock_text(step.at) + " " + kind_of(step.act).name;
  if (step.act <= Act::repeated_events)
    text += " of " + hub_text(step.hub) + " for " + sides[static_cast<std::size_t>(step.side)] + ", rate " +
            std::to_string(step.detail % 4);
  else if (step.act <= Act::compaction)
    text += " of " + hub_text(step.hub) +
            (step.act == Act::refusals    ? " of " + refused_write(step.detail)
             : step.act == Act::hub_clock ? " by " + clock_text(hub_skew_of(step.detail))
                                          : "");
  else if (step.act == Act::kill || step.act == Act::pause || step.act == Act::slow_clock)
    text += " " + std::to_string(step.manager);
  else if (step.act == Act::clock_jump)
    text += " " + std::to_string(step.manager) + " by " + clock_text(jump_of(step.detail));
  else if (step.act == Act::kubeconfig_edit)
    text += " of " + hub_text(step.hub) + ", " + std::to_string(step.detail % 5);
  else if (step.act == Act::migration_deletion || step.act == Act::rollback_request || step.act == Act::ledger_edit ||
           step.act == Act::spec_edit || step.act == Act::severance)
    text += " m" + std::to_string(step.migration) + ", " + std::to_string(step.detail);
  else if (step.act >= Act::agent_off)
    text += " cluster " + std::to_string(step.cluster) + " (m" + std::to_string(step.migration) + ")";
  if (step.lasts > 0s) text += " for " + clock_text(step.lasts);
  return text;
}

std::string to_string(const Plan& plan) {
  std::string text = "seed " + std::to_string(plan.seed) + ": " + std::to_string(plan.hubs) + " hubs, " +
                     (plan.accounts ? "ManagedServiceAccounts, " : "") + (plan.newest_import ? "MCE 5.x" : "MCE 2.17") +
                     (plan.rules ? "" : ", no CEL") + (plan.upstream_agents ? ", upstream agents" : "") + ", " +
                     std::to_string(plan.homes.size()) + " clusters, " + std::to_string(plan.managers) + " managers";
  if (plan.skew != 0s) text += ", skew " + clock_text(plan.skew);
  text += "\n";
  for (std::size_t index = 0; index < plan.migrations.size(); ++index) {
    const auto& migration = plan.migrations[index];
    text += "  " + clock_text(migration.at) + " m" + std::to_string(index) + " from " + hub_text(migration.from) +
            " to " + hub_text(migration.to) + ":";
    for (const auto cluster : migration.clusters) text += " " + std::to_string(cluster);
    if (migration.by_set) text += " (a set)";
    if (migration.stage_timeout) text += ", timeout " + clock_text(*migration.stage_timeout);
    text += "\n";
  }
  for (const auto& step : plan.steps) text += "  " + to_string(step) + "\n";
  return text;
}

}  // namespace hubferry::worlds
