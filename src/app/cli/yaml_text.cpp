#include "app/cli/yaml_text.hpp"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>

namespace hubferry::app {

namespace json = kube::json;

namespace {

bool is_word_of_yaml(std::string_view text) {
  constexpr std::array<std::string_view, 9> words = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  std::string lower{text};
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  return std::find(words.begin(), words.end(), lower) != words.end();
}

/// Only what is surely taken for a text by every reader goes without quotes.
bool is_plain(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  };
  const auto is_harmless = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ' ' || c == ',' || c == '(' ||
           c == ')' || c == ';' || c == '=' || c == '+';
  };
  return !text.empty() && is_letter(text.front()) && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), is_harmless) && !is_word_of_yaml(text);
}

std::string scalar(const json::value& value) {
  if (value.is_string() && is_plain(std::string_view{value.get_string()})) return std::string{value.get_string()};
  if (value.is_object()) return "{}";
  if (value.is_array()) return "[]";
  return json::serialize(value);  // a JSON string is a YAML string in double quotes
}

std::string key_text(std::string_view key) {
  return is_plain(key) ? std::string{key} : json::serialize(json::value(json::string_view{key.data(), key.size()}));
}

bool is_block(const json::value& value) {
  return (value.is_object() && !value.get_object().empty()) || (value.is_array() && !value.get_array().empty());
}

/// `inline_first`: the first line continues one that is there already ("- ").
void write(const json::value& value, std::size_t indent, bool inline_first, std::string& out) {
  const std::string margin(indent, ' ');
  const auto begin_line = [&] {
    if (!inline_first) out += margin;
    inline_first = false;
  };
  if (value.is_object() && !value.get_object().empty()) {
    for (const auto& [key, field] : value.get_object()) {
      begin_line();
      out += key_text(key) + ":";
      if (!is_block(field)) {
        out += " " + scalar(field) + "\n";
        continue;
      }
      out += "\n";
      write(field, field.is_array() ? indent : indent + 2, false, out);
    }
  } else if (value.is_array() && !value.get_array().empty()) {
    for (const auto& item : value.get_array()) {
      begin_line();
      out += "- ";
      if (is_block(item))
        write(item, indent + 2, true, out);
      else
        out += scalar(item) + "\n";
    }
  } else {
    begin_line();
    out += scalar(value) + "\n";
  }
}

}  // namespace

std::string to_yaml(const json::value& value) {
  std::string out;
  write(value, 0, false, out);
  return out;
}

}  // namespace hubferry::app
