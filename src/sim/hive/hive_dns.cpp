#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/hive.hpp"
#include "sim/hive/hive_context.hpp"

/// Hive's two DNS controllers: dnszone, which manages the zone, and dnsendpoint, which manages its name servers in the
/// parent domain.
namespace hubferry::sim {

namespace {

/// controllerutils.ReconcileDNSZoneForRelocation: what both do before any call to the cloud.
enum class DnsGate {
  open,     // as usual
  closed,   // nothing
  release,  // remove the own finalizer, nothing else
  error,
};

DnsGate dns_gate(const HiveContext& hive, const kube::Object& zone) {
  switch (hive_relocation(hive, zone)) {
    case HiveRelocation::none:
      return DnsGate::open;
    case HiveRelocation::outgoing:
      return DnsGate::closed;
    case HiveRelocation::incoming:
      return zone.is_being_deleted() ? DnsGate::release : DnsGate::closed;
    case HiveRelocation::complete:
      return DnsGate::release;
    case HiveRelocation::malformed:
      break;
  }
  return DnsGate::error;
}

kube::Error unreadable_relocation() {
  return {kube::ErrorKind::invalid, 0, {}, "unknown relocate status", {}};
}

/// Adds or removes a finalizer. An object that is gone, or that has it as wanted, is fine.
kube::Awaitable<kube::Result<bool>> set_finalizer(HiveContext& hive, kube::Object zone, const char* finalizer,
                                                  bool wanted) {
  if (kube::has_finalizer(zone, finalizer) == wanted) co_return true;
  const kube::Key key = zone.key();
  kube::Result<kube::Object> written = kube::Object{};
  if (wanted) {
    written = co_await kube::add_finalizer(hive.api, ocm::dns_zones, key, finalizer);
  } else {
    written = co_await kube::remove_finalizer(hive.api, ocm::dns_zones, key, finalizer);
  }
  if (!written && written.error().kind != kube::ErrorKind::not_found) co_return written.error();
  co_return true;
}

kube::Awaitable<> report_unreadable_relocation(HiveContext& hive, kube::Key key) {
  const kube::Mutation mutate = [&](kube::json::object& object) {
    const kube::Condition condition{"GenericDNSErrors", kube::ConditionStatus::yes, "RelocationError",
                                    "unknown relocate status", 0};
    return kube::set_condition(kube::object_in(object, "status"), condition, hive.env.clock.wall_now());
  };
  kube::EditOptions options;
  options.subresource = "status";
  co_await kube::edit(hive.api, ocm::dns_zones, key, mutate, options);
}

}  // namespace

kube::Awaitable<kube::Result<bool>> reconcile_zone(HiveContext& hive, kube::Key key) {
  const auto zone = hive.zones.get(key);
  if (zone == nullptr) co_return true;
  constexpr auto* finalizer = ocm::names::hive_dns_zone_finalizer;
  const auto gate = dns_gate(hive, *zone);
  if (gate == DnsGate::closed) co_return true;
  if (gate == DnsGate::release) co_return co_await set_finalizer(hive, *zone, finalizer, false);
  if (gate == DnsGate::error) {
    hive.record("error dns", key);
    co_await report_unreadable_relocation(hive, key);
    co_return unreadable_relocation();
  }
  const bool deleted = zone->is_being_deleted();
  if (deleted && !kube::has_finalizer(*zone, finalizer)) co_return true;
  hive.record(deleted ? "remove dns" : "dns", key);
  co_return co_await set_finalizer(hive, *zone, finalizer, !deleted);
}

kube::Awaitable<kube::Result<bool>> reconcile_endpoint(HiveContext& hive, kube::Key key) {
  const auto zone = hive.zones.get(key);
  if (zone == nullptr) co_return true;
  const auto* linked = zone->find({"spec", "linkToParentDomain"});
  if (linked == nullptr || !linked->is_bool() || !linked->get_bool()) co_return true;
  constexpr auto* finalizer = ocm::names::hive_dns_endpoint_finalizer;
  const auto gate = dns_gate(hive, *zone);
  if (gate == DnsGate::closed) co_return true;
  if (gate == DnsGate::release) co_return co_await set_finalizer(hive, *zone, finalizer, false);
  if (gate == DnsGate::error) co_return unreadable_relocation();
  const bool deleted = zone->is_being_deleted();
  if (deleted && !kube::has_finalizer(*zone, finalizer)) co_return true;
  // The status is definitive: without name servers there, those of the parent domain are removed.
  const auto* servers = zone->find({"status", "nameServers"});
  const bool has_servers = servers != nullptr && servers->is_array() && !servers->get_array().empty();
  hive.record(deleted || !has_servers ? "remove delegation" : "delegate", key);
  co_return co_await set_finalizer(hive, *zone, finalizer, !deleted);
}

}  // namespace hubferry::sim
