#include "relocator/relocator_spec.hpp"

#include <algorithm>

#include "hubferry/relocator/names.hpp"

namespace hubferry::relocator {

namespace {

/// All but the selector.
OrProblem<RelocatorSpec> read_route(const kube::Object& relocator) {
  RelocatorSpec spec;
  spec.name = std::string{relocator.name()};
  spec.secret = {std::string{relocator.string_at({"spec", "kubeconfigSecretRef", "namespace"})},
                 std::string{relocator.string_at({"spec", "kubeconfigSecretRef", "name"})}};
  if (spec.secret.ns.empty() || spec.secret.name.empty())
    return Problem{"InvalidSecretReference", "spec.kubeconfigSecretRef must have a name and a namespace"};
  const auto* whole = relocator.find({"spec", "wholeNamespace"});
  spec.whole_namespace = whole != nullptr && whole->is_bool() && whole->get_bool();
  return spec;
}

}  // namespace

OrProblem<RelocatorSpec> read_spec(const kube::Object& relocator) {
  auto spec = read_route(relocator);
  if (!spec) return spec;
  const auto* selector = relocator.find({"spec", "clusterDeploymentSelector"});
  static const kube::json::object nothing;
  auto parsed =
      kube::LabelSelector::from_json(selector != nullptr && selector->is_object() ? selector->get_object() : nothing);
  if (!parsed) return Problem{"InvalidSelector", "spec.clusterDeploymentSelector: " + parsed.error().message};
  if (parsed->empty())
    return Problem{"EmptySelector", "spec.clusterDeploymentSelector is empty: it would move every ClusterDeployment"};
  spec->selector = std::move(*parsed);
  return spec;
}

std::vector<RelocatorSpec> matching_relocators(const ObjectCache& relocators, const kube::Object& deployment) {
  std::vector<RelocatorSpec> found;
  relocators.for_each([&](const Key&, const ObjectCache::Pointer& relocator) {
    auto spec = read_spec(*relocator);
    if (spec && spec->selector.matches(deployment)) found.push_back(std::move(*spec));
  });
  std::ranges::sort(found, {}, &RelocatorSpec::name);
  return found;
}

OrProblem<RelocatorSpec> find_relocator(const ObjectCache& relocators, const std::string& name) {
  const auto found = relocators.get({{}, name});
  if (found == nullptr)
    return Problem{reasons::abort_blocked,
                   "ClusterRelocator " + name +
                       " does not exist any more. Create it again; or, if the destination does not have it, remove the "
                       "annotations of the relocation"};
  auto spec = read_route(*found);
  if (!spec) return Problem{reasons::abort_blocked, unusable(name) + spec.error().reason + ": " + spec.error().message};
  return spec;
}

std::string unusable(std::string_view relocator) {
  return "ClusterRelocator " + std::string{relocator} + " cannot be used: ";
}

std::string unusable_relocators(const ObjectCache& relocators) {
  std::vector<std::string> found;
  relocators.for_each([&](const Key& key, const ObjectCache::Pointer& relocator) {
    const auto spec = read_spec(*relocator);
    if (!spec) found.push_back(unusable(key.name) + spec.error().reason + ": " + spec.error().message);
  });
  std::ranges::sort(found);
  std::string text;
  for (const auto& one : found) text += (text.empty() ? "" : "; ") + one;
  return text;
}

std::string names_of(const std::vector<RelocatorSpec>& relocators) {
  std::string text;
  for (const auto& one : relocators) text += (text.empty() ? "" : ", ") + one.name;
  return text;
}

}  // namespace hubferry::relocator
