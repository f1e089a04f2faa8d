#include "hubferry/kube/selector.hpp"

#include <algorithm>

namespace hubferry::kube {

namespace {

Error invalid(std::string message) {
  Error error;
  error.kind = ErrorKind::invalid;
  error.message = std::move(message);
  return error;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '/';
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

/// Words and signs; the first error sticks.
class LabelSelector::Parser {
 public:
  explicit Parser(std::string_view text) : whole_(text), rest_(text) {}

  Result<std::vector<Term>> parse() {
    std::vector<Term> terms;
    skip_spaces();
    while (!rest_.empty() && error_.empty()) {
      terms.push_back(term());
      if (rest_.empty() || !error_.empty()) break;
      if (!take(",")) fail("expected a comma");
      if (rest_.empty()) fail("nothing follows the comma");
    }
    if (!error_.empty()) return invalid(error_);
    return terms;
  }

 private:
  Term term() {
    Term term;
    const bool negated = take("!");
    term.label = word();
    if (term.label.empty()) fail("expected a label");
    if (negated) {
      term.op = Operator::absent;
    } else if (take("==") || take("=")) {
      term.op = Operator::in;
      term.values = {word()};
    } else if (take("!=")) {
      term.op = Operator::not_in;
      term.values = {word()};
    } else if (const auto op = word(); op == "in" || op == "notin") {
      term.op = op == "in" ? Operator::in : Operator::not_in;
      term.values = set();
    } else if (!op.empty()) {
      fail("expected an operator in place of '" + op + "'");
    }
    std::ranges::sort(term.values);
    return term;
  }

  std::vector<std::string> set() {
    std::vector<std::string> values;
    if (!take("(")) fail("expected '('");
    do values.push_back(word());
    while (take(","));
    if (!take(")")) fail("expected ')'");
    return values;
  }

  std::string word() {
    const auto* end = std::ranges::find_if_not(rest_, is_word);
    std::string word{rest_.begin(), end};
    rest_.remove_prefix(word.size());
    skip_spaces();
    return word;
  }

  bool take(std::string_view sign) {
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    skip_spaces();
    return true;
  }

  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  void fail(const std::string& what) {
    if (error_.empty())
      error_ = "label selector '" + std::string{whole_} + "': " + what + " at '" + std::string{rest_} + "'";
  }

  std::string_view whole_;
  std::string_view rest_;
  std::string error_;
};

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  auto terms = Parser{text}.parse();
  if (!terms) return terms.error();
  LabelSelector selector;
  selector.terms_ = std::move(*terms);
  return selector;
}

Result<LabelSelector> LabelSelector::from_json(const json::object& selector) {
  LabelSelector result;
  if (const auto* labels = find(selector, {"matchLabels"}); labels != nullptr && labels->is_object()) {
    for (const auto& [label, value] : labels->get_object()) {
      if (!value.is_string())
        return invalid("label selector: the value of '" + std::string{label} + "' is not a string");
      result.terms_.push_back({std::string{label}, Operator::in, {std::string{value.get_string()}}});
    }
  }
  const auto* expressions = find(selector, {"matchExpressions"});
  if (expressions == nullptr || !expressions->is_array()) return result;
  for (const auto& entry : expressions->get_array()) {
    if (!entry.is_object()) return invalid("label selector: an expression is not an object");
    const auto& expression = entry.get_object();
    Term term;
    term.label = string_at(expression, {"key"});
    if (const auto* values = find(expression, {"values"}); values != nullptr && values->is_array())
      for (const auto& value : values->get_array())
        if (value.is_string()) term.values.emplace_back(value.get_string());
    std::ranges::sort(term.values);
    const auto op = string_at(expression, {"operator"});
    const bool has_values = !term.values.empty();
    if (op == "In" && has_values)
      term.op = Operator::in;
    else if (op == "NotIn" && has_values)
      term.op = Operator::not_in;
    else if (op == "Exists" && !has_values)
      term.op = Operator::exists;
    else if (op == "DoesNotExist" && !has_values)
      term.op = Operator::absent;
    else
      return invalid("label selector: operator '" + std::string{op} + "' of '" + term.label + "' does not fit");
    if (term.label.empty()) return invalid("label selector: an expression without a key");
    result.terms_.push_back(std::move(term));
  }
  return result;
}

bool LabelSelector::matches(const Lookup& lookup) const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    const auto value = lookup(term.label);
    const bool listed = value && std::ranges::find(term.values, *value) != term.values.end();
    switch (term.op) {
      case Operator::in:
        return listed;
      case Operator::not_in:
        return !listed;
      case Operator::exists:
        return value.has_value();
      case Operator::absent:
        return !value.has_value();
    }
    return false;
  });
}

bool LabelSelector::matches(const Object& object) const {
  return matches([&](std::string_view label) -> std::optional<std::string_view> {
    const auto* value = object.find({"metadata", "labels", label});
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return std::string_view{value->get_string()};
  });
}

std::string LabelSelector::to_string() const {
  std::string text;
  for (const auto& term : terms_) {
    if (!text.empty()) text += ',';
    if (term.op == Operator::absent) text += '!';
    text += term.label;
    if (term.op == Operator::exists || term.op == Operator::absent) continue;
    if (term.values.size() == 1) {
      text += (term.op == Operator::in ? "=" : "!=") + term.values.front();
      continue;
    }
    text += term.op == Operator::in ? " in (" : " notin (";
    for (std::size_t i = 0; i < term.values.size(); ++i) text += (i > 0 ? "," : "") + term.values[i];
    text += ')';
  }
  return text;
}

Result<FieldSelector> FieldSelector::parse(std::string_view text) {
  FieldSelector selector;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto part = without_spaces(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const auto sign = part.find('=');
    if (sign == std::string_view::npos || sign == 0)
      return invalid("field selector: '" + std::string{part} + "' is not of the form field=value");
    Term term;
    term.equal = part[sign - 1] != '!';
    auto value = part.substr(sign + 1);
    if (value.starts_with('=')) value.remove_prefix(1);
    term.value = without_spaces(value);
    auto field = without_spaces(part.substr(0, term.equal ? sign : sign - 1));
    if (field.empty()) return invalid("field selector: '" + std::string{part} + "' has no field name");
    while (true) {
      const auto dot = field.find('.');
      term.path.emplace_back(field.substr(0, dot));
      if (dot == std::string_view::npos) break;
      field.remove_prefix(dot + 1);
    }
    selector.terms_.push_back(std::move(term));
  }
  return selector;
}

bool FieldSelector::matches(const Object& object) const {
  return std::ranges::all_of(terms_, [&](const Term& term) {
    const json::value* at = nullptr;
    const json::object* in = &object.json();
    for (const auto& step : term.path) {
      at = in != nullptr ? in->if_contains(step) : nullptr;
      in = at != nullptr ? at->if_object() : nullptr;
    }
    const std::string_view value = at != nullptr && at->is_string() ? std::string_view{at->get_string()} : "";
    return (value == term.value) == term.equal;
  });
}

}  // namespace hubferry::kube
