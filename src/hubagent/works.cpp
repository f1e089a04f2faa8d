#include "hubagent/works.hpp"

#include "hubagent/annotations.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::hubagent {

bool is_klusterlet_work(const std::string& cluster, const Object& work) {
  return work.find({"metadata", "labels", ocm::names::klusterlet_works_label}) != nullptr ||
         work.name() == cluster + "-klusterlet" || work.name() == cluster + "-klusterlet-crds";
}

std::optional<std::string> why_work_stays(const std::string& cluster, const Object& work) {
  const auto has_label = [&](const char* label) { return work.find({"metadata", "labels", label}) != nullptr; };
  if (is_klusterlet_work(cluster, work)) return "it installs the klusterlet: the target has its own";
  if (has_label(ocm::names::addon_name_label)) return "it belongs to an add-on, which the target installs itself";
  if (has_label(ocm::names::replica_set_label)) return "a ManifestWorkReplicaSet creates it: create that on the target";
  if (work.annotation(annotations::stays) == "true") return "it has the annotation " + std::string{annotations::stays};
  if (const auto* owners = work.find({"metadata", "ownerReferences"});
      owners != nullptr && owners->is_array() && !owners->get_array().empty()) {
    const auto& owner = owners->get_array().front();
    const auto text = [&](const char* field) {
      return owner.is_object() ? std::string{kube::string_at(owner.get_object(), {field})} : std::string{};
    };
    return "it is owned by " + text("kind") + " " + text("name") + ", which is not copied";
  }
  return std::nullopt;
}

}  // namespace hubferry::hubagent
