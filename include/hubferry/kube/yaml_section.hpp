#pragma once

#include <yaml-cpp/node/node.h>

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hubferry::kube {

/// One mapping of a YAML document, read field by field. Whatever is not as asked throws a ConfigError that names the
/// file and the field, and never the content. Fields that are absent or null read as empty.
class YamlSection {
 public:
  /// `path` is where the mapping stands in the file, such as "users[alice]"; empty for the top.
  YamlSection(const YAML::Node& node, std::string file, std::string path);

  [[nodiscard]] bool has(const std::string& field) const { return fields_.contains(field); }
  [[nodiscard]] std::string text(const std::string& field) const;
  [[nodiscard]] bool flag(const std::string& field) const;
  /// Base64, decoded.
  [[nodiscard]] std::string bytes(const std::string& field) const;
  [[nodiscard]] std::vector<std::string> texts(const std::string& field) const;
  /// A list of mappings.
  [[nodiscard]] std::vector<YamlSection> sections(const std::string& field) const;
  /// A mapping; an absent one reads as empty.
  [[nodiscard]] YamlSection section(const std::string& field) const;

  /// Fails if there is any other field: a misspelled one must not be ignored.
  void allow_only(std::initializer_list<std::string_view> known) const;

  /// The same mapping, called by another name in messages from here on.
  [[nodiscard]] YamlSection renamed(std::string path) const;

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Throws ConfigError: "file: path.field: message"
  [[noreturn]] void fail(std::string_view field, std::string_view message) const;

 private:
  [[nodiscard]] std::vector<YAML::Node> list(const std::string& field) const;

  std::string file_;
  std::string path_;
  std::map<std::string, YAML::Node> fields_;  // without those that are null
};

/// The top of the document in `text`. An empty document is refused.
YamlSection parse_yaml(std::string_view text, const std::string& file);

/// Throws ConfigError about a field of a file.
[[noreturn]] void fail_config(std::string_view file, std::string_view path, std::string_view field,
                              std::string_view message);

}  // namespace hubferry::kube
