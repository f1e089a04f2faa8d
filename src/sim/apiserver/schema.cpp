#include "sim/apiserver/schema.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>

namespace hubferry::sim {

namespace {

std::string_view name_of(Schema::Type type) {
  switch (type) {
    case Schema::Type::object:
      return "object";
    case Schema::Type::array:
      return "array";
    case Schema::Type::string:
      return "string";
    case Schema::Type::integer:
      return "integer";
    case Schema::Type::number:
      return "number";
    case Schema::Type::boolean:
      return "boolean";
    case Schema::Type::any:
      break;
  }
  return "any";
}

Schema::Type type_from(std::string_view name) {
  for (const auto type : {Schema::Type::object, Schema::Type::array, Schema::Type::string, Schema::Type::integer,
                          Schema::Type::number, Schema::Type::boolean})
    if (name_of(type) == name) return type;
  return Schema::Type::any;
}

std::string_view type_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::object:
      return "object";
    case json::kind::array:
      return "array";
    case json::kind::string:
      return "string";
    case json::kind::bool_:
      return "boolean";
    case json::kind::double_:
      return "number";
    case json::kind::null:
      return "null";
    default:
      return "integer";
  }
}

bool flag(const json::object& source, std::string_view name) {
  const auto* value = source.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::optional<double> number(const json::object& source, std::string_view name) {
  const auto* value = source.if_contains(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

std::optional<std::int64_t> count(const json::object& source, std::string_view name) {
  const auto value = number(source, name);
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::string number_text(double value) {
  if (value == static_cast<double>(static_cast<std::int64_t>(value)))
    return std::to_string(static_cast<std::int64_t>(value));
  return json::serialize(json::value(value));
}

std::string child(const std::string& path, std::string_view name) {
  return path.empty() ? std::string{name} : path + "." + std::string{name};
}

/// UTF-8 characters, not bytes.
std::int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

std::shared_ptr<const Schema> Schema::compile(const json::object& source) {
  auto schema = std::make_shared<Schema>();
  auto& made = *schema;
  made.type_ = type_from(kube::string_at(source, {"type"}));
  made.nullable_ = flag(source, "nullable");
  made.preserve_ = flag(source, "x-kubernetes-preserve-unknown-fields");
  made.int_or_string_ = flag(source, "x-kubernetes-int-or-string");
  made.embedded_ = flag(source, "x-kubernetes-embedded-resource");
  made.atomic_map_ = kube::string_at(source, {"x-kubernetes-map-type"}) == "atomic";
  const auto list_type = kube::string_at(source, {"x-kubernetes-list-type"});
  made.list_type_ = list_type == "map" ? ListType::map : list_type == "set" ? ListType::set : ListType::atomic;
  const auto strings = [&](std::string_view name, std::vector<std::string>& into) {
    const auto* list = source.if_contains(name);
    if (list == nullptr || !list->is_array()) return;
    for (const auto& item : list->get_array())
      if (item.is_string()) into.emplace_back(item.get_string());
  };
  strings("x-kubernetes-list-map-keys", made.list_keys_);
  strings("required", made.required_);
  if (const auto* list = source.if_contains("enum"); list != nullptr && list->is_array())
    made.allowed_.assign(list->get_array().begin(), list->get_array().end());
  if (const auto* text = source.if_contains("pattern"); text != nullptr && text->is_string()) {
    made.pattern_text_ = text->get_string();
    try {
      made.pattern_.emplace(made.pattern_text_, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error&) {
      // A pattern that RE2 supports and ECMAScript does not is not checked.
    }
  }
  made.minimum_ = number(source, "minimum");
  made.maximum_ = number(source, "maximum");
  made.exclusive_minimum_ = flag(source, "exclusiveMinimum");
  made.exclusive_maximum_ = flag(source, "exclusiveMaximum");
  made.min_length_ = count(source, "minLength");
  made.max_length_ = count(source, "maxLength");
  made.min_items_ = count(source, "minItems");
  made.max_items_ = count(source, "maxItems");
  made.min_properties_ = count(source, "minProperties");
  made.max_properties_ = count(source, "maxProperties");
  if (const auto* value = source.if_contains("default")) made.default_ = *value;
  const auto objects = [&](std::string_view name, const auto& visit) {
    const auto* list = source.if_contains(name);
    if (list == nullptr || !list->is_array()) return;
    for (const auto& item : list->get_array())
      if (item.is_object()) visit(item.get_object());
  };
  objects("oneOf", [&](const json::object& option) { made.one_of_.push_back(compile(option)); });
  objects("anyOf", [&](const json::object& option) { made.any_of_.push_back(compile(option)); });
  objects("x-kubernetes-validations", [&](const json::object& given) {
    const auto text = kube::string_at(given, {"rule"});
    const auto message = kube::string_at(given, {"message"});
    if (auto rule = CelRule::compile(text))
      made.rules_.push_back(
          {std::move(*rule), message.empty() ? "failed rule: " + std::string{text} : std::string{message}});
  });
  made.has_rules_ = !made.rules_.empty() || !made.one_of_.empty() || !made.any_of_.empty();
  if (const auto* fields = source.if_contains("properties"); fields != nullptr && fields->is_object())
    for (const auto& [name, value] : fields->get_object())
      if (value.is_object()) made.properties_.emplace(name, compile(value.get_object()));
  if (const auto* items = source.if_contains("items"); items != nullptr && items->is_object())
    made.items_ = compile(items->get_object());
  if (const auto* more = source.if_contains("additionalProperties")) {
    if (more->is_object())
      made.additional_ = compile(more->get_object());
    else if (more->is_bool() && more->get_bool())
      made.preserve_ = true;
  }
  for (const auto& [name, below] : made.properties_) made.has_rules_ |= below->has_rules_;
  for (const auto& below : {made.items_, made.additional_}) made.has_rules_ |= below != nullptr && below->has_rules_;
  return schema;
}

const Schema* Schema::field(std::string_view name) const {
  const auto found = properties_.find(name);
  return found != properties_.end() ? found->second.get() : additional_.get();
}

void Schema::prune(json::object& object) const {
  prune_fields(object, true);
}

void Schema::prune_fields(json::object& object, bool top) const {
  std::vector<std::string> unknown;
  for (auto& [key, value] : object) {
    if ((top || embedded_) && (key == "apiVersion" || key == "kind" || key == "metadata")) continue;
    if (const auto* schema = field(key))
      schema->prune_value(value);
    else if (!preserve_)
      unknown.emplace_back(key);
  }
  for (const auto& key : unknown) object.erase(key);
}

void Schema::prune_value(json::value& value) const {
  if (auto* object = value.if_object()) {
    prune_fields(*object, false);
  } else if (auto* array = value.if_array(); array != nullptr && items_ != nullptr) {
    for (auto& item : *array) items_->prune_value(item);
  }
}

void Schema::apply_defaults(json::object& object) const {
  default_fields(object);
}

void Schema::default_fields(json::object& object) const {
  for (const auto& [name, schema] : properties_) {
    auto* value = object.if_contains(name);
    if (value != nullptr && value->is_null() && !schema->nullable_ && schema->default_) {
      *value = *schema->default_;
    } else if (value == nullptr && schema->default_) {
      value = &(object[name] = *schema->default_);
    }
    if (value != nullptr) schema->default_value(*value);
  }
  if (additional_ == nullptr) return;
  for (auto& [key, value] : object)
    if (!properties_.contains(key)) additional_->default_value(value);
}

void Schema::default_value(json::value& value) const {
  if (auto* object = value.if_object()) {
    default_fields(*object);
  } else if (auto* array = value.if_array(); array != nullptr && items_ != nullptr) {
    for (auto& item : *array) items_->default_value(item);
  }
}

void Schema::validate(const json::object& object, std::vector<FieldError>& field_errors) const {
  check_fields(object, "", field_errors);
}

void Schema::validate_rules(const json::object& object, const json::object* old,
                            std::vector<FieldError>& field_errors) const {
  if (!has_rules_) return;
  // With parentheses: in braces it would be a list.
  const json::value now(object);
  const auto before = old == nullptr ? json::value() : json::value(*old);
  check_rules(now, old == nullptr ? nullptr : &before, "", field_errors);
}

void Schema::check_rules(const json::value& value, const json::value* old, const std::string& path,
                         std::vector<FieldError>& field_errors) const {
  if (!has_rules_) return;
  check_alternatives(value, path, field_errors);
  for (const auto& [rule, message] : rules_)
    if ((old != nullptr || !rule.needs_old()) && !rule.holds(value, old))
      field_errors.push_back({path.empty() ? "<nil>" : path,
                              "Invalid value: \"" + std::string{type_of(value)} + "\": " + message,
                              "FieldValueInvalid"});
  if (const auto* object = value.if_object())
    for (const auto& [key, item] : *object) {
      const auto* schema = field(key);
      const auto* before = old == nullptr || !old->is_object() ? nullptr : old->get_object().if_contains(key);
      if (schema != nullptr) schema->check_rules(item, before, child(path, key), field_errors);
    }
  // Items of lists have no counterpart in the old object: a server finds one only in lists of type map.
  if (const auto* array = value.if_array(); array != nullptr && items_ != nullptr)
    for (std::size_t i = 0; i < array->size(); ++i)
      items_->check_rules((*array)[i], nullptr, path + "[" + std::to_string(i) + "]", field_errors);
}

void Schema::check_alternatives(const json::value& value, const std::string& path,
                                std::vector<FieldError>& field_errors) const {
  const auto is_valid = [&](const std::shared_ptr<const Schema>& option) {
    std::vector<FieldError> problems;
    option->check(value, path, problems);
    return problems.empty();
  };
  const auto invalid = [&](const std::string& why) {
    field_errors.push_back({path, "Invalid value: \"\": \"" + path + "\" must validate " + why, "FieldValueInvalid"});
  };
  if (!any_of_.empty() && std::ranges::none_of(any_of_, is_valid)) invalid("at least one schema (anyOf)");
  const auto valid = std::ranges::count_if(one_of_, is_valid);
  if (!one_of_.empty() && valid != 1)
    invalid("one and only one schema (oneOf). Found " + (valid == 0 ? "none" : std::to_string(valid)) + " valid");
}

bool Schema::type_matches(const json::value& value) const {
  if (int_or_string_) return value.is_string() || value.is_int64() || value.is_uint64();
  switch (type_) {
    case Type::any:
      return true;
    case Type::object:
      return value.is_object();
    case Type::array:
      return value.is_array();
    case Type::string:
      return value.is_string();
    case Type::boolean:
      return value.is_bool();
    case Type::number:
      return value.is_number();
    case Type::integer:
      return value.is_int64() || value.is_uint64() ||
             (value.is_double() &&
              value.get_double() == static_cast<double>(static_cast<std::int64_t>(value.get_double())));
  }
  return true;
}

void Schema::check(const json::value& value, const std::string& path, std::vector<FieldError>& field_errors) const {
  if (value.is_null() && (nullable_ || type_ == Type::any)) return;
  if (!type_matches(value)) {
    const std::string wanted{int_or_string_ ? "integer,string" : name_of(type_)};
    const std::string got{type_of(value)};
    field_errors.push_back(
        {path, "Invalid value: \"" + got + "\": " + path + " in body must be of type " + wanted + ": \"" + got + "\"",
         "FieldValueTypeInvalid"});
    return;
  }
  if (!allowed_.empty() && std::ranges::find(allowed_, value) == allowed_.end()) {
    std::string list;
    for (const auto& option : allowed_) list += (list.empty() ? "" : ", ") + json::serialize(option);
    field_errors.push_back({path, "Unsupported value: " + json::serialize(value) + ": supported values: " + list,
                            "FieldValueNotSupported"});
  }
  if (const auto* text = value.if_string()) check_string(*text, path, field_errors);
  if (value.is_number()) check_number(value, path, field_errors);
  if (const auto* object = value.if_object()) check_fields(*object, path, field_errors);
  if (const auto* array = value.if_array()) {
    const auto size = static_cast<std::int64_t>(array->size());
    if (min_items_ && size < *min_items_)
      field_errors.push_back({path,
                              "Invalid value: " + std::to_string(size) + ": " + path +
                                  " in body should have at least " + std::to_string(*min_items_) + " items",
                              "FieldValueInvalid"});
    if (max_items_ && size > *max_items_)
      field_errors.push_back(
          {path, "Too many: " + std::to_string(size) + ": must have at most " + std::to_string(*max_items_) + " items",
           "FieldValueTooMany"});
    if (items_ != nullptr)
      for (std::size_t i = 0; i < array->size(); ++i)
        items_->check((*array)[i], path + "[" + std::to_string(i) + "]", field_errors);
  }
}

void Schema::check_fields(const json::object& object, const std::string& path,
                          std::vector<FieldError>& field_errors) const {
  for (const auto& name : required_)
    if (!object.contains(name)) field_errors.push_back({child(path, name), "Required value", "FieldValueRequired"});
  const auto size = static_cast<std::int64_t>(object.size());
  if (min_properties_ && size < *min_properties_)
    field_errors.push_back({path,
                            "Invalid value: " + std::to_string(size) + ": " + path + " in body should have at least " +
                                std::to_string(*min_properties_) + " properties",
                            "FieldValueInvalid"});
  if (max_properties_ && size > *max_properties_)
    field_errors.push_back(
        {path,
         "Too many: " + std::to_string(size) + ": must have at most " + std::to_string(*max_properties_) + " items",
         "FieldValueTooMany"});
  for (const auto& [key, value] : object)
    if (const auto* schema = field(key); schema != nullptr && !(path.empty() && key == "metadata"))
      schema->check(value, child(path, key), field_errors);
}

void Schema::check_string(const json::string& text, const std::string& path,
                          std::vector<FieldError>& field_errors) const {
  const std::string_view view{text};
  const auto invalid = [&](const std::string& why) {
    field_errors.push_back({path,
                            "Invalid value: " + json::serialize(json::value(view)) + ": " + path + " in body " + why,
                            "FieldValueInvalid"});
  };
  if (min_length_ && characters(view) < *min_length_)
    invalid("should be at least " + std::to_string(*min_length_) + " chars long");
  if (max_length_ && characters(view) > *max_length_)
    field_errors.push_back(
        {path, "Too long: may not be more than " + std::to_string(*max_length_) + " bytes", "FieldValueTooLong"});
  if (pattern_ && !std::regex_search(view.begin(), view.end(), *pattern_))
    invalid("should match '" + pattern_text_ + "'");
}

void Schema::check_number(const json::value& value, const std::string& path,
                          std::vector<FieldError>& field_errors) const {
  const auto number = value.to_number<double>();
  const auto invalid = [&](const std::string& why) {
    field_errors.push_back({path,
                            "Invalid value: " + json::serialize(value) + ": " + path + " in body should be " + why,
                            "FieldValueInvalid"});
  };
  if (minimum_ && exclusive_minimum_ && number <= *minimum_) invalid("greater than " + number_text(*minimum_));
  if (minimum_ && !exclusive_minimum_ && number < *minimum_)
    invalid("greater than or equal to " + number_text(*minimum_));
  if (maximum_ && exclusive_maximum_ && number >= *maximum_) invalid("less than " + number_text(*maximum_));
  if (maximum_ && !exclusive_maximum_ && number > *maximum_) invalid("less than or equal to " + number_text(*maximum_));
}

}  // namespace hubferry::sim
