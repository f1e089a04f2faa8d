#pragma once

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <string>
#include <vector>

#include "hubferry/kube/object.hpp"

namespace hubferry::ui {

namespace json = boost::json;

inline kube::Object migration_object(const std::string& phase, const std::vector<std::string>& clusters,
                                     const std::string& name = "move", const std::string& uid = "uid-1") {
  json::object spec{
      {"from", "hub1"}, {"to", "hub2"}, {"includedManagedClusters", json::array(clusters.begin(), clusters.end())}};
  json::object metadata{{"name", name},
                        {"namespace", "default"},
                        {"uid", uid},
                        {"resourceVersion", "1"},
                        {"creationTimestamp", "2030-01-01T00:00:00Z"}};
  json::object migration{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  if (!phase.empty()) migration["status"] = json::object{{"phase", phase}};
  return kube::Object{std::move(migration)};
}

/// The content of the first event of that name; empty: there is none.
inline json::object event_content(const std::vector<std::string>& events, const std::string& name) {
  const std::string head = "event: " + name + "\ndata: ";
  for (const auto& event : events)
    if (event.starts_with(head))
      return json::parse(event.substr(head.size(), event.size() - head.size() - 2)).as_object();
  return {};
}

}  // namespace hubferry::ui
