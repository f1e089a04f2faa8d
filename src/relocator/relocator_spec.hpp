#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hubferry/kube/cache.hpp"
#include "hubferry/kube/selector.hpp"
#include "relocator/destinations.hpp"

namespace hubferry::relocator {

using ObjectCache = kube::Cache<kube::Object>;

/// What a ClusterRelocator says.
struct RelocatorSpec {
  std::string name;
  Key secret;  // with the kubeconfig of the destination
  kube::LabelSelector selector;
  bool whole_namespace = false;

  /// Slots are counted by destination.
  [[nodiscard]] std::string destination() const { return kube::to_string(secret); }
};

/// Problems: EmptySelector, which would move a whole hub; InvalidSelector; InvalidSecretReference.
OrProblem<RelocatorSpec> read_spec(const kube::Object& relocator);

/// Those that match, by name. One that cannot be used matches nothing.
std::vector<RelocatorSpec> matching_relocators(const ObjectCache& relocators, const kube::Object& deployment);
std::optional<RelocatorSpec> find_relocator(const ObjectCache& relocators, const std::string& name);
/// "a, b"
std::string names_of(const std::vector<RelocatorSpec>& relocators);

}  // namespace hubferry::relocator
