#include <algorithm>
#include <set>

#include "hubferry/phase/phase.hpp"

namespace hubferry::phase {

namespace {

const Phase& row_of(const std::map<Phase, Phase>& table, const Phase& phase) {
  static const Phase none;
  const auto row = table.find(phase);
  return row == table.end() ? none : row->second;
}

bool contains(const std::vector<Jump>& jumps, const Phase& from, const Phase& to) {
  return std::any_of(jumps.begin(), jumps.end(), [&](const Jump& jump) { return jump.from == from && jump.to == to; });
}

}  // namespace

std::string_view to_string(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::normal:
      return "normal";
    case EdgeKind::error:
      return "error";
    case EdgeKind::forced:
      return "forced";
    case EdgeKind::resume:
      return "resume";
  }
  return "normal";
}

std::string to_string(const Edge& edge) {
  return edge.from + " -> " + edge.to + " (" + std::string{to_string(edge.kind)} + ")";
}

const Phase& Tables::successor(const Phase& phase) const {
  return row_of(normal, phase);
}

const Phase& Tables::error_successor(const Phase& phase) const {
  return row_of(error, phase);
}

bool Tables::declares(const Phase& from, const Phase& to, EdgeKind kind) const {
  switch (kind) {
    case EdgeKind::normal:
      return !to.empty() && successor(from) == to;
    case EdgeKind::error:
      return !to.empty() && error_successor(from) == to;
    case EdgeKind::forced:
      return contains(forced, from, to);
    case EdgeKind::resume:
      return contains(resumed, from, to);
  }
  return false;
}

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

std::vector<Edge> Tables::edges() const {
  std::vector<Edge> edges;
  for (const auto& phase : in_order()) {
    if (const auto& to = successor(phase); !to.empty()) edges.push_back({phase, to, EdgeKind::normal});
    if (const auto& to = error_successor(phase); !to.empty()) edges.push_back({phase, to, EdgeKind::error});
    for (const auto& jump : forced)
      if (jump.from == phase) edges.push_back({phase, jump.to, EdgeKind::forced, jump.when});
    for (const auto& jump : resumed)
      if (jump.from == phase) edges.push_back({phase, jump.to, EdgeKind::resume, jump.when});
  }
  return edges;
}

}  // namespace hubferry::phase
