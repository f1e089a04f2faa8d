#include "hubferry/phase/render.hpp"

namespace hubferry::phase {

namespace {

/// Phases are arbitrary text; the identifiers of a graph are not.
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

std::string mermaid_quoted(std::string_view text) {
  return '"' + replaced(text, '"', "#quot;") + '"';
}

std::string mermaid_arrow(const Edge& edge) {
  const auto label = [](const std::string& text) {
    return text.empty() ? std::string{} : "|" + mermaid_quoted(text) + "|";
  };
  switch (edge.kind) {
    case EdgeKind::normal:
      return " --> ";
    case EdgeKind::error:
      return " -. error .-> ";
    case EdgeKind::forced:
      return " ==>" + label(edge.when) + " ";
    case EdgeKind::resume:
      return " -.->" + label(edge.when.empty() ? "resume" : "resume: " + edge.when) + " ";
  }
  return " --> ";
}

std::string dot_style(const Edge& edge) {
  const auto label = edge.when.empty() ? std::string{} : ", label=" + dot_quoted(edge.when);
  switch (edge.kind) {
    case EdgeKind::normal:
      return "";
    case EdgeKind::error:
      return " [style=dotted, color=red]";
    case EdgeKind::forced:
      return " [style=bold" + label + "]";
    case EdgeKind::resume:
      return " [style=dashed, color=blue" + label + "]";
  }
  return "";
}

}  // namespace

std::string render_mermaid(const DefinitionBase& definition) {
  const auto& tables = definition.tables();
  const auto phases = tables.in_order();
  const auto names = identifiers(phases);
  std::string out = "flowchart TD\n";
  for (const auto& phase : phases) {
    const bool terminal = tables.is_terminal(phase);
    const auto label = mermaid_quoted(phase);
    out += "  " + names.at(phase) + (terminal ? "([" : "[") + label + (terminal ? "])" : "]") + "\n";
  }
  for (const auto& edge : tables.edges())
    out += "  " + names.at(edge.from) + mermaid_arrow(edge) + names.at(edge.to) + "\n";
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
  for (const auto& edge : tables.edges())
    out += "  " + dot_quoted(edge.from) + " -> " + dot_quoted(edge.to) + dot_style(edge) + ";\n";
  out += "}\n";
  return out;
}

}  // namespace hubferry::phase
