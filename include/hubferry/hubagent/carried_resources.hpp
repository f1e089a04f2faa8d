#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hubferry/kube/resource.hpp"

namespace hubferry::hubagent {

/// A reference from an object to another one in the same namespace, by name.
struct CarriedReference {
  /// The field with the name: "spec.bmc.credentialsName"; with "[]" for every element:
  /// "spec.extraManifestsRefs[].name".
  std::string path;
  kube::Resource resource;
};

/// One kind that is copied with a cluster, and which of its objects are. An object is copied if one of the rules holds.
struct CarriedKind {
  kube::Resource resource;
  bool all = false;                           // every object in the cluster's namespace
  std::vector<std::string> names;             // with "{cluster}" for the cluster's name
  std::vector<std::string> with_labels;       // label keys, of any value
  std::vector<std::string> with_annotations;  // annotation keys, of any value
  bool with_status = false;                   // its status is copied too
  std::vector<CarriedReference> references;   // referenced objects are copied first
};

/// In the order in which they are applied.
using CarriedResources = std::vector<CarriedKind>;

/// What ACM, Hive, metal3 and the SiteConfig operator store for a cluster.
const CarriedResources& default_carried_resources();

/// The default plus what a user adds, as YAML or JSON:
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
/// An entry for a kind of the default adds its rules to it. Throws kube::ConfigError, naming the field: for RBAC, for
/// kinds that the migration creates itself, for a cluster-scoped kind selected by anything but the name "{cluster}".
CarriedResources parse_carried_resources(std::string_view text, const std::string& source);

/// False for kinds that no configuration can add: permissions are granted on each hub separately.
bool may_be_copied(const kube::Resource& resource);

}  // namespace hubferry::hubagent
