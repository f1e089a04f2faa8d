#include "sim/fleet/work_manifest.hpp"

#include <algorithm>
#include <cctype>

#include "hubferry/klusterlet/certificates.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::sim {

namespace json = kube::json;

namespace {

kube::Resource resource_of_manifest(const json::object& manifest) {
  const std::string version{kube::string_at(manifest, {"apiVersion"})};
  const auto slash = version.find('/');
  kube::Resource resource;
  resource.group = slash == std::string::npos ? "" : version.substr(0, slash);
  resource.version = slash == std::string::npos ? version : version.substr(slash + 1);
  resource.kind = kube::string_at(manifest, {"kind"});
  resource.plural = resource.kind + "s";
  std::ranges::transform(resource.plural, resource.plural.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  resource.namespaced = !kube::string_at(manifest, {"metadata", "namespace"}).empty();
  return resource;
}

/// True if the identifier in `entry` is that of the manifest; with `at` inside a member of that name.
bool identifies(const json::object& identifier, const WorkManifest& manifest) {
  const auto text = [&](const char* field) { return kube::string_at(identifier, {field}); };
  return text("group") == manifest.resource.group && text("resource") == manifest.resource.plural &&
         text("name") == kube::string_at(manifest.object, {"metadata", "name"}) &&
         text("namespace") == kube::string_at(manifest.object, {"metadata", "namespace"});
}

template <typename Visit>
void for_each_object(const json::value* list, Visit visit) {
  if (list == nullptr || !list->is_array()) return;
  for (const auto& entry : list->get_array())
    if (entry.is_object()) visit(entry.get_object());
}

}  // namespace

std::vector<WorkManifest> manifests_of(const kube::Object& work) {
  std::vector<WorkManifest> manifests;
  const auto policy = work.string_at({"spec", "deleteOption", "propagationPolicy"});
  for_each_object(work.find({"spec", "workload", "manifests"}), [&](const json::object& object) {
    WorkManifest manifest{resource_of_manifest(object), object, false, false, policy == "Orphan"};
    for_each_object(work.find({"spec", "manifestConfigs"}), [&](const json::object& config) {
      const auto* identifier = kube::find(config, {"resourceIdentifier"});
      if (identifier == nullptr || !identifier->is_object() || !identifies(identifier->get_object(), manifest)) return;
      const auto strategy = kube::string_at(config, {"updateStrategy", "type"});
      manifest.read_only |= strategy == "ReadOnly";
      manifest.create_only |= strategy == "CreateOnly";
    });
    for_each_object(work.find({"spec", "deleteOption", "selectivelyOrphans", "orphaningRules"}),
                    [&](const json::object& rule) { manifest.orphaned |= identifies(rule, manifest); });
    manifests.push_back(std::move(manifest));
  });
  return manifests;
}

std::string name_of_hub(const std::string& server) {
  return klusterlet::digest_of(server);
}

bool set_applied_owner(json::object& object, const kube::Object& applied, bool owned) {
  auto& owners = kube::array_in(kube::object_in(object, "metadata"), "ownerReferences");
  const auto is_it = [&](const json::value& owner) {
    return owner.is_object() && kube::string_at(owner.get_object(), {"uid"}) == applied.uid();
  };
  const auto found = std::ranges::find_if(owners, is_it);
  if ((found != owners.end()) == owned) return false;
  if (owned)
    owners.push_back(json::object{{"apiVersion", ocm::applied_manifest_works.api_version()},
                                  {"kind", ocm::applied_manifest_works.kind},
                                  {"name", applied.name()},
                                  {"uid", applied.uid()}});
  else
    owners.erase(found);
  return true;
}

bool put_manifest(json::object& object, const json::object& manifest) {
  bool changed = false;
  const auto put = [&](json::object& into, std::string_view field, const json::value& value) {
    auto& present = into[field];
    if (present == value) return;
    present = value;
    changed = true;
  };
  for (const auto& field : manifest)
    if (field.key() != "metadata" && field.key() != "status") put(object, field.key(), field.value());
  for (const char* map : {"labels", "annotations"}) {
    const auto* wanted = kube::find(manifest, {"metadata", map});
    if (wanted == nullptr || !wanted->is_object()) continue;
    auto& present = kube::object_in(kube::object_in(object, "metadata"), map);
    for (const auto& entry : wanted->get_object()) put(present, entry.key(), entry.value());
  }
  return changed;
}

}  // namespace hubferry::sim
