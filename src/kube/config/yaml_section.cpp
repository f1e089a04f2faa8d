#include "hubferry/kube/yaml_section.hpp"

#include <algorithm>

#include <yaml-cpp/yaml.h>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/config.hpp"

namespace hubferry::kube {

namespace {

/// yaml-cpp marks what stood in quotes with this tag: "true" in quotes is a text.
constexpr std::string_view quoted_tag = "!";

std::string subscript(const std::string& field, std::size_t index) {
  return field + "[" + std::to_string(index) + "]";
}

/// What the parser says up to a colon: behind it, it quotes from the file.
std::string without_quotation(const std::string& message) {
  return message.substr(0, message.find(':'));
}

}  // namespace

void fail_config(std::string_view file, std::string_view path, std::string_view field, std::string_view reason) {
  std::string message{file};
  if (!path.empty() || !field.empty()) message += ": ";
  message += path;
  if (!path.empty() && !field.empty()) message += ".";
  message += field;
  message += ": ";
  message += reason;
  throw ConfigError(message);
}

YamlSection::YamlSection(const YAML::Node& node, std::string file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {
  if (node.IsNull()) return;
  if (!node.IsMap()) fail({}, path_.empty() ? "is not a YAML mapping" : "must be a mapping");
  std::map<std::string, bool> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) fail({}, "a field's name must be a text");
    const auto& name = entry.first.Scalar();
    if (!seen.emplace(name, true).second) fail({}, "a field is given twice");
    if (!entry.second.IsNull()) fields_.emplace(name, entry.second);
  }
}

std::string YamlSection::text(const std::string& field) const {
  const auto found = fields_.find(field);
  if (found == fields_.end()) return {};
  if (!found->second.IsScalar()) fail(field, "must be a text");
  return found->second.Scalar();
}

bool YamlSection::flag(const std::string& field) const {
  const auto found = fields_.find(field);
  if (found == fields_.end()) return false;
  bool value = false;
  const auto& node = found->second;
  if (!node.IsScalar() || node.Tag() == quoted_tag || !YAML::convert<bool>::decode(node, value))
    fail(field, "must be true or false");
  return value;
}

std::string YamlSection::bytes(const std::string& field) const {
  auto decoded = decode_base64(text(field));
  if (!decoded) fail(field, "not valid base64");
  return std::move(*decoded);
}

std::vector<YAML::Node> YamlSection::list(const std::string& field) const {
  const auto found = fields_.find(field);
  if (found == fields_.end()) return {};
  if (!found->second.IsSequence()) fail(field, "must be a list");
  std::vector<YAML::Node> nodes;
  for (const auto& node : found->second) nodes.push_back(node);
  return nodes;
}

std::vector<std::string> YamlSection::texts(const std::string& field) const {
  std::vector<std::string> values;
  for (const auto& node : list(field)) {
    if (!node.IsScalar()) fail(subscript(field, values.size()), "must be a text");
    values.push_back(node.Scalar());
  }
  return values;
}

std::vector<YamlSection> YamlSection::sections(const std::string& field) const {
  std::vector<YamlSection> values;
  const std::string prefix = path_.empty() ? field : path_ + "." + field;
  for (const auto& node : list(field)) {
    auto path = subscript(prefix, values.size());
    values.emplace_back(node, file_, std::move(path));
  }
  return values;
}

YamlSection YamlSection::section(const std::string& field) const {
  const auto found = fields_.find(field);
  const auto node = found == fields_.end() ? YAML::Node{} : found->second;
  return {node, file_, path_.empty() ? field : path_ + "." + field};
}

YamlSection YamlSection::renamed(std::string path) const {
  YamlSection copy = *this;
  copy.path_ = std::move(path);
  return copy;
}

void YamlSection::allow_only(std::initializer_list<std::string_view> known) const {
  for (const auto& [field, node] : fields_) {
    if (std::find(known.begin(), known.end(), field) != known.end()) continue;
    std::string names;
    for (const auto& name : known) names += (names.empty() ? "" : ", ") + std::string{name};
    fail(field, "is not a field here; known are " + names);
  }
}

void YamlSection::fail(std::string_view field, std::string_view message) const {
  fail_config(file_, path_, field, message);
}

YamlSection parse_yaml(std::string_view text, const std::string& file) {
  try {
    const auto node = YAML::Load(std::string{text});
    if (!node.IsDefined() || node.IsNull()) fail_config(file, {}, {}, "is empty");
    return {node, file, {}};
  } catch (const YAML::Exception& e) {
    std::string where = "not valid YAML";
    if (!e.mark.is_null())
      where += " at line " + std::to_string(e.mark.line + 1) + ", column " + std::to_string(e.mark.column + 1);
    fail_config(file, {}, {}, where + ": " + without_quotation(e.msg));
  }
}

}  // namespace hubferry::kube
