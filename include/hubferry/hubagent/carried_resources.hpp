#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/resource.hpp"

namespace hubferry::hubagent {

/// An object that another one needs, named somewhere in it, in the same namespace.
struct CarriedReference {
  /// Where the name stands: "spec.bmc.credentialsName"; with "[]" for every element: "spec.extraManifestsRefs[].name".
  std::string path;
  kube::Resource resource;
};

/// One kind that travels with a cluster, and which of its objects do. An object is taken when one of the rules holds.
struct CarriedKind {
  kube::Resource resource;
  bool all = false;                           // every object in the cluster's namespace
  std::vector<std::string> names;             // with "{cluster}" for the cluster's name
  std::vector<std::string> with_labels;       // label keys, of any value
  std::vector<std::string> with_annotations;  // annotation keys, of any value
  bool with_status = false;                   // its status travels too
  std::vector<CarriedReference> references;   // what they refer to travels before them
};

/// In the order in which they are applied.
using CarriedResources = std::vector<CarriedKind>;

/// What ACM, Hive, metal3 and the SiteConfig operator keep of a cluster.
const CarriedResources& default_carried_resources();

/// The default and what a user adds, as YAML or JSON:
///
///     carriedResources:
///     - group: example.com          # absent: the core group
///       version: v1
///       resource: widgets
///       kind: Widget
///       scope: Namespaced           # or Cluster; absent: Namespaced
///       all: true                   # and/or names, withLabels, withAnnotations
///       names: ["{cluster}-widget"]
///       withStatus: false
///       references:
///       - path: spec.secretName
///         version: v1
///         resource: secrets
///         kind: Secret
///
/// An entry for a kind that is there already adds its rules to it. Throws kube::ConfigError, naming the field: for
/// RBAC, for kinds that the migration creates itself, for a cluster-scoped kind selected by anything but the name
/// "{cluster}".
CarriedResources parse_carried_resources(std::string_view text, const std::string& source);

/// What must not travel whatever a configuration says: rights are granted on each hub by itself.
bool may_be_copied(const kube::Resource& resource);

}  // namespace hubferry::hubagent
