#include "sim/selector.hpp"

#include <algorithm>

namespace hubferry::sim {

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// At commas outside parentheses.
std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> terms;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (const auto term = trim(text.substr(start, i - start)); !term.empty()) terms.push_back(term);
      start = i + 1;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')') {
      --depth;
    }
  }
  return terms;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.emplace_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool is_key(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

const json::value* follow(const json::object& object, const std::vector<std::string>& path) {
  const json::object* at = &object;
  const json::value* found = nullptr;
  for (const auto& step : path) {
    if (at == nullptr) return nullptr;
    found = at->if_contains(step);
    if (found == nullptr) return nullptr;
    at = found->if_object();
  }
  return found;
}

}  // namespace

Outcome<std::vector<Selector::LabelTerm>> Selector::parse_labels(std::string_view text) {
  std::vector<LabelTerm> terms;
  for (const auto term : split_terms(text)) {
    LabelTerm parsed;
    const auto bad = [&] {
      return failures::bad_request("unable to parse requirement: invalid selector term '" + std::string{term} + "'");
    };
    if (const auto paren = term.find('('); paren != std::string_view::npos) {
      const auto head = trim(term.substr(0, paren));
      const auto space = head.find(' ');
      if (space == std::string_view::npos || term.back() != ')') return bad();
      const auto word = trim(head.substr(space));
      if (word != "in" && word != "notin") return bad();
      parsed.op = word == "in" ? Operator::in : Operator::not_in;
      parsed.key = trim(head.substr(0, space));
      parsed.values = split(term.substr(paren + 1, term.size() - paren - 2), ',');
    } else if (const auto unequal = term.find("!="); unequal != std::string_view::npos) {
      parsed = {
          std::string{trim(term.substr(0, unequal))}, Operator::not_in, {std::string{trim(term.substr(unequal + 2))}}};
    } else if (const auto equal = term.find('='); equal != std::string_view::npos) {
      const auto skip = term.substr(equal).starts_with("==") ? 2U : 1U;
      parsed = {std::string{trim(term.substr(0, equal))}, Operator::in, {std::string{trim(term.substr(equal + skip))}}};
    } else if (term.front() == '!') {
      parsed = {std::string{trim(term.substr(1))}, Operator::absent, {}};
    } else {
      parsed = {std::string{term}, Operator::exists, {}};
    }
    if (!is_key(parsed.key)) return bad();
    terms.push_back(std::move(parsed));
  }
  return terms;
}

Outcome<Selector> Selector::parse(std::string_view labels, std::string_view fields,
                                  const std::vector<std::string>& fields_allowed) {
  Selector selector;
  if (!labels.empty()) {
    auto terms = parse_labels(labels);
    if (!terms) return terms.error();
    selector.labels_ = std::move(*terms);
  }
  for (const auto term : split_terms(fields)) {
    const auto equal = term.find('=');
    if (equal == std::string_view::npos)
      return failures::bad_request("invalid selector: '" + std::string{fields} + "'; can't understand '" +
                                   std::string{term} + "'");
    const bool unequal = equal > 0 && term[equal - 1] == '!';
    const auto skip = term.substr(equal).starts_with("==") ? 2U : 1U;
    std::string name{trim(term.substr(0, unequal ? equal - 1 : equal))};
    if (name != "metadata.name" && name != "metadata.namespace" &&
        std::ranges::find(fields_allowed, name) == fields_allowed.end())
      return failures::bad_request("field label not supported: " + name);
    FieldTerm parsed{split(name, '.'), !unequal, std::string{trim(term.substr(equal + skip))}};
    if (name == "metadata.name" && parsed.equal) selector.only_name_ = parsed.value;
    selector.fields_.push_back(std::move(parsed));
  }
  return selector;
}

bool Selector::matches(const json::object& object) const {
  for (const auto& term : fields_) {
    const auto* found = follow(object, term.path);
    const bool same = found != nullptr && found->is_string() ? found->get_string() == term.value : term.value.empty();
    if (same != term.equal) return false;
  }
  if (labels_.empty()) return true;
  const auto* found = kube::find(object, {"metadata", "labels"});
  const auto* labels = found != nullptr ? found->if_object() : nullptr;
  for (const auto& term : labels_) {
    const auto* value = labels != nullptr ? labels->if_contains(term.key) : nullptr;
    const auto* text = value != nullptr ? value->if_string() : nullptr;
    const auto listed = [&] {
      return text != nullptr &&
             std::ranges::find(term.values, std::string_view{*text}, [](const std::string& candidate) {
               return std::string_view{candidate};
             }) != term.values.end();
    };
    switch (term.op) {
      case Operator::in:
        if (!listed()) return false;
        break;
      case Operator::not_in:
        if (listed()) return false;
        break;
      case Operator::exists:
        if (value == nullptr) return false;
        break;
      case Operator::absent:
        if (value != nullptr) return false;
        break;
    }
  }
  return true;
}

}  // namespace hubferry::sim
