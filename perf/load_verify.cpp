#include <set>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "load_run.hpp"

namespace hubferry::perf {

namespace {

namespace json = boost::json;
namespace resources = kube::resources;

constexpr std::size_t most_complaints = 10;

/// The objects of one hub by kind and key: one list for each kind.
class HubObjects {
 public:
  async::Awaitable<> read(kube::Api& hub, const std::vector<kube::Resource>& kinds) {
    for (const auto& kind : kinds) {
      const kube::ListOptions all;
      auto found = co_await hub.list_all(kind, all);
      for (int attempt = 0; !found && attempt < 5; ++attempt) found = co_await hub.list_all(kind, all);
      if (!found) throw std::runtime_error("cannot list " + kind.plural + ": " + found.error().describe());
      for (auto& object : *found) objects_.emplace(std::make_pair(kind.plural, object.key()), std::move(object));
    }
  }
  [[nodiscard]] const kube::Object* find(const kube::Resource& kind, const kube::Key& key) const {
    const auto found = objects_.find({kind.plural, key});
    return found == objects_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::pair<std::string, kube::Key>, kube::Object> objects_;
};

const std::vector<kube::Resource>& moving_kinds() {
  static const std::vector<kube::Resource> kinds{
      ocm::managed_clusters,  ocm::klusterlet_addon_configs, resources::secrets,
      resources::config_maps, ocm::cluster_deployments,      ocm::image_cluster_installs,
      ocm::bare_metal_hosts,  ocm::host_firmware_settings,   resources::namespaces};
  return kinds;
}

kube::Key key_of(const sim::FleetObject& object) {
  return {std::string{kube::string_at(object.object, {"metadata", "namespace"})},
          std::string{kube::string_at(object.object, {"metadata", "name"})}};
}

/// What is wrong with the copy of an object; empty: nothing.
std::string compare(const sim::FleetObject& sent, const kube::Object& copy) {
  if (sent.resource == ocm::managed_clusters) {
    if (copy.json().at("spec").at("hubAcceptsClient") != true) return "is not accepted";
    const auto* available = kube::find_condition(copy, ocm::names::available);
    if (available == nullptr || kube::string_at(*available, {"status"}) != "True") return "is not Available";
    const auto* labels = copy.find({"metadata", "labels"});
    for (const auto& [name, value] : sent.object.at("metadata").at("labels").as_object())
      if (labels == nullptr || !labels->as_object().contains(name) || labels->at(name) != value)
        return "has lost its label " + std::string{name};
    return {};
  }
  for (const auto* field : {"spec", "data", "type"})
    if (sent.object.contains(field) && (!copy.json().contains(field) || copy.json().at(field) != sent.object.at(field)))
      return std::string{"has another "} + field;
  return {};
}

}  // namespace

bool moves(const sim::FleetObject& object) {
  const auto name = kube::string_at(object.object, {"metadata", "name"});
  if (object.resource == resources::secrets) return !name.ends_with("-import");
  if (object.resource == resources::config_maps)
    return name.ends_with("-extra-manifests") ||
           kube::find(object.object, {"metadata", "labels"}) != nullptr;  // to be preserved
  return true;
}

async::Awaitable<std::vector<std::string>> verify_clusters(const LoadOptions& options, Simulator& simulator, LoadEnv&) {
  std::vector<std::string> wrong;
  const auto plan = options.plan();
  const auto names = sim::fleet_names(plan);
  HubObjects source;
  co_await source.read(simulator.api(options.hub(1)), moving_kinds());
  std::map<std::string, HubObjects> targets;
  for (int hub = 2; hub <= options.hubs; ++hub)
    co_await targets[options.hub(hub)].read(simulator.api(options.hub(hub)), moving_kinds());
  for (int cluster = 0; cluster < options.clusters && wrong.size() < most_complaints; ++cluster) {
    const auto index = static_cast<std::size_t>(cluster);
    const auto hub = options.target_of(options.migration_of(cluster));
    if (source.find(resources::namespaces, {"", names[index]}) != nullptr)
      wrong.push_back("hub1 still has namespace " + names[index]);
    for (const auto& object : sim::fleet_objects(plan, index, {})) {
      const auto key = key_of(object);
      const auto what = object.resource.kind + " " + kube::to_string(key);
      if (source.find(object.resource, key) != nullptr) wrong.push_back("hub1 still has " + what);
      if (!moves(object)) continue;
      const auto* copy = targets[hub].find(object.resource, key);
      const auto complaint = copy == nullptr ? std::string{"is missing"} : compare(object, *copy);
      if (!complaint.empty()) wrong.push_back(what + " " + complaint + " on " + hub);
    }
  }
  co_return wrong;
}

}  // namespace hubferry::perf
