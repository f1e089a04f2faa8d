#pragma once

#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "seeded_world.hpp"

namespace hubferry::worlds {

/// Runs plans, each in a clone of hubs that are built once.
class Runner {
 public:
  /// `recorded`: with a timeline.
  Result run(const Plan& plan, bool recorded = false);

  /// The same plan without the steps, migrations and managers that are not needed for a violation.
  Plan shortened(Plan plan);

 private:
  using Profile = std::tuple<std::size_t, bool, bool, bool, bool>;
  std::map<Profile, std::unique_ptr<sim::VirtualWorld>> hubs_;
};

/// Everything that is known of a violation: the plan, the shortest plan, what is violated, and its timeline.
std::string explain(Runner& runner, const Plan& plan, const Result& result);

}  // namespace hubferry::worlds
