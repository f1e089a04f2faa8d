#include "sim/ocm/hub_registration.hpp"

#include <stdexcept>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/ensure.hpp"

namespace hubferry::sim {

namespace {

namespace json = kube::json;
namespace resources = kube::resources;

constexpr std::chrono::seconds heartbeat{60};

kube::Mutation available_since(async::WallTime now) {
  return [now](json::object& object) {
    auto& fields = kube::object_in(object, "status");
    const auto set = [&](const char* type, const char* reason, const char* message) {
      return kube::set_condition(fields, {type, kube::ConditionStatus::yes, reason, message, 0}, now);
    };
    const bool joined = set(ocm::names::joined, "ManagedClusterJoined", "Managed cluster joined");
    return set(ocm::names::available, "ManagedClusterAvailable", "Managed cluster is available") || joined;
  };
}

kube::Awaitable<kube::Result<>> beat(kube::Api& global, std::string name, async::WallTime now) {
  json::object patch{{"spec", json::object{{"renewTime", async::format_micro_time(now)}}}};
  const auto lease = ocm::lease_key(name);
  auto renewed = co_await global.merge_patch(resources::leases, lease, std::move(patch));
  // The hub's controllers create the lease after acceptance: the condition does not wait for it.
  if (!renewed && renewed.error().kind != kube::ErrorKind::not_found) co_return renewed.error();
  kube::EditOptions how;
  how.subresource = "status";
  const kube::Key key{{}, name};
  auto reported = co_await kube::edit(global, ocm::managed_clusters, key, available_since(now), how);
  if (!reported) co_return reported.error();
  co_return kube::Result<>{};
}

}  // namespace

kube::Awaitable<> register_hub(kube::Api& global, std::string hub, kube::ClientConfig admin, bool with_kubeconfig,
                               kube::Env env) {
  json::object client{{"url", admin.server}};
  if (!admin.ca_pem.empty()) client["caBundle"] = kube::encode_base64(admin.ca_pem);
  json::object cluster{
      {"metadata",
       json::object{
           {"name", hub},
           {"labels", json::object{{"name", hub}, {"vendor", "OpenShift"}, {ocm::names::deploy_mode_label, "default"}}},
           {"annotations", json::object{{ocm::names::on_hub_annotation, "true"}}}}},
      {"spec", json::object{{"hubAcceptsClient", true},
                            {"leaseDurationSeconds", 60},
                            {"managedClusterClientConfigs", json::array{std::move(client)}}}}};
  json::object space{
      {"metadata", json::object{{"name", hub}, {"labels", json::object{{ocm::names::cluster_name_label, hub}}}}}};
  std::vector<std::pair<kube::Resource, json::object>> wanted;
  wanted.emplace_back(resources::namespaces, std::move(space));
  wanted.emplace_back(ocm::managed_clusters, std::move(cluster));
  if (with_kubeconfig) {
    json::object secret{{"metadata", json::object{{"name", "hub-kubeconfig"},
                                                  {"namespace", hub},
                                                  {"labels", json::object{{"hubferry.io/hub-kubeconfig", "true"}}}}},
                        {"type", "Opaque"},
                        {"data", json::object{{"kubeconfig", kube::encode_base64(kube::to_kubeconfig(admin))}}}};
    wanted.emplace_back(resources::secrets, std::move(secret));
  }
  for (auto& [resource, object] : wanted) {
    auto made = co_await ensure(global, resource, std::move(object));
    if (!made) throw std::runtime_error("cannot register hub " + hub + ": " + made.error().describe());
  }
  auto reported = co_await beat(global, hub, env.clock.wall_now());
  if (!reported) throw std::runtime_error("cannot register hub " + hub + ": " + reported.error().describe());
}

kube::Awaitable<> create_account_addon(kube::Api& global, std::string hub) {
  json::object addon{{"metadata", json::object{{"name", "managed-serviceaccount"}, {"namespace", hub}}},
                     {"spec", json::object{}}};
  auto made = co_await ensure(global, ocm::managed_cluster_addons, std::move(addon));
  if (!made) throw std::runtime_error("cannot create the add-on of hub " + hub + ": " + made.error().describe());
}

kube::Awaitable<> send_hub_heartbeats(kube::Api& global, kube::Api& hub, std::string name, kube::Env env) {
  while (true) {
    co_await env.clock.sleep_for(heartbeat);
    auto alive = co_await hub.get_path("/readyz");
    if (!alive) continue;
    // A failure is retried at the next heartbeat.
    (void)co_await beat(global, name, env.clock.wall_now());
  }
}

}  // namespace hubferry::sim
