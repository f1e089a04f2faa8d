#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/object.hpp"

namespace hubferry::phase {

namespace json = boost::json;
using kube::Key;

/// The phase that a machine is in: a name chosen by the definition's author. Empty: it has not begun.
using Phase = std::string;

/// How a terminal phase ends a machine.
enum class Ending { success, failure };

/// Why a machine goes from one phase to another.
enum class EdgeKind {
  normal,  // the phase is done
  error,   // the phase failed fatally
  forced,  // a handler returned go_to()
  resume,  // the machine had ended, and its resource asks for more
};
std::string_view to_string(EdgeKind kind);

/// A declared transition besides the two tables.
struct Jump {
  Phase from;
  Phase to;
  std::string when = {};  // for people: the condition under which it is taken
};

/// One transition that a machine can make.
struct Edge {
  Phase from;
  Phase to;
  EdgeKind kind = EdgeKind::normal;
  std::string when = {};

  /// The same transition, whatever its description.
  bool operator==(const Edge& other) const { return from == other.from && to == other.to && kind == other.kind; }
};

/// Every transition there is: a machine makes no other. A phase that is not terminal has a row in both tables.
struct Tables {
  Phase initial;
  std::map<Phase, Ending> terminals;
  std::map<Phase, Phase> normal;   // done without an error
  std::map<Phase, Phase> error;    // failed fatally
  std::vector<Jump> forced = {};   // where handlers may go by go_to()
  std::vector<Jump> resumed = {};  // from a terminal phase back to work; see Definition::resumption()

  [[nodiscard]] bool is_terminal(const Phase& phase) const { return terminals.contains(phase); }
  /// A terminal phase, or one with a row in a table.
  [[nodiscard]] bool knows(const Phase& phase) const;
  [[nodiscard]] bool declares(const Phase& from, const Phase& to, EdgeKind kind) const;
  /// The row of a table; empty where there is none.
  [[nodiscard]] const Phase& successor(const Phase& phase) const;
  [[nodiscard]] const Phase& error_successor(const Phase& phase) const;
  /// All phases in the order in which a machine enters them on success, then the others.
  [[nodiscard]] std::vector<Phase> in_order() const;
  /// All transitions, by the order of the phases that they leave.
  [[nodiscard]] std::vector<Edge> edges() const;
};

/// "Deploying -> Rollbacking (error)".
std::string to_string(const Edge& edge);

}  // namespace hubferry::phase
