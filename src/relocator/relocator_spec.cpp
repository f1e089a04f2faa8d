#include "relocator/relocator_spec.hpp"

#include <algorithm>

namespace hubferry::relocator {

OrProblem<RelocatorSpec> read_spec(const kube::Object& relocator) {
  RelocatorSpec spec;
  spec.name = std::string{relocator.name()};
  spec.secret = {std::string{relocator.string_at({"spec", "kubeconfigSecretRef", "namespace"})},
                 std::string{relocator.string_at({"spec", "kubeconfigSecretRef", "name"})}};
  if (spec.secret.ns.empty() || spec.secret.name.empty())
    return Problem{"InvalidSecretReference", "spec.kubeconfigSecretRef must have a name and a namespace"};
  const auto* selector = relocator.find({"spec", "clusterDeploymentSelector"});
  static const kube::json::object nothing;
  auto parsed =
      kube::LabelSelector::from_json(selector != nullptr && selector->is_object() ? selector->get_object() : nothing);
  if (!parsed) return Problem{"InvalidSelector", "spec.clusterDeploymentSelector: " + parsed.error().message};
  if (parsed->empty())
    return Problem{"EmptySelector", "spec.clusterDeploymentSelector is empty: it would move every ClusterDeployment"};
  spec.selector = std::move(*parsed);
  const auto* whole = relocator.find({"spec", "wholeNamespace"});
  spec.whole_namespace = whole != nullptr && whole->is_bool() && whole->get_bool();
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

std::optional<RelocatorSpec> find_relocator(const ObjectCache& relocators, const std::string& name) {
  const auto found = relocators.get({{}, name});
  if (found == nullptr) return std::nullopt;
  auto spec = read_spec(*found);
  if (!spec) return std::nullopt;
  return std::move(*spec);
}

std::string names_of(const std::vector<RelocatorSpec>& relocators) {
  std::string text;
  for (const auto& one : relocators) text += (text.empty() ? "" : ", ") + one.name;
  return text;
}

}  // namespace hubferry::relocator
