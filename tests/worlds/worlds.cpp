// Seeded worlds of hubs, clusters, migrations and everything that can go wrong: `./dev worlds`.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "runner.hpp"

namespace {

using namespace hubferry::worlds;

constexpr const char* usage =
    "usage: worlds [--seeds A..B] [--minutes M] [--replay S] [--hashes] [--first] [--two-leaders] [--upstream-agents]\n"
    "  --seeds A..B  these worlds (default 1..1000)\n"
    "  --minutes M   no world begins later than that\n"
    "  --replay S    one world: its plan, what became of it, and its timeline\n"
    "  --first       end with the first violation, in one line: \"seed: violation\"\n"
    "  --two-leaders in each world two managers lead at once, for a minute and more\n"
    "  --upstream-agents\n"
    "                agents register where they have begun to, until somebody restarts them\n"
    "  --hashes      print what became of each world: two processes must agree, byte for byte. Violations are not\n"
    "                explained\n";

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t last = 1000;
  std::optional<double> minutes;
  std::optional<std::uint64_t> replay;
  bool hashes = false;
  bool first_only = false;
  bool two_leaders = false;
  bool upstream_agents = false;
};

Plan plan_of(const Arguments& arguments, std::uint64_t seed) {
  auto plan = make_plan(seed);
  plan.upstream_agents = arguments.upstream_agents;
  return arguments.two_leaders ? with_two_leaders(std::move(plan)) : plan;
}

[[noreturn]] void refuse(const std::string& why) {
  std::cerr << "worlds: " << why << "\n" << usage;
  std::exit(2);
}

std::uint64_t number(const std::string& text) {
  std::size_t end = 0;
  std::uint64_t value = 0;
  try {
    value = std::stoull(text, &end);
  } catch (const std::exception&) {
    refuse("'" + text + "' is not a number");
  }
  if (end != text.size()) refuse("'" + text + "' is not a number");
  return value;
}

bool takes_nothing(const std::string& name) {
  return name == "--hashes" || name == "--first" || name == "--two-leaders" || name == "--upstream-agents";
}

Arguments parse(int count, char** values) {
  Arguments arguments;
  for (int index = 1; index < count; ++index) {
    std::string name = values[index];
    std::string value;
    if (const auto at = name.find('='); at != std::string::npos) {
      value = name.substr(at + 1);
      name.resize(at);
    } else if (!takes_nothing(name) && index + 1 < count) {
      value = values[++index];
    }
    if (name == "--hashes") {
      arguments.hashes = true;
    } else if (name == "--two-leaders") {
      arguments.two_leaders = true;
    } else if (name == "--upstream-agents") {
      arguments.upstream_agents = true;
    } else if (name == "--first") {
      arguments.first_only = true;
    } else if (name == "--minutes") {
      arguments.minutes = static_cast<double>(number(value));
    } else if (name == "--replay") {
      arguments.replay = number(value);
    } else if (name == "--seeds") {
      const auto dots = value.find("..");
      if (dots == std::string::npos) refuse("--seeds takes A..B, not '" + value + "'");
      arguments.first = number(value.substr(0, dots));
      arguments.last = number(value.substr(dots + 2));
    } else {
      refuse("unknown argument '" + name + "'");
    }
  }
  return arguments;
}

int replay(const Arguments& arguments) {
  Runner runner;
  const auto plan = plan_of(arguments, *arguments.replay);
  const auto result = runner.run(plan, true);
  std::cout << result.timeline << to_string(plan) << "  " << result.summary << "\n" << result.violations;
  return result.violations.empty() ? 0 : 1;
}

/// ", 41 s of CPU time (median 23 ms)"
std::string cost_text(std::vector<double> costs) {
  if (costs.empty()) return {};
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::ranges::nth_element(costs, middle);
  const auto all = std::accumulate(costs.begin(), costs.end(), 0.0);
  return ", " + std::to_string(std::lround(all)) + " s of CPU time (median " +
         std::to_string(std::lround(*middle * 1e3)) + " ms)";
}

int run_all(const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  Runner runner;
  const auto began = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  std::size_t worlds = 0;
  std::size_t violated = 0;
  std::size_t two_leaders = 0;
  std::vector<double> costs;  // in seconds of CPU time: what else the machine does is not in them
  std::map<std::string, std::size_t> endings;
  for (auto seed = arguments.first; seed <= arguments.last; ++seed) {
    if (arguments.minutes && seconds() > *arguments.minutes * 60) break;
    const auto plan = plan_of(arguments, seed);
    const auto result = runner.run(plan);
    ++worlds;
    costs.push_back(result.cpu_seconds);
    if (result.summary.find("two leaders for") != std::string::npos) ++two_leaders;
    for (const auto* ending : {" Completed", " Failed", " gone"})
      for (auto at = result.summary.find(ending); at != std::string::npos; at = result.summary.find(ending, at + 1))
        ++endings[ending + 1];
    if (arguments.hashes) std::cout << "seed " << seed << " " << result.summary << "\n";
    if (result.violations.empty()) continue;
    ++violated;
    if (arguments.first_only || arguments.hashes) {
      std::cout << seed << ": " << result.violations.substr(0, result.violations.find('\n')) << std::endl;
      if (arguments.first_only) break;
      continue;
    }
    std::cout << "VIOLATION\n" << explain(runner, plan, result) << std::endl;
  }
  std::cerr << worlds << " worlds from seed " << arguments.first << ", " << violated << " with violations, "
            << static_cast<double>(worlds) / seconds() << " worlds/s" << cost_text(std::move(costs)) << "; migrations:";
  for (const auto& [ending, count] : endings) std::cerr << " " << count << " " << ending;
  if (two_leaders > 0) std::cerr << "; two leaders at once in " << two_leaders << " worlds";
  std::cerr << "\n";
  return violated == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  const auto arguments = parse(count, values);
  return arguments.replay ? replay(arguments) : run_all(arguments);
}
