#include "hubferry/phase/render.hpp"

namespace hubferry::phase {

namespace {

/// Phases are any text; the pictures' own names are not.
std::map<Phase, std::string> identifiers(const std::vector<Phase>& phases) {
  std::map<Phase, std::string> names;
  for (const auto& phase : phases) names.emplace(phase, "p" + std::to_string(names.size()));
  return names;
}

std::string replaced(std::string_view text, char what, std::string_view with) {
  std::string out;
  for (const char letter : text) {
    if (letter == what) {
      out += with;
    } else if (static_cast<unsigned char>(letter) < ' ') {
      out += ' ';
    } else {
      out += letter;
    }
  }
  return out;
}

std::string dot_quoted(std::string_view text) {
  return '"' + replaced(replaced(text, '\\', "\\\\"), '"', "\\\"") + '"';
}

}  // namespace

std::string render_mermaid(const DefinitionBase& definition) {
  const auto& tables = definition.tables();
  const auto phases = tables.in_order();
  const auto names = identifiers(phases);
  std::string out = "flowchart TD\n";
  for (const auto& phase : phases) {
    const bool terminal = tables.is_terminal(phase);
    const auto label = '"' + replaced(phase, '"', "#quot;") + '"';
    out += "  " + names.at(phase) + (terminal ? "([" : "[") + label + (terminal ? "])" : "]") + "\n";
  }
  for (const auto& phase : phases) {
    if (const auto row = tables.normal.find(phase); row != tables.normal.end())
      out += "  " + names.at(phase) + " --> " + names.at(row->second) + "\n";
    if (const auto row = tables.error.find(phase); row != tables.error.end())
      out += "  " + names.at(phase) + " -. error .-> " + names.at(row->second) + "\n";
  }
  return out;
}

std::string render_dot(const DefinitionBase& definition) {
  const auto& tables = definition.tables();
  const auto phases = tables.in_order();
  std::string out = "digraph phases {\n  node [shape=box];\n";
  for (const auto& phase : phases) {
    out += "  " + dot_quoted(phase);
    if (const auto ending = tables.terminals.find(phase); ending != tables.terminals.end())
      out +=
          ending->second == Ending::success ? " [shape=doublecircle, color=green]" : " [shape=doublecircle, color=red]";
    out += ";\n";
  }
  for (const auto& phase : phases) {
    if (const auto row = tables.normal.find(phase); row != tables.normal.end())
      out += "  " + dot_quoted(phase) + " -> " + dot_quoted(row->second) + ";\n";
    if (const auto row = tables.error.find(phase); row != tables.error.end())
      out += "  " + dot_quoted(phase) + " -> " + dot_quoted(row->second) + " [style=dotted, color=red];\n";
  }
  out += "}\n";
  return out;
}

}  // namespace hubferry::phase
