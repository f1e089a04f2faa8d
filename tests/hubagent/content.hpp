#pragma once

#include <boost/json/serialize.hpp>
#include <map>
#include <string>

#include "hubferry/hubagent/carried_resources.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::hubagent {

/// All objects of a server, by kind and name; without the fields that differ between two runs with the same result.
using Content = std::map<std::string, std::string>;

/// The carried kinds, and the others that operations write to.
inline const std::vector<kube::Resource>& all_kinds() {
  static const std::vector<kube::Resource> kinds = [] {
    using namespace kube::resources;
    std::vector<kube::Resource> all{namespaces,
                                    service_accounts,
                                    leases,
                                    cluster_roles,
                                    cluster_role_bindings,
                                    ocm::placement_decisions,
                                    ocm::cluster_managers,
                                    ocm::manifest_works,
                                    ocm::klusterlet_configs,
                                    ocm::observability_addons,
                                    ocm::data_images};
    for (const auto& kind : default_carried_resources()) all.push_back(kind.resource);
    return all;
  }();
  return kinds;
}

inline std::string sorted_text(const kube::json::value& value) {
  if (value.is_object()) {
    std::map<std::string, std::string> fields;
    for (const auto& field : value.get_object()) fields[std::string{field.key()}] = sorted_text(field.value());
    std::string text = "{";
    for (const auto& [name, field] : fields) text += name + ":" + field + ",";
    return text + "}";
  }
  if (value.is_array()) {
    std::string text = "[";
    for (const auto& element : value.get_array()) text += sorted_text(element) + ",";
    return text + "]";
  }
  return kube::json::serialize(value);
}

inline Content content_of(const sim::Server& server) {
  Content content;
  for (const auto& kind : all_kinds()) {
    for (const auto& object : server.objects(kind)) {
      auto stable = object.json();
      auto& metadata = stable["metadata"].as_object();
      for (const char* field : {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})
        metadata.erase(field);
      content[kind.kind + " " + kube::to_string(object.key())] = sorted_text(stable);
    }
  }
  return content;
}

/// The objects that are in one only, or differ: "+Secret a/b", "-…", "~…".
inline std::vector<std::string> differences(const Content& before, const Content& after) {
  std::vector<std::string> found;
  for (const auto& [name, text] : before) {
    const auto now = after.find(name);
    if (now == after.end())
      found.push_back("-" + name);
    else if (now->second != text)
      found.push_back("~" + name);
  }
  for (const auto& [name, text] : after)
    if (!before.contains(name)) found.push_back("+" + name);
  return found;
}

}  // namespace hubferry::hubagent
