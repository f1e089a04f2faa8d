#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hubferry/kube/object.hpp"

namespace hubferry::test {

namespace json = boost::json;

/// One object of the manifests, and where it is written.
struct Manifest {
  std::filesystem::path file;
  json::object content;

  [[nodiscard]] std::string kind() const { return std::string{kube::string_at(content, {"kind"})}; }
  [[nodiscard]] std::string api_version() const { return std::string{kube::string_at(content, {"apiVersion"})}; }
  [[nodiscard]] std::string name() const { return std::string{kube::string_at(content, {"metadata", "name"})}; }
  [[nodiscard]] std::string ns() const { return std::string{kube::string_at(content, {"metadata", "namespace"})}; }
  /// "Deployment hubferry-system/hubferry-manager"
  [[nodiscard]] std::string label() const { return kind() + " " + kube::to_string(kube::Key{ns(), name()}); }
};

/// The top of the source tree, and its directory manifests/.
std::filesystem::path source_root();
std::filesystem::path manifests_directory();

std::string text_of(const std::filesystem::path& file);
std::vector<Manifest> read_manifests(const std::filesystem::path& file);

/// All directories with a kustomization.yaml.
std::vector<std::filesystem::path> kustomizations();
/// The entries of `resources` of a kustomization, as paths.
std::vector<std::filesystem::path> resources_of(const std::filesystem::path& directory);
/// What a kustomization's resources hold, directories followed. Generated objects and changes of fields are not made.
std::vector<Manifest> flattened(const std::filesystem::path& directory);
/// Everything that is written below manifests/, other than kustomizations.
std::vector<Manifest> all_manifests();
/// The only one of this kind and name; throws otherwise.
Manifest find_manifest(const std::string& kind, const std::string& name);

/// The groups of the PrometheusRule, as promtool wants them.
json::object alert_rules();
/// Every PromQL expression of the alerts and the dashboard, with where it comes from.
struct Query {
  std::string origin;
  std::string expression;
};
std::vector<Query> all_queries();
/// The names of metrics in an expression.
std::vector<std::string> metric_names(const std::string& expression);

}  // namespace hubferry::test
