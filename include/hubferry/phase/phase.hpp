#pragma once

#include <map>
#include <string>
#include <vector>

#include "hubferry/kube/object.hpp"

namespace hubferry::phase {

namespace json = boost::json;
using kube::Key;

/// Where a machine stands: a word chosen by whoever defines the machine. Empty: it has not begun.
using Phase = std::string;

/// How a terminal phase ends the story.
enum class Ending { success, failure };

/// Which phase follows which. Every phase that is not terminal has a row in both tables.
struct Tables {
  Phase initial;
  std::map<Phase, Ending> terminals;
  std::map<Phase, Phase> normal;  // done without an error
  std::map<Phase, Phase> error;   // failed fatally

  [[nodiscard]] bool is_terminal(const Phase& phase) const { return terminals.contains(phase); }
  /// A terminal phase, or one with a row in a table.
  [[nodiscard]] bool knows(const Phase& phase) const;
  /// All phases in the order in which a machine meets them when all goes well, then the others.
  [[nodiscard]] std::vector<Phase> in_order() const;
};

}  // namespace hubferry::phase
