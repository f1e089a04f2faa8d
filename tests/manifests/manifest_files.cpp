#include "manifest_files.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "hubferry/kube/yaml.hpp"

namespace hubferry::test {

namespace fs = std::filesystem;

fs::path source_root() {
  return HUBFERRY_SOURCE_ROOT;
}

fs::path manifests_directory() {
  return source_root() / "manifests";
}

std::string text_of(const fs::path& file) {
  std::ifstream in{file};
  if (!in) throw std::runtime_error("cannot read " + file.string());
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

std::vector<Manifest> read_manifests(const fs::path& file) {
  std::vector<Manifest> all;
  for (auto& document : kube::parse_yaml_documents(text_of(file), file.string())) {
    if (!document.is_object()) throw std::runtime_error(file.string() + " holds something that is no object");
    all.push_back({file, std::move(document.get_object())});
  }
  return all;
}

std::vector<fs::path> kustomizations() {
  std::vector<fs::path> directories;
  for (const auto& entry : fs::recursive_directory_iterator(manifests_directory()))
    if (entry.path().filename() == "kustomization.yaml") directories.push_back(entry.path().parent_path());
  std::sort(directories.begin(), directories.end());
  return directories;
}

std::vector<fs::path> resources_of(const fs::path& directory) {
  std::vector<fs::path> paths;
  const auto kustomization = read_manifests(directory / "kustomization.yaml").at(0).content;
  for (const auto& entry : kustomization.at("resources").as_array())
    paths.push_back((directory / std::string{entry.as_string()}).lexically_normal());
  return paths;
}

std::vector<Manifest> flattened(const fs::path& directory) {
  std::vector<Manifest> all;
  for (const auto& path : resources_of(directory)) {
    auto more = fs::is_directory(path) ? flattened(path) : read_manifests(path);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<Manifest> all_manifests() {
  std::vector<Manifest> all;
  for (const auto& entry : fs::recursive_directory_iterator(manifests_directory())) {
    if (entry.path().extension() != ".yaml" || entry.path().filename() == "kustomization.yaml") continue;
    auto more = read_manifests(entry.path());
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

Manifest find_manifest(const std::string& kind, const std::string& name) {
  std::vector<Manifest> found;
  for (const auto& manifest : all_manifests())
    if (manifest.kind() == kind && manifest.name() == name) found.push_back(manifest);
  if (found.size() != 1) throw std::runtime_error(std::to_string(found.size()) + " times " + kind + " " + name);
  return found.front();
}

json::object alert_rules() {
  return find_manifest("PrometheusRule", "hubferry").content.at("spec").as_object();
}

std::vector<Query> all_queries() {
  std::vector<Query> queries;
  const auto rules = alert_rules();
  for (const auto& group : rules.at("groups").as_array())
    for (const auto& rule : group.at("rules").as_array())
      queries.push_back(
          {"alert " + std::string{rule.at("alert").as_string()}, std::string{rule.at("expr").as_string()}});
  const auto dashboard = json::parse(text_of(manifests_directory() / "overlays/monitoring/hubferry.json"));
  for (const auto& panel : dashboard.at("panels").as_array()) {
    if (panel.at("type") == "row") continue;
    for (const auto& target : panel.at("targets").as_array())
      queries.push_back(
          {"panel " + std::string{panel.at("title").as_string()}, std::string{target.at("expr").as_string()}});
  }
  for (const auto& variable : dashboard.at("templating").at("list").as_array())
    if (variable.at("type") == "query") {
      const std::string query{variable.at("query").at("query").as_string()};
      queries.push_back({"variable " + std::string{variable.at("name").as_string()},
                         std::regex_replace(query, std::regex{R"(label_values\(([a-z_]+),.*)"}, "$1")});
    }
  return queries;
}

std::vector<std::string> metric_names(const std::string& expression) {
  // Labels in braces and after `by`, durations in brackets and texts are no metrics; what is left are words, of which
  // those before a parenthesis are functions.
  auto text = std::regex_replace(expression, std::regex{R"(\{[^}]*\}|\[[^\]]*\])"}, " ");
  text = std::regex_replace(text, std::regex{R"(\b(by|on|without|ignoring)\s*\([^)]*\))"}, " ");
  static const std::set<std::string> operators{"and", "or", "unless", "bool", "offset"};
  std::vector<std::string> names;
  const std::regex word{R"([a-zA-Z_:][a-zA-Z0-9_:]*(\s*\()?)"};
  for (auto at = std::sregex_iterator(text.begin(), text.end(), word); at != std::sregex_iterator{}; ++at)
    if (!(*at)[1].matched && !operators.contains(at->str())) names.push_back(at->str());
  return names;
}

}  // namespace hubferry::test
