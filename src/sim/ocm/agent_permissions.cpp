#include "sim/ocm/agent_permissions.hpp"

#include "hubferry/ocm/resources.hpp"

namespace hubferry::sim::agent_permissions {

namespace json = kube::json;

namespace {

constexpr const char* rbac_group = "rbac.authorization.k8s.io";
constexpr const char* cluster_group = "cluster.open-cluster-management.io";

using Words = std::initializer_list<std::string_view>;

json::array list_of(Words words) {
  json::array list;
  for (const auto word : words) list.emplace_back(word);
  return list;
}

json::object rule(std::string_view group, Words resources, Words verbs, std::string_view name = {}) {
  json::object made{{"apiGroups", list_of({group})}, {"resources", list_of(resources)}, {"verbs", list_of(verbs)}};
  if (!name.empty()) made["resourceNames"] = list_of({name});
  return made;
}

json::object role(std::string_view name, json::array rules) {
  return {{"metadata", json::object{{"name", name}}}, {"rules", std::move(rules)}};
}

json::object labelled(std::string_view name, const std::string& cluster) {
  return {{"name", name}, {"labels", json::object{{ocm::names::cluster_name_label, cluster}}}};
}

json::object of_cluster(json::object role, const std::string& cluster) {
  role["metadata"] = labelled(role_name(cluster), cluster);
  return role;
}

json::object binding(json::object metadata, std::string_view role, const std::string& cluster) {
  return {{"metadata", std::move(metadata)},
          {"roleRef", json::object{{"apiGroup", rbac_group}, {"kind", "ClusterRole"}, {"name", role}}},
          {"subjects",
           json::array{json::object{{"apiGroup", rbac_group}, {"kind", "Group"}, {"name", group_of(cluster)}}}}};
}

json::object within(json::object metadata, const std::string& cluster) {
  metadata["namespace"] = cluster;
  return metadata;
}

}  // namespace

std::string group_of(const std::string& cluster) {
  return "system:open-cluster-management:" + cluster;
}

std::string role_name(const std::string& cluster) {
  return "open-cluster-management:managedcluster:" + cluster;
}

std::string registration_binding_name(const std::string& cluster) {
  return role_name(cluster) + ":registration";
}

std::string work_binding_name(const std::string& cluster) {
  return role_name(cluster) + ":work";
}

json::object accepted_role(const std::string& cluster) {
  return of_cluster(
      role({},
           json::array{rule("certificates.k8s.io", {"certificatesigningrequests"}, {"create", "get", "list", "watch"}),
                       rule("register.open-cluster-management.io", {"managedclusters/clientcertificates"}, {"renew"}),
                       rule(cluster_group, {"managedclusters"}, {"get", "list", "update", "watch"}, cluster),
                       rule(cluster_group, {"managedclusters/status"}, {"patch", "update"}, cluster)}),
      cluster);
}

json::object denied_role(const std::string& cluster) {
  return of_cluster(role({}, json::array{rule(cluster_group, {"managedclusters"}, {"get", "list", "watch"}, cluster)}),
                    cluster);
}

json::object role_binding(const std::string& cluster) {
  return binding(labelled(role_name(cluster), cluster), role_name(cluster), cluster);
}

json::object registration_binding(const std::string& cluster) {
  return binding(within(labelled(registration_binding_name(cluster), cluster), cluster), registration_role, cluster);
}

json::object work_binding(const std::string& cluster) {
  auto metadata = within(labelled(work_binding_name(cluster), cluster), cluster);
  metadata["finalizers"] = json::array{work_finalizer};
  return binding(std::move(metadata), work_role, cluster);
}

json::object shared_registration_role() {
  constexpr const char* addons = "addon.open-cluster-management.io";
  return role(registration_role,
              json::array{rule("coordination.k8s.io", {"leases"}, {"get", "update"}, ocm::names::cluster_lease),
                          rule(addons, {"managedclusteraddons"}, {"get", "list", "watch"}),
                          rule(addons, {"managedclusteraddons/status"}, {"patch", "update"})});
}

json::object shared_work_role() {
  constexpr const char* works = "work.open-cluster-management.io";
  return role(work_role, json::array{rule("", {"events"}, {"create", "patch", "update"}),
                                     rule("events.k8s.io", {"events"}, {"create", "patch", "update"}),
                                     rule(works, {"manifestworks"}, {"get", "list", "watch", "update"}),
                                     rule(works, {"manifestworks/status"}, {"patch", "update"})});
}

json::object bootstrap_role(const std::string& name) {
  return role(
      name, json::array{rule("", {"configmaps"}, {"get"}),
                        rule("certificates.k8s.io", {"certificatesigningrequests"}, {"create", "get", "list", "watch"}),
                        rule(cluster_group, {"managedclusters"}, {"get", "create", "list", "watch"}),
                        rule(cluster_group, {"managedclustersets/join"}, {"create"})});
}

}  // namespace hubferry::sim::agent_permissions
