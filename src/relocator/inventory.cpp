#include "relocator/inventory.hpp"

#include <algorithm>
#include <set>

#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/hive.hpp"
#include "hubferry/relocator/names.hpp"
#include "relocator/copy.hpp"

namespace hubferry::relocator {

namespace {

namespace json = kube::json;

constexpr std::string_view token_type = "kubernetes.io/service-account-token";

/// The Secrets and ConfigMaps that objects refer to, by name.
struct References {
  std::set<std::string, std::less<>> secrets;
  std::set<std::string, std::less<>> config_maps;
};

void add_reference(std::string_view field, const json::object& value, References& to) {
  const auto name = kube::string_at(value, {"name"});
  if (name.empty()) return;
  if (field.ends_with("ecretRef") || field == "sourceRef") to.secrets.emplace(name);
  if (field.ends_with("onfigMapRef")) to.config_maps.emplace(name);
}

/// Hive names its references `…SecretRef` and `…ConfigMapRef` everywhere, and `sourceRef` in the secretMappings of a
/// SyncSet.
void collect_references(const json::value& from, References& to) {
  if (const auto* fields = from.if_object()) {
    for (const auto& field : *fields) {
      if (const auto* value = field.value().if_object()) add_reference(field.key(), *value, to);
      collect_references(field.value(), to);
    }
  } else if (const auto* elements = from.if_array()) {
    for (const auto& element : *elements) collect_references(element, to);
  }
}

void collect_references(const kube::Object& from, References& to) {
  if (const auto* spec = from.find({"spec"})) collect_references(*spec, to);
}

bool names_deployment(const kube::Object& object, std::string_view deployment) {
  if (object.string_at({"spec", "clusterDeploymentRef", "name"}) == deployment) return true;
  const auto* references = object.find({"spec", "clusterDeploymentRefs"});
  return references != nullptr && references->is_array() &&
         std::ranges::any_of(references->get_array(), [&](const json::value& reference) {
           return reference.is_object() && kube::string_at(reference.get_object(), {"name"}) == deployment;
         });
}

std::vector<kube::Object> of_namespace(const ObjectCache& cache, std::string_view ns, bool all,
                                       std::string_view deployment) {
  std::vector<kube::Object> found;
  cache.for_each([&](const Key& key, const ObjectCache::Pointer& object) {
    if (key.ns == ns && (all || names_deployment(*object, deployment))) found.push_back(*object);
  });
  std::ranges::sort(found, {}, [](const kube::Object& object) { return std::string{object.name()}; });
  return found;
}

/// MachinePools, SyncSets and SyncIdentityProviders, which are cached.
std::vector<InventoryItem> items_of_hive(const SourceCaches& caches, const RelocatorSpec& relocator,
                                         const kube::Object& deployment) {
  std::vector<InventoryItem> items;
  const auto add = [&](const kube::Resource& kind, const ObjectCache& cache) {
    for (auto& object : of_namespace(cache, deployment.ns(), relocator.whole_namespace, deployment.name()))
      items.push_back({kind, std::move(object)});
  };
  add(ocm::machine_pools, *caches.machine_pools);
  add(ocm::sync_sets, *caches.sync_sets);
  add(ocm::sync_identity_providers, *caches.identity_providers);
  return items;
}

bool is_token(const kube::Object& secret) {
  return secret.string_at({"type"}) == token_type;
}

/// True for a Secret that a token owns (dockercfg). Problems: its owner is missing, so that nobody knows.
OrProblem<bool> belongs_to_token(const kube::Object& secret, const std::vector<kube::Object>& all) {
  const auto* owners = secret.find({"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) return false;
  for (const auto& owner : owners->get_array()) {
    if (!owner.is_object() || kube::string_at(owner.get_object(), {"kind"}) != "Secret") continue;
    const auto name = kube::string_at(owner.get_object(), {"name"});
    const auto found = std::ranges::find_if(all, [&](const kube::Object& one) { return one.name() == name; });
    if (found == all.end())
      return Problem{reasons::move_failed, "Secret " + std::string{secret.name()} + " is owned by Secret " +
                                               std::string{name} + ", which does not exist"};
    if (is_token(*found)) return true;
  }
  return false;
}

/// Controllers make them in every namespace: replacing them would never end.
bool is_made_by_cluster(const kube::Object& config_map) {
  return config_map.name() == "kube-root-ca.crt" || config_map.name() == "openshift-service-ca.crt";
}

Problem cannot_list(const kube::Resource& kind, const kube::Error& error) {
  return {reasons::move_failed, "cannot list " + kind.display_name() + " of the source: " + error.describe()};
}

}  // namespace

Awaitable<OrProblem<std::vector<InventoryItem>>> take_inventory(kube::Api& source, const SourceCaches& caches,
                                                                const RelocatorSpec& relocator,
                                                                const kube::Object& deployment) {
  const std::string ns{deployment.ns()};
  const std::string name{deployment.name()};
  const bool all = relocator.whole_namespace;
  auto of_hive = items_of_hive(caches, relocator, deployment);
  References references;
  collect_references(deployment, references);
  for (const auto& item : of_hive) collect_references(item.object, references);

  const auto is_ours = [&](const kube::Object& object, const std::set<std::string, std::less<>>& referenced) {
    return all || referenced.contains(object.name()) || object.label(ocm::names::hive_deployment_label) == name ||
           kube::is_owned_by(object, deployment.uid());
  };
  std::vector<InventoryItem> items;
  kube::ListOptions in_namespace;
  in_namespace.ns = ns;
  auto secrets = co_await source.list_all(kube::resources::secrets, in_namespace);
  if (!secrets) co_return cannot_list(kube::resources::secrets, secrets.error());
  for (const auto& secret : *secrets) {
    if (is_token(secret) || secret.key() == relocator.secret || !is_ours(secret, references.secrets)) continue;
    const auto skipped = belongs_to_token(secret, *secrets);
    if (!skipped) co_return skipped.error();
    if (!*skipped) items.push_back({kube::resources::secrets, secret});
  }
  auto maps = co_await source.list_all(kube::resources::config_maps, in_namespace);
  if (!maps) co_return cannot_list(kube::resources::config_maps, maps.error());
  for (const auto& map : *maps)
    if (!is_made_by_cluster(map) && is_ours(map, references.config_maps))
      items.push_back({kube::resources::config_maps, map});
  for (auto& item : of_hive) items.push_back(std::move(item));
  co_return items;
}

bool is_current(const std::vector<InventoryItem>& inventory, const SourceCaches& caches, const RelocatorSpec& relocator,
                const kube::Object& deployment) {
  const auto now = items_of_hive(caches, relocator, deployment);
  return std::ranges::all_of(now, [&](const InventoryItem& item) {
    return std::ranges::any_of(inventory, [&](const InventoryItem& before) {
      return before.resource == item.resource && before.object.key() == item.object.key() &&
             (before.object.resource_version() == item.object.resource_version() ||
              clean_copy(before.object) == clean_copy(item.object));
    });
  });
}

std::vector<std::string> matching_sync_sets(const ObjectCache& selector_sync_sets, const kube::Object& deployment) {
  std::vector<std::string> names;
  selector_sync_sets.for_each([&](const Key& key, const ObjectCache::Pointer& one) {
    const auto* selector = one->find({"spec", "clusterDeploymentSelector"});
    static const json::object nothing;
    const auto parsed =
        kube::LabelSelector::from_json(selector != nullptr && selector->is_object() ? selector->get_object() : nothing);
    if (parsed && parsed->matches(deployment)) names.push_back(key.name);
  });
  std::ranges::sort(names);
  return names;
}

}  // namespace hubferry::relocator
