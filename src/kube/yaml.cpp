#include "hubferry/kube/yaml.hpp"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <stdexcept>

namespace hubferry::kube {

namespace {

template <typename Number>
bool read_whole(const std::string& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

json::value plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const bool number_like = text[0] == '-' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
  if (std::int64_t whole = 0; number_like && read_whole(text, whole)) return whole;
  if (double real = 0; number_like && read_whole(text, real)) return real;
  return json::value(text);
}

// An alias may name what it stands in, and a few lines of aliases may stand for billions of values. Both limits are far
// above what a file of migrations or faults holds.
constexpr int most_levels = 200;
constexpr int most_values = 1'000'000;

json::value to_json(const YAML::Node& node, int level, int& values_left) {
  if (level > most_levels) throw YAML::Exception(node.Mark(), "nested too deeply, or an alias that holds itself");
  if (--values_left < 0) throw YAML::Exception(node.Mark(), "too many values: its aliases multiply");
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      // Only a plain scalar has the tag "?"; quotes and block styles give "!".
      return node.Tag() == "?" ? plain_scalar(node.Scalar()) : json::value(node.Scalar());
    case YAML::NodeType::Sequence: {
      json::array list;
      for (const auto& item : node) list.push_back(to_json(item, level + 1, values_left));
      return list;
    }
    case YAML::NodeType::Map: {
      json::object fields;
      for (const auto& field : node) fields[field.first.Scalar()] = to_json(field.second, level + 1, values_left);
      return fields;
    }
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      break;
  }
  return nullptr;
}

}  // namespace

std::vector<json::value> parse_yaml_documents(std::string_view text, const std::string& file) {
  try {
    std::vector<json::value> documents;
    int values_left = most_values;
    for (const auto& node : YAML::LoadAll(std::string{text}))
      if (auto document = to_json(node, 0, values_left); !document.is_null()) documents.push_back(std::move(document));
    return documents;
  } catch (const YAML::Exception& error) {
    throw std::runtime_error(file + ", line " + std::to_string(error.mark.line + 1) + ": " + error.msg);
  }
}

}  // namespace hubferry::kube
