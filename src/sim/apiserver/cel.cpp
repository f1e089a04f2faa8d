#include "sim/apiserver/cel.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>
#include <vector>

namespace hubferry::sim {

namespace {

using Expression = CelRule::Expression;
using Scope = CelRule::Scope;

/// The rule cannot be compiled, or not be evaluated.
struct CelError : std::runtime_error {
  using runtime_error::runtime_error;
};

bool truth(const json::value& value) {
  if (!value.is_bool()) throw CelError{"no such overload"};
  return value.get_bool();
}

/// Evaluates both sides of && (`decisive` false) and || (true): a side that decides outweighs an error of the other.
json::value either(const Expression& left, const Expression& right, const Scope& scope, bool decisive) {
  std::optional<CelError> failed;
  for (const auto* side : {&left, &right}) {
    try {
      if (truth((*side)(scope)) == decisive) return decisive;
    } catch (const CelError& error) {
      failed = error;
    }
  }
  if (failed) throw CelError{*failed};
  return !decisive;
}

std::int64_t size_of(const json::value& value) {
  if (const auto* text = value.if_string()) return static_cast<std::int64_t>(text->size());
  if (const auto* list = value.if_array()) return static_cast<std::int64_t>(list->size());
  if (const auto* map = value.if_object()) return static_cast<std::int64_t>(map->size());
  throw CelError{"no such overload"};
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expression parse() {
    auto made = disjunction();
    skip_space();
    if (at_ != text_.size()) throw CelError{"unexpected text"};
    return made;
  }
  [[nodiscard]] bool uses_old() const { return uses_old_; }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) throw CelError{"expected " + std::string{token}};
  }
  /// Empty: there is none.
  std::string word() {
    skip_space();
    const auto begin = at_;
    const auto belongs = [&](char c) {
      return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
             (at_ > begin && std::isdigit(static_cast<unsigned char>(c)) != 0);
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return std::string{text_.substr(begin, at_ - begin)};
  }

  Expression disjunction() {
    auto left = conjunction();
    while (take("||"))
      left = [left, right = conjunction()](const Scope& scope) { return either(left, right, scope, true); };
    return left;
  }
  Expression conjunction() {
    auto left = relation();
    while (take("&&"))
      left = [left, right = relation()](const Scope& scope) { return either(left, right, scope, false); };
    return left;
  }
  Expression relation() {
    auto left = unary();
    if (take("==")) return [left, right = unary()](const Scope& s) -> json::value { return left(s) == right(s); };
    if (take("!=")) return [left, right = unary()](const Scope& s) -> json::value { return left(s) != right(s); };
    for (const std::string_view symbol : {">=", "<=", ">", "<"})
      if (take(symbol)) return compared(left, unary(), symbol);
    const auto here = at_;
    if (word() == "in")
      return [left, right = unary()](const Scope& s) -> json::value {
        const auto list = right(s);
        if (!list.is_array()) throw CelError{"no such overload"};
        return std::ranges::count(list.get_array(), left(s)) > 0;
      };
    at_ = here;
    return left;
  }
  static Expression compared(Expression left, Expression right, std::string_view symbol) {
    return [left = std::move(left), right = std::move(right), symbol](const Scope& scope) -> json::value {
      const auto one = left(scope);
      const auto other = right(scope);
      if (!one.is_int64() || !other.is_int64()) throw CelError{"no such overload"};
      const auto order = one.get_int64() <=> other.get_int64();
      return symbol == ">=" ? order >= 0 : symbol == "<=" ? order <= 0 : symbol == ">" ? order > 0 : order < 0;
    };
  }
  Expression unary() {
    skip_space();
    if (!text_.substr(at_).starts_with("!=") && take("!"))
      return [inner = unary()](const Scope& scope) -> json::value { return !truth(inner(scope)); };
    return primary();
  }
  Expression primary() {
    if (take("(")) {
      auto inner = disjunction();
      expect(")");
      return inner;
    }
    if (take("[")) return list();
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) return literal(json::string(quoted()));
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return literal(number());
    const auto name = word();
    if (name == "true" || name == "false") return literal(name == "true");
    if (name == "has" || name == "size") return call(name);
    return field_of(name, path());
  }
  static Expression literal(json::value value) {
    return [value = std::move(value)](const Scope&) { return value; };
  }
  Expression list() {
    std::vector<Expression> items;
    while (!take("]")) {
      if (!items.empty()) expect(",");
      items.push_back(disjunction());
    }
    return [items](const Scope& scope) -> json::value {
      json::array made;
      for (const auto& item : items) made.push_back(item(scope));
      return made;
    };
  }
  std::string quoted() {
    const char quote = text_[at_++];
    const auto end = text_.find(quote, at_);
    const auto content = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    if (end == std::string_view::npos || content.find('\\') != std::string_view::npos) throw CelError{"bad string"};
    at_ = end + 1;
    return std::string{content};
  }
  std::int64_t number() {
    std::int64_t value = 0;
    const auto* end = text_.data() + text_.size();
    const auto read = std::from_chars(text_.data() + at_, end, value);
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    return value;
  }
  Expression call(const std::string& name) {
    expect("(");
    auto made = name == "has" ? presence() : [inner = disjunction()](const Scope& scope) -> json::value {
      return size_of(inner(scope));
    };
    expect(")");
    return made;
  }
  Expression presence() {
    const auto root = word();
    auto fields = path();
    if (fields.empty()) throw CelError{"has() needs a field"};
    auto last = fields.back();
    fields.pop_back();
    return [parent = field_of(root, std::move(fields)), last](const Scope& scope) -> json::value {
      const auto object = parent(scope);
      return object.is_object() && object.get_object().contains(last);
    };
  }
  std::vector<std::string> path() {
    std::vector<std::string> fields;
    while (take(".")) {
      fields.push_back(word());
      skip_space();
      if (fields.back().empty() || (at_ < text_.size() && text_[at_] == '(')) throw CelError{"methods are unsupported"};
    }
    return fields;
  }
  Expression field_of(const std::string& root, std::vector<std::string> fields) {
    if (root != "self" && root != "oldSelf") throw CelError{"unknown name " + root};
    const bool old = root == "oldSelf";
    uses_old_ |= old;
    return [old, fields = std::move(fields)](const Scope& scope) -> json::value {
      const auto* value = old ? scope.old : &scope.self;
      for (const auto& field : fields) {
        const auto* object = value == nullptr ? nullptr : value->if_object();
        value = object == nullptr ? nullptr : object->if_contains(field);
      }
      if (value == nullptr) throw CelError{"no such key"};
      return *value;
    };
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool uses_old_ = false;
};

}  // namespace

std::optional<CelRule> CelRule::compile(std::string_view text) {
  try {
    Parser parser{text};
    CelRule rule;
    rule.expression_ = parser.parse();
    rule.needs_old_ = parser.uses_old();
    return rule;
  } catch (const CelError&) {
    return std::nullopt;
  }
}

bool CelRule::holds(const json::value& self, const json::value* old) const {
  try {
    return truth(expression_(Scope{self, old}));
  } catch (const CelError&) {
    return false;
  }
}

}  // namespace hubferry::sim
