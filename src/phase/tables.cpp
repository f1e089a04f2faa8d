#include <set>

#include "hubferry/phase/phase.hpp"

namespace hubferry::phase {

bool Tables::knows(const Phase& phase) const {
  return is_terminal(phase) || normal.contains(phase) || error.contains(phase);
}

std::vector<Phase> Tables::in_order() const {
  std::vector<Phase> order;
  std::set<Phase> seen;
  const auto meet = [&](const Phase& phase) {
    if (!phase.empty() && seen.insert(phase).second) order.push_back(phase);
  };
  for (Phase at = initial; !at.empty() && !seen.contains(at);) {
    meet(at);
    const auto row = normal.find(at);
    at = row == normal.end() ? Phase{} : row->second;
  }
  for (const auto& [from, to] : normal) {
    meet(from);
    meet(to);
  }
  // Failure phases last, in the order in which they can be reached.
  for (std::size_t at = 0; at < order.size(); ++at)
    if (const auto row = error.find(order[at]); row != error.end()) meet(row->second);
  for (const auto& [from, to] : error) {
    meet(from);
    meet(to);
  }
  for (const auto& [phase, ending] : terminals) meet(phase);
  return order;
}

}  // namespace hubferry::phase
