#include "sim/apiserver/core.hpp"

namespace hubferry::sim {

Outcome<> Core::ask_admission(const User& user, const Kind& kind, const kube::Object* before,
                              const json::object& after) {
  if (admissions_.empty()) return {};
  const auto [first, last] = admissions_.equal_range(kind.resource.display_name());
  if (first == last) return {};
  const AdmissionReview review{
      user, before, after,
      [&](const std::string& verb, const kube::Resource& resource, const kube::Key& key,
          const std::string& subresource) {
        return permissions_.allows(user, {verb, resource.group, resource.plural, subresource, key.ns, key.name});
      },
      [&](const kube::Resource& resource, const kube::Key& key) -> std::optional<kube::Object> {
        const auto* other = kinds_.find(resource);
        if (other == nullptr || other->collection == nullptr) return std::nullopt;
        const auto found = other->collection->entries.find(key);
        if (found == other->collection->entries.end()) return std::nullopt;
        return found->second.object;
      }};
  for (auto admission = first; admission != last; ++admission)
    if (const auto why = admission->second(review))
      return errors::forbidden(kind.resource, kube::string_at(after, {"metadata", "name"}), *why);
  return {};
}

}  // namespace hubferry::sim
