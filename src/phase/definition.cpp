#include "hubferry/phase/definition.hpp"

#include <set>

namespace hubferry::phase {

namespace {

std::string join(const std::vector<std::string>& lines) {
  std::string text = "the phase machine's definition cannot work:";
  for (const auto& line : lines) text += "\n  " + line;
  return text;
}

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

class Checker {
 public:
  Checker(const DefinitionBase& definition, std::vector<std::string>& problems)
      : definition_(definition), tables_(definition.tables()), problems_(problems) {}

  void check() {
    if (tables_.initial.empty()) complain("there is no initial phase");
    if (tables_.terminals.empty()) complain("there is no terminal phase");
    if (tables_.is_terminal(tables_.initial))
      complain("phase " + quoted(tables_.initial) + ": it is the initial phase and cannot be terminal as well");
    for (const auto& phase : tables_.in_order()) {
      if (phase == leader_field) complain("phase " + quoted(phase) + ": status.state uses that name for the leader");
      if (tables_.is_terminal(phase)) {
        check_terminal(phase);
      } else {
        check_running(phase);
      }
      if (const auto* handler = definition_.handler_for(phase)) check_node(phase, *handler, quoted(handler->name()));
    }
    for (const auto& jump : tables_.forced) check_forced(jump);
    for (const auto& jump : tables_.resumed) check_resumed(jump);
    for (const auto& [phase, ending] : tables_.terminals)
      if (phase.empty()) complain("a terminal phase has an empty name");
    if (definition_.requeue_delay() <= async::Duration::zero()) complain("the requeue delay must be positive");
    if (definition_.component_limit() == 0) complain("the component limit must be positive");
  }

 private:
  void complain(std::string problem) { problems_.push_back(std::move(problem)); }

  void check_terminal(const Phase& phase) {
    if (tables_.normal.contains(phase))
      complain("phase " + quoted(phase) + ": it is terminal but has a normal transition");
    if (tables_.error.contains(phase))
      complain("phase " + quoted(phase) + ": it is terminal but has an error transition");
    if (definition_.handler_for(phase) != nullptr)
      complain("phase " + quoted(phase) + ": it is terminal but has a handler, which would never run");
  }

  void check_running(const Phase& phase) {
    check_row(phase, "normal", tables_.normal);
    check_row(phase, "error", tables_.error);
    if (!reaches_an_end(phase)) complain("phase " + quoted(phase) + ": no terminal phase can be reached from it");
  }

  void check_row(const Phase& phase, const std::string& table, const std::map<Phase, Phase>& rows) {
    const auto row = rows.find(phase);
    if (row == rows.end()) {
      complain("phase " + quoted(phase) + ": it is not terminal and has no " + table + " transition");
    } else if (row->second.empty()) {
      complain("phase " + quoted(phase) + ": its " + table + " transition leads to a phase with an empty name");
    } else if (row->second == phase) {
      complain("phase " + quoted(phase) + ": its " + table + " transition leads back to itself");
    }
  }

  void check_ends(const Jump& jump, const std::string& kind) {
    for (const auto& phase : {jump.from, jump.to})
      if (!tables_.knows(phase))
        complain("phase " + quoted(phase) + ": a " + kind + " transition names it, but it does not exist");
  }

  void check_forced(const Jump& jump) {
    check_ends(jump, "forced");
    if (tables_.is_terminal(jump.from))
      complain("phase " + quoted(jump.from) + ": it is terminal but has a forced transition: declare a resumption");
  }

  void check_resumed(const Jump& jump) {
    check_ends(jump, "resume");
    if (tables_.knows(jump.from) && !tables_.is_terminal(jump.from))
      complain("phase " + quoted(jump.from) + ": it has a resumption but is not terminal");
    if (tables_.is_terminal(jump.to))
      complain("phase " + quoted(jump.from) + ": its resumption leads to the terminal phase " + quoted(jump.to));
  }

  bool reaches_an_end(const Phase& from) const {
    std::set<Phase> seen{from};
    std::vector<Phase> todo{from};
    while (!todo.empty()) {
      const Phase at = todo.back();
      todo.pop_back();
      if (tables_.is_terminal(at)) return true;
      for (const auto* table : {&tables_.normal, &tables_.error})
        if (const auto row = table->find(at); row != table->end() && seen.insert(row->second).second)
          todo.push_back(row->second);
    }
    return false;
  }

  void check_node(const Phase& phase, const HandlerNode& node, const std::string& path) {
    const auto where = "phase " + quoted(phase) + ", handler " + path + ": ";
    if (node.kind == HandlerKind::leaf && !node.function) complain(where + "it has no function");
    if (node.metadata.view == View::object_detail && !node.detail)
      complain(where + "its view is objectDetail, but there is no function to render it");
    if (node.metadata.timeout < async::Duration::zero()) complain(where + "its timeout is negative");
    if (node.is_composite() && node.metadata.retry.is_set())
      complain(where + "only a leaf has a retry policy: a composite's failures are its components'");
    std::set<std::string> names;
    for (std::size_t at = 0; at < node.components.size(); ++at) {
      const auto& component = node.components[at];
      if (component.name().empty()) {
        complain(where + "its component " + std::to_string(at + 1) +
                 (component.is_composite() ? ", a composite," : "") + " has no name");
      } else if (!names.insert(component.name()).second) {
        complain(where + "two of its components are named " + quoted(component.name()));
      }
      if (node.kind == HandlerKind::parallel && component.metadata.checkpoint)
        complain(where + "its component " + quoted(component.name()) +
                 " asks for a checkpoint, but in a parallel composite nothing comes next: put it into a serial one");
      check_node(phase, component, path + " > " + quoted(component.name()));
    }
  }

  const DefinitionBase& definition_;
  const Tables& tables_;
  std::vector<std::string>& problems_;
};

void visit_tree(const Phase& phase, const HandlerNode& node, std::size_t depth,
                const std::function<void(const Phase&, const HandlerNode&, std::size_t)>& visit) {
  visit(phase, node, depth);
  for (const auto& component : node.components) visit_tree(phase, component, depth + 1, visit);
}

}  // namespace

std::string_view to_string(View view) {
  switch (view) {
    case View::none:
      return "none";
    case View::checklist:
      return "checklist";
    case View::object_detail:
      return "objectDetail";
  }
  return "none";
}

DefinitionError::DefinitionError(std::vector<std::string> problems)
    : std::invalid_argument(join(problems)), problems_(std::move(problems)) {}

void DefinitionBase::check() const {
  std::vector<std::string> problems;
  find_problems(problems);
  Checker{*this, problems}.check();
  if (!problems.empty()) throw DefinitionError(std::move(problems));
}

Phase DefinitionBase::next_phase(const ReconcileState& result) const {
  if (!result.next.empty()) return result.next;
  const Phase current{result.phase};
  const auto follow = [&](const std::map<Phase, Phase>& table) {
    const auto row = table.find(current);
    return row == table.end() ? current : row->second;
  };
  if (result.failed) return result.fatal ? follow(tables().error) : current;
  return result.done ? follow(tables().normal) : current;
}

void for_each_handler(
    const DefinitionBase& definition,
    const std::function<void(const Phase& phase, const HandlerNode& handler, std::size_t depth)>& visit) {
  for (const auto& phase : definition.tables().in_order())
    if (const auto* handler = definition.handler_for(phase)) visit_tree(phase, *handler, 0, visit);
}

void name_roots(std::map<Phase, HandlerNode>& handlers) {
  for (auto& [phase, handler] : handlers)
    if (handler.metadata.name.empty()) handler.metadata.name = phase;
}

}  // namespace hubferry::phase
