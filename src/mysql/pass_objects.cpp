// Services, the StatefulSet and its claims, endpoints.
#include "hubferry/kube/edit.hpp"
#include "mysql/pass.hpp"

namespace hubferry::mysql {

namespace {

std::string size_of(const kube::Object& claim) {
  return std::string{claim.string_at({"spec", "resources", "requests", "storage"})};
}

bool is_larger(const std::string& one, const std::string& other) {
  return parse_quantity(one).value_or(0) > parse_quantity(other).value_or(0);
}

/// Has all fields removed that are `present` and not wanted.
void remove_others(json::object& wanted, const json::object& present) {
  for (const auto& field : present) {
    auto* ours = wanted.if_contains(field.key());
    if (ours == nullptr)
      wanted[field.key()] = nullptr;
    else if (ours->is_object() && field.value().is_object())
      remove_others(ours->get_object(), field.value().get_object());
  }
}

}  // namespace

/// Creates or corrects an object of the cluster. What the cache shows as it is wanted is not read again.
Awaitable<kube::Object> Pass::ensure(const kube::Resource& kind, json::object wanted, const ObjectCache* cache) {
  const kube::Key key{owner_.ns, std::string{kube::string_at(wanted, {"metadata", "name"})}};
  if (cache != nullptr)
    if (const auto cached = cache->get(key); cached != nullptr && kube::is_owned_by(*cached, cluster_.object.uid()) &&
                                             kube::contains_fields(cached->json(), wanted))
      co_return *cached;
  bool is_foreign = false;
  kube::Mutation mutate = [&](json::object& object) {
    const kube::Object present{object};
    is_foreign = !present.uid().empty() && !kube::is_owned_by(present, cluster_.object.uid());
    if (is_foreign) return false;
    const bool changed = overlay(object, wanted);
    auto owned = kube::set_owner(object, mysql_clusters, cluster_.object);
    return changed || (owned && *owned);
  };
  auto written = co_await kube::create_or_patch(services_.api, kind, key, std::move(mutate));
  if (is_foreign)
    throw PassError(PassError::Kind::retry, kind.kind + " " + key.name + " exists and does not belong to this cluster");
  co_return take(std::move(written), kind.kind + " " + key.name).object;
}

Awaitable<> Pass::ensure_services() {
  co_await ensure(kube::resources::config_maps, wanted_config(owner_, spec_), services_.config_maps);
  co_await ensure(kinds::services, wanted_headless_service(owner_), services_.services);
  for (const auto& name : {write_service_name(owner_.name), read_service_name(owner_.name)})
    co_await ensure(kinds::services, wanted_service(owner_, name, spec_), services_.services);
}

Awaitable<> Pass::find_stateful_set() {
  const kube::Key key{owner_.ns, owner_.name};
  auto present = co_await services_.api.get(kinds::stateful_sets, key);
  if (present && kube::is_owned_by(*present, cluster_.object.uid())) {
    set_replicas_ = replicas_of(*present);
    set_ = std::move(*present);
    co_return;
  }
  set_replicas_ = count_without_set();
  if (!present && present.error().kind != kube::ErrorKind::not_found) take(present, "StatefulSet " + key.name);
}

/// One of the servers' pods: it says what a StatefulSet that is missing was like.
ObjectCache::Pointer Pass::any_pod() const {
  ObjectCache::Pointer pod;
  services_.pods->for_each([&](const kube::Key& key, const ObjectCache::Pointer& one) {
    if (key.ns == owner_.ns && one->label(names::cluster_label) == owner_.name && ordinal_of(owner_.name, key.name))
      pod = one;
  });
  return pod;
}

/// How many servers a StatefulSet had that is missing. A server whose pod is missing too may alone have what a failover
/// needs: so the highest pod counts, the primary, and what the last pass saw.
std::size_t Pass::count_without_set() const {
  const auto* seen = cluster_.status.if_contains("servers");
  std::size_t count = seen != nullptr && seen->is_array() ? seen->get_array().size() : 0;
  services_.pods->for_each([&](const kube::Key& key, const ObjectCache::Pointer& pod) {
    if (key.ns != owner_.ns || pod->label(names::cluster_label) != owner_.name) return;
    if (const auto ordinal = ordinal_of(owner_.name, key.name)) count = std::max(count, *ordinal + 1);
  });
  if (count == 0) return spec_.replicas;  // it had been scaled to zero
  return std::max(count, ordinal_of(owner_.name, cluster_.primary()).value_or(0) + 1);
}

/// One thing at a time, each in its phase; and nothing is scaled away that may be the last copy.
Awaitable<std::size_t> Pass::replicas_for_now() {
  const bool is_new = phase_ == phases::creating && cluster_.primary().empty();
  if (is_new) co_return spec_.replicas;
  const bool may_change = phase_ == phases::creating || phase_ == phases::scaling;
  // Made again as it was: what shall be different is changed then.
  if (!set_ || !may_change || spec_.replicas == set_replicas_) co_return set_replicas_;
  if (spec_.replicas > set_replicas_) co_return spec_.replicas;
  const auto last = ordinal_of(owner_.name, cluster_.primary()).value_or(0);
  const bool primary_stays = last < std::max<std::size_t>(1, spec_.replicas);
  if (!primary_stays) co_return set_replicas_;
  const bool may_shrink = co_await may_scale_down();
  co_return may_shrink ? spec_.replicas : set_replicas_;
}

Awaitable<> Pass::ensure_stateful_set() {
  StatefulSetInputs inputs;
  inputs.root_secret = root_secret_;
  inputs.exporter_image = spec_.exporter_image.empty() ? services_.options.exporter_image : spec_.exporter_image;
  inputs.content_hash = content_hash(replication_password_, spec_, root_password_);
  auto effective = spec_;
  effective.replicas = co_await replicas_for_now();
  if (set_) {
    if (phase_ != phases::creating && phase_ != phases::upgrading) {
      effective.version = set_->string_at({"spec", "template", "metadata", "annotations", names::version_annotation});
      effective.image = image_of(set_->find({"spec", "template", "spec", "containers"}));
    }
    co_await grow_storage(*set_);
  } else if (const auto pod = any_pod(); pod != nullptr && !cluster_.primary().empty()) {
    // Deleted by grow_storage(), or by somebody.
    effective.version = pod->annotation(names::version_annotation);
    effective.image = image_of(pod->find({"spec", "containers"}));
  }
  auto wanted = wanted_stateful_set(owner_, effective, inputs);
  if (set_) {
    // Immutable, but for what grow_storage() does.
    wanted["spec"].as_object().erase("volumeClaimTemplates");
    // What the user took out of it goes; elsewhere, fields of others stay.
    auto& context = wanted.at("spec").at("template").at("spec").at("securityContext").as_object();
    const auto* has = set_->find({"spec", "template", "spec", "securityContext"});
    if (has != nullptr && has->is_object()) remove_others(context, has->get_object());
  }
  if (!set_ || !kube::contains_fields(set_->json(), wanted))
    set_ = co_await ensure(kinds::stateful_sets, std::move(wanted), nullptr);
  set_replicas_ = replicas_of(*set_);
}

/// Kubernetes refuses a changed volumeClaimTemplate: the claims are patched, and the StatefulSet is deleted without its
/// pods and made again.
Awaitable<> Pass::grow_storage(const kube::Object& set) {
  const auto& wanted = spec_.storage_size;
  if (is_larger(storage_of(set), wanted)) {
    warn("StorageShrinkRefused", "spec.storage.size " + wanted + " is smaller than what the volumes have: ignored");
    co_return;
  }
  if (!is_larger(wanted, storage_of(set))) co_return;
  for (std::size_t ordinal = 0;; ++ordinal) {
    const kube::Key key{owner_.ns, claim_name(owner_.name, ordinal)};
    auto claim = co_await services_.api.get(kinds::persistent_volume_claims, key);
    if (!claim && claim.error().kind == kube::ErrorKind::not_found) break;
    const auto size = size_of(take(std::move(claim), "PersistentVolumeClaim " + key.name));
    if (!is_larger(wanted, size)) continue;
    json::object request{{"requests", json::object{{"storage", wanted}}}};
    json::object patch{{"spec", json::object{{"resources", std::move(request)}}}};
    auto patched = co_await services_.api.merge_patch(kinds::persistent_volume_claims, key, std::move(patch));
    take(std::move(patched), "PersistentVolumeClaim " + key.name);
  }
  auto removed = co_await services_.api.remove(kinds::stateful_sets, set.key(), kube::Propagation::orphan);
  if (!removed && removed.error().kind != kube::ErrorKind::not_found)
    take(std::move(removed), "replacing StatefulSet " + owner_.name);
  throw PassError(PassError::Kind::retry, "StatefulSet " + owner_.name + " is replaced by one with larger volumes");
}

Awaitable<> Pass::ensure_endpoints(const std::string& service, std::vector<const ServerView*> servers) {
  std::vector<Endpoint> endpoints;
  for (const auto* server : servers)
    if (!server->address.empty()) endpoints.push_back({server->address, server->name, server->uid});
  auto wanted = wanted_endpoints(owner_, service, endpoints);
  // Immutable: a slice without endpoints keeps the type that it has.
  if (endpoints.empty()) {
    auto present = co_await services_.api.get(kinds::endpoint_slices, {owner_.ns, service});
    if (!present && present.error().kind != kube::ErrorKind::not_found) take(present, "EndpointSlice " + service);
    if (present && !present->string_at({"addressType"}).empty())
      wanted["addressType"] = present->string_at({"addressType"});
  }
  co_await ensure(kinds::endpoint_slices, std::move(wanted), services_.endpoint_slices);
}

/// Writes to the primary; reads from the replicas that keep up, or from the primary if there is none.
Awaitable<> Pass::ensure_all_endpoints() {
  const auto* primary = find(cluster_.primary());
  std::vector<const ServerView*> writers;
  std::vector<const ServerView*> readers;
  // Also if its probes fail: only a failover takes the role away, and if there is none, the primary may be well.
  if (primary != nullptr) writers.push_back(primary);
  const auto limit = std::chrono::duration<double>(spec_.lag_limit).count();
  for (const auto& server : servers_) {
    const auto& sample = server.health.sample;
    if (&server == primary || !server.ready || server.health.verdict != Verdict::read_only) continue;
    if (sample.io_running == true && sample.sql_running == true && sample.lag && *sample.lag <= limit)
      readers.push_back(&server);
  }
  if (readers.empty()) readers = writers;
  co_await ensure_endpoints(write_service_name(owner_.name), std::move(writers));
  co_await ensure_endpoints(read_service_name(owner_.name), std::move(readers));
}

}  // namespace hubferry::mysql
