#include "hubferry/hubagent/hub_permissions.hpp"

#include <algorithm>

#include "hubferry/kube/yaml.hpp"

namespace hubferry::hubagent {

namespace json = kube::json;

namespace {

std::vector<std::string> texts_at(const json::object& rule, std::string_view field) {
  std::vector<std::string> texts;
  const auto* list = rule.if_contains(field);
  if (list == nullptr || !list->is_array()) return texts;
  for (const auto& item : list->get_array())
    if (item.is_string()) texts.emplace_back(item.get_string());
  return texts;
}

void add_rule(const json::object& rule, const std::string& ns, std::vector<HubPermission>& permissions) {
  auto names = texts_at(rule, "resourceNames");
  if (names.empty()) names.emplace_back();
  for (const auto& group : texts_at(rule, "apiGroups"))
    for (const auto& resource : texts_at(rule, "resources"))
      for (const auto& verb : texts_at(rule, "verbs"))
        for (const auto& name : names) {
          const auto slash = resource.find('/');
          HubPermission permission{verb};
          permission.resource.group = group;
          permission.resource.plural = resource.substr(0, slash);
          if (slash != std::string::npos) permission.subresource = resource.substr(slash + 1);
          permission.key = {ns, name};
          permissions.push_back(std::move(permission));
        }
}

/// The rules of the role; a Role holds in its namespace, a ClusterRole in all.
void add_role(const json::object& role, std::vector<HubPermission>& permissions) {
  const auto* rules = role.if_contains("rules");
  if (rules == nullptr || !rules->is_array()) return;
  const std::string ns{kube::string_at(role, {"metadata", "namespace"})};
  for (const auto& rule : rules->get_array())
    if (rule.is_object()) add_rule(rule.get_object(), ns, permissions);
}

std::vector<HubPermissions> read_hub_permissions() {
  std::vector<HubPermissions> all{
      {.name = "source",
       .for_source = true,
       .advice = "apply manifests/hub-rbac on the hub",
       .roles = {"hubferry-source", "hubferry-bootstrap-secrets"}},
      {.name = "target",
       .for_target = true,
       .advice = "apply manifests/hub-rbac on the hub",
       .roles = {"hubferry-target", "hubferry-credentials"}},
      {.name = "source clusters",
       .for_source = true,
       .per_cluster = true,
       .optional = true,
       .advice = "grant role hubferry-source-cluster in the namespace of each cluster that moves, or apply "
                 "manifests/hub-rbac/all-clusters",
       .roles = {"hubferry-source-cluster"}},
      {.name = "target clusters",
       .for_target = true,
       .per_cluster = true,
       .optional = true,
       .advice = "grant role hubferry-target-cluster in the namespace of each cluster that arrives, or apply "
                 "manifests/hub-rbac/all-clusters",
       .roles = {"hubferry-target-cluster", "hubferry-target-namespaces"}},
      {.name = "approval",
       .for_target = true,
       .advice = "apply manifests/hub-rbac/approval: no cluster is detached to a hub on which its registration cannot "
                 "be approved",
       .roles = {"hubferry-target-approval"}},
      {.name = "workloads",
       .for_target = true,
       .optional = true,
       .advice = "apply manifests/hub-rbac/workloads, or clusters with ManifestWorks of users stay on the source",
       .roles = {"hubferry-target-workloads"}},
  };
  for (const auto& document : kube::parse_yaml_documents(hub_rbac_manifests(), "manifests/hub-rbac")) {
    if (!document.is_object()) continue;
    const auto kind = kube::string_at(document.get_object(), {"kind"});
    const auto name = kube::string_at(document.get_object(), {"metadata", "name"});
    if (kind != "Role" && kind != "ClusterRole") continue;
    for (auto& permissions : all)
      if (std::ranges::find(permissions.roles, name) != permissions.roles.end())
        add_role(document.get_object(), permissions.needed);
  }
  return all;
}

}  // namespace

std::string HubPermission::text() const {
  auto what = resource.plural + (subresource.empty() ? "" : "/" + subresource);
  if (!resource.group.empty()) what += "." + resource.group;
  if (!key.name.empty()) what += " " + key.name;
  return verb + " " + what + (key.ns.empty() ? "" : " in namespace " + key.ns);
}

std::string joined_permissions(const std::vector<std::string>& texts) {
  constexpr std::size_t most = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, texts.size()); ++i) text += (i == 0 ? "" : ", ") + texts[i];
  if (texts.size() > most) text += " and " + std::to_string(texts.size() - most) + " more";
  return text;
}

const std::vector<HubPermissions>& hub_permissions() {
  static const auto all = read_hub_permissions();
  return all;
}

}  // namespace hubferry::hubagent
