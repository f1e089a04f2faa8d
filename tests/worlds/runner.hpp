#pragma once

#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "seeded_world.hpp"

namespace hubferry::worlds {

/// Runs plans, each in a clone of hubs that are built once; small worlds that come again and again, in a clone of hubs
/// with clusters. What becomes of a plan does not depend on it.
class Runner {
 public:
  /// `recorded`: with a timeline.
  Result run(const Plan& plan, bool recorded = false);

  /// The same plan without the steps and managers that are not needed for a violation.
  Plan shortened(Plan plan);

 private:
  struct Built {
    int wanted = 0;                      // so often
    std::unique_ptr<SeededWorld> world;  // of these hubs, whose tasks use it to their end
    std::unique_ptr<sim::VirtualWorld> hubs;
  };

  /// The world to be cloned for the plan; null: its clusters have to be built in the clone.
  SeededWorld* find_built(const Plan& plan);

  using Profile = std::tuple<std::size_t, bool, bool, bool>;
  std::map<Profile, std::unique_ptr<sim::VirtualWorld>> hubs_;
  std::map<Shape, Built> built_;
  std::size_t kept_ = 0;  // of them, with clusters
};

/// Everything that is known of a violation: the plan, the shortest plan, what is violated, and its timeline.
std::string explain(Runner& runner, const Plan& plan, const Result& result);

}  // namespace hubferry::worlds
