#include "hubferry/sim/fleet.hpp"

#include <array>
#include <cstdio>
#include <stdexcept>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "sim/ocm/hub_context.hpp"

namespace hubferry::sim {

namespace {

namespace json = kube::json;
namespace resources = kube::resources;

struct Region {
  const char* cloud;
  const char* region;
};
constexpr std::array regions{Region{"Amazon", "eu-west-1"}, Region{"Amazon", "us-east-1"},
                             Region{"Azure", "westeurope"}, Region{"Google", "asia-south1"},
                             Region{"VSphere", "berlin-2"}};
constexpr std::array environments{"production", "staging", "test"};
constexpr std::array versions{"4.15.37", "4.16.21", "4.17.9"};

/// Creates the objects of one cluster; what varies is drawn from a generator of its own.
class ClusterObjects {
 public:
  ClusterObjects(std::string name, async::Random random, async::WallTime now)
      : name_(std::move(name)), random_(random), now_(now) {}

  /// `preserved`: the chance that the cluster's settings move with it.
  void add_common(bool bare_metal, double preserved) {
    add(resources::namespaces,
        {{"metadata",
          json::object{{"name", name_}, {"labels", json::object{{ocm::names::cluster_name_label, name_}}}}}});
    add_managed_cluster(bare_metal);
    auto addons = in_namespace(name_);
    addons["spec"] = json::object{{"clusterName", name_},
                                  {"clusterNamespace", name_},
                                  {"clusterLabels", json::object{{"vendor", "OpenShift"}}},
                                  {"applicationManager", json::object{{"enabled", true}}},
                                  {"policyController", json::object{{"enabled", true}}},
                                  {"searchCollector", json::object{{"enabled", random_.chance(0.9)}}}};
    add(ocm::klusterlet_addon_configs, std::move(addons));
    add_secret(name_ + "-import", {"import.yaml", "crds.yaml"}, 400);
    auto settings = in_namespace(name_ + "-settings");
    if (random_.chance(preserved)) preserve(settings);
    settings["data"] = json::object{{"owner", "team-" + std::to_string(random_.below(20))},
                                    {"window", "Sat 0" + std::to_string(random_.below(6)) + ":00"}};
    add(resources::config_maps, std::move(settings));
  }

  /// The objects of a cluster that Hive installed.
  void add_installation() {
    add_secret(name_ + "-admin-password", {"password", "username"}, 24);
    add_secret(name_ + "-admin-kubeconfig", {"kubeconfig", "raw-kubeconfig"}, 600);
    add_secret(name_ + "-metadata-json", {"metadata.json"}, 200);
    add_secret(name_ + "-pull-secret", {".dockerconfigjson"}, 300);
    auto deployment = in_namespace(name_);
    deployment["metadata"].as_object()["finalizers"] = json::array{"hive.openshift.io/deprovision"};
    deployment["spec"] =
        json::object{{"baseDomain", "example.com"},
                     {"clusterName", name_},
                     {"installed", true},
                     {"clusterMetadata",
                      json::object{{"clusterID", random_.uuid()},
                                   {"infraID", name_ + "-" + random_.suffix()},
                                   {"adminKubeconfigSecretRef", json::object{{"name", name_ + "-admin-kubeconfig"}}},
                                   {"adminPasswordSecretRef", json::object{{"name", name_ + "-admin-password"}}}}},
                     {"platform", json::object{{"aws", json::object{{"region", "eu-west-1"}}}}},
                     {"pullSecretRef", json::object{{"name", name_ + "-pull-secret"}}}};
    json::object status{{"apiURL", url()}, {"installRestarts", 0}, {"powerState", "Running"}};
    add(ocm::cluster_deployments, std::move(deployment), std::move(status));
  }

  /// The objects of a cluster that was installed from an image on bare metal.
  void add_machines() { add_machines(1 + random_.below(3)); }
  void add_machines(std::uint64_t machines) {
    for (std::uint64_t i = 0; i < machines; ++i) {
      const auto host = name_ + "-host-" + std::to_string(i);
      add_secret(host + "-bmc", {"username", "password"}, 16);
      auto machine = in_namespace(host);
      machine["metadata"].as_object()["finalizers"] = json::array{"baremetalhost.metal3.io"};
      machine["spec"] = json::object{
          {"online", true},
          {"bootMACAddress", mac_address()},
          {"bmc", json::object{{"address", "redfish-virtualmedia://10.0.0." + std::to_string(random_.below(250))},
                               {"credentialsName", host + "-bmc"}}}};
      json::object status{{"operationalStatus", "OK"},
                          {"poweredOn", true},
                          {"provisioning", json::object{{"state", "provisioned"}, {"ID", random_.uuid()}}}};
      add(ocm::bare_metal_hosts, std::move(machine), std::move(status));
      auto firmware = in_namespace(host);
      firmware["spec"] = json::object{{"settings", json::object{{"ProcTurboMode", "Enabled"}}}};
      add(ocm::host_firmware_settings, std::move(firmware),
          {{"settings", json::object{{"ProcTurboMode", "Enabled"}, {"BootMode", "Uefi"}}}});
    }
    add_secret(name_ + "-seed-reconfiguration", {"manifest.json"}, 500);
    auto manifests = in_namespace(name_ + "-extra-manifests");
    manifests["data"] = json::object{{"99-kernel.yaml", filler(300)}};
    add(resources::config_maps, std::move(manifests));
    auto install = in_namespace(name_);
    install["spec"] =
        json::object{{"hostname", name_},
                     {"imageSetRef", json::object{{"name", "openshift-" + version_}}},
                     {"clusterDeploymentRef", json::object{{"name", name_}}},
                     {"extraManifestsRefs", json::array{json::object{{"name", name_ + "-extra-manifests"}}}}};
    add(ocm::image_cluster_installs, std::move(install),
        {{"conditions", json::array{condition("Completed", "InstallationCompleted", "The installation is complete")}}});
  }

  /// Secrets of the SiteConfig operator, which move with the cluster.
  void add_secrets(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      add_secret(name_ + "-site-" + std::to_string(i), {"data"}, 200);
      preserve(objects_.back().object);
    }
  }

  std::vector<FleetObject> take() { return std::move(objects_); }

 private:
  void add(const kube::Resource& resource, json::object object, json::object status = {}) {
    objects_.push_back({resource, std::move(object), std::move(status)});
  }

  json::object in_namespace(const std::string& name) const {
    return {{"metadata", json::object{{"name", name}, {"namespace", name_}}}};
  }

  static void preserve(json::object& object) {
    object["metadata"].as_object()["labels"] = json::object{{"siteconfig.open-cluster-management.io/preserve", ""}};
  }

  void add_secret(const std::string& name, std::initializer_list<const char*> keys, std::size_t size) {
    auto secret = in_namespace(name);
    secret["type"] = "Opaque";
    json::object data;
    for (const char* key : keys) data[key] = kube::encode_base64(filler(size));
    secret["data"] = std::move(data);
    add(resources::secrets, std::move(secret));
  }

  void add_managed_cluster(bool bare_metal) {
    const auto& place = regions[random_.below(regions.size())];
    version_ = versions[random_.below(versions.size())];
    json::object labels{{"name", name_},
                        {"vendor", "OpenShift"},
                        {"cloud", bare_metal ? "BareMetal" : place.cloud},
                        {"region", place.region},
                        {"environment", environments[random_.below(environments.size())]},
                        {"openshiftVersion", version_},
                        {"cluster.open-cluster-management.io/clusterset", "default"},
                        {"feature.open-cluster-management.io/addon-work-manager", "available"}};
    const auto since = async::format_time(now_);
    json::object cluster{
        {"metadata", json::object{{"name", name_},
                                  {"labels", std::move(labels)},
                                  {"annotations", json::object{{ocm::names::accepted_on_annotation, since},
                                                               {"open-cluster-management/created-via", "import"}}},
                                  {"finalizers", json::array{cleanup_finalizer}}}},
        {"spec",
         json::object{{"hubAcceptsClient", true},
                      {"leaseDurationSeconds", 60},
                      {"managedClusterClientConfigs",
                       json::array{json::object{{"url", url()}, {"caBundle", kube::encode_base64(filler(200))}}}}}}};
    const auto cores = std::to_string(16 * (1 + random_.below(8)));
    json::object status{
        {"version", json::object{{"kubernetes", "v1.30.5"}}},
        {"capacity", json::object{{"cpu", cores}, {"memory", "128Gi"}}},
        {"allocatable", json::object{{"cpu", cores}, {"memory", "120Gi"}}},
        {"clusterClaims", json::array{claim("id.k8s.io", random_.uuid()), claim("version.openshift.io", version_),
                                      claim("platform.open-cluster-management.io", place.cloud),
                                      claim("region.open-cluster-management.io", place.region),
                                      claim("product.open-cluster-management.io", "OpenShift")}},
        {"conditions",
         json::array{condition(ocm::names::accepted, "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
                     condition(ocm::names::joined, "ManagedClusterJoined", "Managed cluster joined"),
                     condition(ocm::names::available, "ManagedClusterAvailable", "Managed cluster is available"),
                     condition(ocm::names::clock_synced, "ManagedClusterClockSynced",
                               "The clock of the managed cluster is synced with the hub.")}}};
    add(ocm::managed_clusters, std::move(cluster), std::move(status));
  }

  [[nodiscard]] std::string url() const { return "https://api." + name_ + ".example.com:6443"; }

  static json::object claim(const char* name, std::string_view value) { return {{"name", name}, {"value", value}}; }

  [[nodiscard]] json::object condition(const char* type, const char* reason, const char* message) const {
    return {{"type", type},
            {"status", "True"},
            {"reason", reason},
            {"message", message},
            {"lastTransitionTime", async::format_time(now_)}};
  }

  std::string filler(std::size_t size) {
    std::string text = random_.suffix(32);
    while (text.size() < size) text += text.substr(0, size - text.size());
    text.resize(size);
    return text;
  }

  std::string mac_address() {
    std::string address = "52:54:00";
    for (int i = 0; i < 3; ++i) {
      std::array<char, 4> part{};
      std::snprintf(part.data(), part.size(), ":%02x", static_cast<unsigned>(random_.below(256)));
      address += part.data();
    }
    return address;
  }

  std::string name_;
  async::Random random_;
  async::WallTime now_;
  std::string version_;
  std::vector<FleetObject> objects_;
};

std::string name_of(const FleetPlan& plan, std::size_t index) {
  const auto number = std::to_string(plan.first + index);
  return plan.prefix + std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number;
}

kube::Awaitable<> write(kube::Api& hub, FleetObject wanted) {
  auto made = co_await hub.create(wanted.resource, std::move(wanted.object));
  if (!made && made.error().kind == kube::ErrorKind::already_exists) co_return;
  if (made && !wanted.status.empty()) {
    json::object patch{{"status", std::move(wanted.status)}};
    made = co_await hub.merge_patch(wanted.resource, made->key(), std::move(patch), "status");
  }
  if (!made)
    throw std::runtime_error("cannot create a cluster's " + wanted.resource.kind + ": " + made.error().describe());
}

kube::Awaitable<> write_clusters(kube::Api& hub, const FleetPlan& plan, async::WallTime now, std::size_t& next) {
  while (next < plan.clusters)
    for (auto& object : fleet_objects(plan, next++, now)) co_await write(hub, std::move(object));
}

}  // namespace

std::vector<std::string> fleet_names(const FleetPlan& plan) {
  std::vector<std::string> names;
  for (std::size_t index = 0; index < plan.clusters; ++index) names.push_back(name_of(plan, index));
  return names;
}

std::vector<FleetObject> fleet_objects(const FleetPlan& plan, std::size_t index, async::WallTime now) {
  // Each cluster has a generator of its own, so that its objects do not depend on other clusters.
  async::Random random{plan.seed ^ ((plan.first + index) * 0x9E3779B97F4A7C15ULL)};
  const bool mixed = plan.kind == FleetKind::mixed;
  const bool telco = plan.kind == FleetKind::telco;
  const bool installed = mixed ? random.chance(plan.installed) : telco;
  const bool bare_metal = mixed ? random.chance(plan.bare_metal) : telco;
  ClusterObjects objects{name_of(plan, index), random, now};
  objects.add_common(bare_metal, mixed ? 0.5 : 0.0);
  if (installed) objects.add_installation();
  if (bare_metal && mixed) objects.add_machines();
  if (telco) {
    // The installation has four Secrets, the machines one each and one together.
    objects.add_machines(3);
    objects.add_secrets(4);
  }
  objects.add_secrets(plan.secrets);
  return objects.take();
}

kube::Awaitable<> create_fleet(kube::Api& hub, FleetPlan plan, kube::Env env) {
  std::size_t next = 0;
  const auto now = env.clock.wall_now();
  auto body = [&](async::TaskScope& scope) -> kube::Awaitable<> {
    for (std::size_t worker = 0; worker < plan.parallel; ++worker) scope.spawn(write_clusters(hub, plan, now, next));
    co_return;
  };
  co_await async::with_scope(body);
}

}  // namespace hubferry::sim
