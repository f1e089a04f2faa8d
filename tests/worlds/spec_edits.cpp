#include "spec_edits.hpp"

#include <stdexcept>

#include "hubferry/migration/resource.hpp"

namespace hubferry::worlds {

namespace json = boost::json;
using migration::managed_cluster_migrations;

namespace {

void erase_rules(json::value& value) {
  if (value.is_array())
    for (auto& item : value.get_array()) erase_rules(item);
  if (!value.is_object()) return;
  value.get_object().erase("x-kubernetes-validations");
  for (auto& member : value.get_object()) erase_rules(member.value());
}

void erase_schema(json::value& definition) {
  for (auto& version : definition.at("spec").at("versions").as_array())
    version.at("schema").at("openAPIV3Schema").at("properties").as_object()["spec"] =
        json::object{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
}

}  // namespace

std::vector<json::object> spec_edits(const std::string& source, const std::string& target) {
  const json::object strangers{{"includedManagedClusters", json::array{"none-of-these"}}};
  const auto config = [](const char* name, json::value value) {
    return json::object{{"supportedConfigs", json::object{{name, std::move(value)}}}};
  };
  return {
      {{"to", source}},
      {{"to", nullptr}},
      {{"from", target}},
      {{"from", "hub-9"}},
      {{"from", ""}},
      strangers,
      {{"includedManagedClusters", json::array{}}},
      {{"includedManagedClusters", json::array{""}}},
      {{"includedManagedClusters", "all"}},
      {{"includedManagedClusters", nullptr}, {"includedManagedClustersPlacementRef", "default/none"}},
      {{"includedManagedClustersPlacementRef", "default/none"}},
      config("stageTimeout", "1s"),
      config("stageTimeout", "banana"),
      config("stageTimeout", "-5m"),
      config("stageTimeout", 5),
      config("restartAgents", true),
      config("restartAgents", "yes"),
      {{"supportedConfigs", nullptr}},
      {{"supportedConfigs", json::array{}}},
      {{"ttlSecondsAfterFinished", 0}},
      {{"ttlSecondsAfterFinished", 9223372036854775807}},
      {{"ttlSecondsAfterFinished", -1}},
      {{"unknown", json::object{{"field", 1}}}},
  };
}

void weaken_checks(sim::VirtualWorld& world, Checks left) {
  if (left == Checks::all) return;
  auto& api = world.global().api();
  const kube::Key key{"", managed_cluster_migrations.plural + "." + managed_cluster_migrations.group};
  const auto definition = world.run(api.get(kube::resources::custom_resource_definitions, key));
  if (!definition) throw std::runtime_error(definition.error().describe());
  json::value object(definition->json());
  erase_rules(object);
  if (left == Checks::no_schema) erase_schema(object);
  const auto updated =
      world.run(api.update(kube::resources::custom_resource_definitions, std::move(object.as_object())));
  if (!updated) throw std::runtime_error(updated.error().describe());
}

}  // namespace hubferry::worlds
