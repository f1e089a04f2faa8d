#include "sim/ocm/hub_context.hpp"

#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::sim {

namespace {

using kube::CacheOptions;

kube::EventRecorderOptions recorder_options(const HubOptions& options) {
  kube::EventRecorderOptions recorder;
  recorder.controller = "open-cluster-management.io/hub";
  recorder.instance = options.name;
  // A whole fleet may change its state at the same time.
  recorder.most_waiting = 20'000;
  recorder.most_known = 40'000;
  return recorder;
}

CacheOptions labelled(const char* label) {
  CacheOptions options;
  options.label_selector = label;
  return options;
}

CacheOptions only(const char* name) {
  CacheOptions options;
  options.field_selector = std::string{"metadata.name="} + name;
  return options;
}

CacheOptions within(const char* ns) {
  CacheOptions options;
  options.ns = ns;
  return options;
}

}  // namespace

HubContext::HubContext(kube::Api& server, HubOptions settings, kube::Env environment)
    : api(server),
      options(std::move(settings)),
      env(std::move(environment)),
      clusters(api, ocm::managed_clusters, {}, kube::object_decoder(), env),
      namespaces(api, kube::resources::namespaces, labelled(ocm::names::cluster_name_label), kube::object_decoder(),
                 env),
      leases(api, kube::resources::leases, only(ocm::names::cluster_lease), kube::object_decoder(), env),
      works(api, ocm::manifest_works, {}, kube::object_decoder(), env),
      requests(api, kube::resources::certificate_signing_requests, labelled(ocm::names::cluster_name_label),
               kube::object_decoder(), env),
      managers(api, ocm::cluster_managers, {}, kube::object_decoder(), env),
      klusterlet_configs(api, ocm::klusterlet_configs, {}, kube::object_decoder(), env),
      engine_secrets(api, kube::resources::secrets, within(ocm::names::engine_namespace), kube::object_decoder(), env),
      placements(api, ocm::placements, {}, kube::object_decoder(), env),
      decisions(api, ocm::placement_decisions, {}, kube::object_decoder(), env),
      events(api, recorder_options(options), env) {
  works.add_index("namespace", [](const Object& work) { return std::vector{std::string{work.ns()}}; });
}

Awaitable<> HubContext::follow() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    for (auto* cache : caches()) scope.spawn(cache->run());
    scope.spawn(events.run());
    co_return;
  };
  co_await async::with_scope(body);
}

Awaitable<> HubContext::wait_synced() {
  for (auto* cache : caches()) co_await cache->wait_synced();
}

std::vector<ObjectCache*> HubContext::caches() {
  std::vector<ObjectCache*> all{&clusters, &namespaces, &leases, &works, &requests, &managers, &placements, &decisions};
  // Without an import controller the hub does not serve KlusterletConfigs.
  if (imports()) all.insert(all.end(), {&klusterlet_configs, &engine_secrets});
  return all;
}

void HubContext::record_event(const Object& cluster, kube::EventType type, std::string_view reason,
                              std::string_view message) {
  // Its namespace is being deleted too, and rejects new objects.
  if (cluster.is_being_deleted()) return;
  auto about = kube::reference_to(ocm::managed_clusters, cluster);
  about.ns = about.name;
  events.event(about, type, reason, "Reconcile", message);
}

Awaitable<Done> HubContext::set_condition(Object cluster, kube::Condition condition) {
  const auto now = env.clock.wall_now();
  kube::Mutation mutate = [condition = std::move(condition), now](json::object& object) {
    return kube::set_condition(kube::object_in(object, "status"), condition, now);
  };
  kube::EditOptions how;
  how.subresource = "status";
  auto written = co_await kube::edit(api, ocm::managed_clusters, std::move(cluster), std::move(mutate), how);
  if (!written && written.error().kind != kube::ErrorKind::not_found) co_return written.error();
  co_return Done{};
}

bool HubContext::has_works(const std::string& cluster) const {
  return !works.lookup("namespace", cluster).empty();
}

bool is_accepted(const Object& cluster) {
  const auto* accepted = cluster.find({"spec", "hubAcceptsClient"});
  return accepted != nullptr && accepted->is_bool() && accepted->get_bool();
}

std::chrono::seconds lease_duration(const Object& cluster) {
  const auto* seconds = cluster.find({"spec", "leaseDurationSeconds"});
  const bool is_set = seconds != nullptr && seconds->is_int64() && seconds->get_int64() > 0;
  return std::chrono::seconds{is_set ? seconds->get_int64() : 60};
}

bool approves_automatically(const HubContext& hub) {
  const auto manager = hub.managers.get(cluster_key(hub_names::cluster_manager));
  const auto* gates =
      manager != nullptr ? manager->find({"spec", "registrationConfiguration", "featureGates"}) : nullptr;
  if (gates == nullptr || !gates->is_array()) return false;
  for (const auto& gate : gates->get_array())
    if (gate.is_object() && kube::string_at(gate.get_object(), {"feature"}) == "ManagedClusterAutoApproval")
      return kube::string_at(gate.get_object(), {"mode"}) == "Enable";
  return false;
}

}  // namespace hubferry::sim
