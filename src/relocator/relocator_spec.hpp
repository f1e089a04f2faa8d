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
};

/// Problems: EmptySelector, which would move a whole hub; InvalidSelector; InvalidSecretReference.
OrProblem<RelocatorSpec> read_spec(const kube::Object& relocator);

/// Those that match, by name. One that cannot be used matches nothing.
std::vector<RelocatorSpec> matching_relocators(const ObjectCache& relocators, const kube::Object& deployment);
/// Where a move leads that has begun under that name: its selector may be unusable meanwhile, and is not read.
/// Problems: AbortBlocked, because it does not exist any more, or has no Secret.
OrProblem<RelocatorSpec> find_relocator(const ObjectCache& relocators, const std::string& name);
/// "ClusterRelocator a cannot be used: InvalidSelector: …" for each of them; empty: all can be used.
std::string unusable_relocators(const ObjectCache& relocators);
/// The beginning of that for one of them.
std::string unusable(std::string_view relocator);
/// "a, b"
std::string names_of(const std::vector<RelocatorSpec>& relocators);

}  // namespace hubferry::relocator
