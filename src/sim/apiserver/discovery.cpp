#include <algorithm>
#include <set>

#include "sim/apiserver/core.hpp"

namespace hubferry::sim {

namespace {

json::array to_array(const std::vector<std::string>& list) {
  return json::array(list.begin(), list.end());
}

void add_resources(const Kind& kind, json::array& into) {
  json::object entry{{"name", kind.resource.plural},
                     {"singularName", kind.singular},
                     {"namespaced", kind.resource.namespaced},
                     {"kind", kind.resource.kind}};
  entry["verbs"] = kind.stored
                       ? json::array{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
                       : json::array{"create"};
  if (!kind.short_names.empty()) entry["shortNames"] = to_array(kind.short_names);
  if (!kind.categories.empty()) entry["categories"] = to_array(kind.categories);
  into.push_back(std::move(entry));
  const auto add_subresource = [&](const std::string& name, json::array verbs) {
    json::object sub{{"name", kind.resource.plural + "/" + name},
                     {"singularName", ""},
                     {"namespaced", kind.resource.namespaced},
                     {"kind", kind.resource.kind},
                     {"verbs", std::move(verbs)}};
    if (name == "token") {
      sub["group"] = "authentication.k8s.io";
      sub["version"] = "v1";
      sub["kind"] = "TokenRequest";
    }
    into.push_back(std::move(sub));
  };
  if (kind.status) add_subresource("status", {"get", "patch", "update"});
  for (const auto& name : kind.extra_subresources)
    add_subresource(name, name == "token" ? json::array{"create"} : json::array{"get", "patch", "update"});
}

json::object group_entry(const Kinds& kinds, const std::string& group) {
  json::array versions;
  std::vector<std::string> seen;
  for (const auto& kind : kinds.all())
    if (kind->resource.group == group && std::ranges::find(seen, kind->resource.version) == seen.end()) {
      seen.push_back(kind->resource.version);
      versions.push_back(
          json::object{{"groupVersion", kind->resource.api_version()}, {"version", kind->resource.version}});
    }
  json::object entry{{"name", group}};
  entry["preferredVersion"] = versions.front();
  entry["versions"] = std::move(versions);
  return entry;
}

}  // namespace

Outcome<json::value> Core::path(std::string_view path) const {
  if (path == "/healthz" || path == "/readyz" || path == "/livez") return json::value("ok");
  if (path == "/version")
    return json::value(json::object{{"major", "1"},
                                    {"minor", "32"},
                                    {"gitVersion", "v1.32.0+hubferry-sim"},
                                    {"gitCommit", ""},
                                    {"gitTreeState", "clean"},
                                    {"buildDate", "1970-01-01T00:00:00Z"},
                                    {"goVersion", ""},
                                    {"compiler", "clang"},
                                    {"platform", "linux/amd64"}});
  if (path == "/api") return json::value(json::object{{"kind", "APIVersions"}, {"versions", json::array{"v1"}}});
  if (path == "/apis") {
    json::array groups;
    std::set<std::string> seen{""};
    for (const auto& kind : kinds_.all())
      if (seen.insert(kind->resource.group).second) groups.push_back(group_entry(kinds_, kind->resource.group));
    return json::value(json::object{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}});
  }
  const bool core_group = path.starts_with("/api/");
  if (!core_group && !path.starts_with("/apis/")) return errors::no_such_resource();
  const std::string rest{path.substr(core_group ? 5 : 6)};
  json::array resources;
  bool is_group = false;
  for (const auto& kind : kinds_.all()) {
    if (!core_group && kind->resource.group == rest) is_group = true;
    if (kind->resource.group.empty() == core_group && kind->resource.api_version() == rest)
      add_resources(*kind, resources);
  }
  if (is_group) {
    auto entry = group_entry(kinds_, rest);
    entry["kind"] = "APIGroup";
    entry["apiVersion"] = "v1";
    return json::value(std::move(entry));
  }
  if (resources.empty()) return errors::no_such_resource();
  return json::value(json::object{
      {"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", rest}, {"resources", std::move(resources)}});
}

}  // namespace hubferry::sim
