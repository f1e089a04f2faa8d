#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "hubferry/phase/machine.hpp"

namespace hubferry::phase {

/// Which transitions of a definition the tests have taken: a test at the end holds them against the tables.
class EdgeCoverage {
 public:
  void take(Edge edge) {
    if (std::find(taken_.begin(), taken_.end(), edge) == taken_.end()) taken_.push_back(std::move(edge));
  }
  /// For MachineOptions::on_transition. This object must outlive it.
  [[nodiscard]] std::function<void(const Transition&)> recorder() {
    return [this](const Transition& transition) { take({transition.from, transition.to, transition.edge}); };
  }
  /// The transitions that nobody has taken, one a line.
  [[nodiscard]] std::string missing(const Tables& tables) const {
    std::string lines;
    for (const auto& edge : tables.edges())
      if (std::find(taken_.begin(), taken_.end(), edge) == taken_.end()) lines += to_string(edge) + "\n";
    return lines;
  }

 private:
  std::vector<Edge> taken_;
};

}  // namespace hubferry::phase
