#include "relocator/copy.hpp"

#include <algorithm>
#include <array>

#include "hubferry/ocm/hive.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/relocator/names.hpp"
#include "relocator/refusal_text.hpp"

namespace hubferry::relocator {

namespace {

Problem copy_failed(const kube::Resource& resource, const json::object& object, const std::string& why) {
  const Key key{std::string{kube::string_at(object, {"metadata", "namespace"})},
                std::string{kube::string_at(object, {"metadata", "name"})}};
  return {reasons::move_failed, "cannot copy " + resource.kind + " " + kube::to_string(key) + ": " + why};
}

Problem copy_failed(const kube::Resource& resource, const json::object& object, const kube::Error& error) {
  return copy_failed(resource, object, refusal_text(resource, object, error));
}

constexpr std::array cluster_ids{"infraID", "clusterID"};

std::string_view cluster_id(const Object& deployment, std::string_view field) {
  return deployment.string_at({"spec", "clusterMetadata", field});
}

bool is_another_cluster(const Object& found, const Object& mine) {
  return found.string_at({"spec", "baseDomain"}) != mine.string_at({"spec", "baseDomain"}) ||
         std::ranges::any_of(cluster_ids, [&](const char* field) {
           const auto one = cluster_id(found, field);
           const auto other = cluster_id(mine, field);
           return !one.empty() && !other.empty() && one != other;
         });
}

/// True if one that is not another cluster is certainly this one.
bool is_proven(const Object& found, const Object& mine, std::string_view source) {
  bool identified = false;
  for (const char* field : cluster_ids) {
    const auto id = cluster_id(mine, field);
    if (!id.empty() && id != cluster_id(found, field)) return false;
    identified = identified || !id.empty();
  }
  const bool came_from_here = !source.empty() && found.annotation(names::relocated_from) == source;
  return came_from_here || (identified && relocation_of(mine).stage == Stage::outgoing);
}

std::string description_of(const Object& found) {
  return "(base domain \"" + std::string{found.string_at({"spec", "baseDomain"})} + "\", infra ID \"" +
         std::string{cluster_id(found, "infraID")} + "\")";
}

void merge_annotations(json::object& object, const json::object& changes) {
  auto& annotations = kube::object_in(kube::object_in(object, "metadata"), "annotations");
  for (const auto& change : changes) {
    if (change.value().is_null()) {
      annotations.erase(change.key());
    } else {
      annotations[change.key()] = change.value();
    }
  }
}

/// Without the label of a copy, which is no difference.
json::object without_origin(json::object object) {
  auto& metadata = kube::object_in(object, "metadata");
  auto& labels = kube::object_in(metadata, "labels");
  labels.erase(names::relocated_from);
  if (labels.empty()) metadata.erase("labels");
  return object;
}

/// The destination's controller removes its finalizer while there is no ClusterDeployment: that is no difference.
void ignore_finalizers(json::object& present, const json::object& wanted) {
  auto& metadata = kube::object_in(present, "metadata");
  metadata.erase("finalizers");
  if (const auto* finalizers = kube::find(wanted, {"metadata", "finalizers"})) metadata["finalizers"] = *finalizers;
}

json::object zone_status(const Object& zone) {
  json::object kept;
  for (const char* field : {"nameServers", "aws", "gcp", "azure"})
    if (const auto* value = zone.find({"status", field})) kept[field] = *value;
  return kept;
}

}  // namespace

json::object clean_copy(const Object& object) {
  json::object copy;
  json::object metadata;
  for (const char* field : {"name", "namespace", "labels", "annotations", "finalizers"}) {
    const auto* value = object.find({"metadata", field});
    const bool empty = value == nullptr || (value->is_object() && value->get_object().empty()) ||
                       (value->is_array() && value->get_array().empty());
    if (!empty) metadata[field] = *value;
  }
  copy["metadata"] = std::move(metadata);
  for (const auto& field : object.json())
    if (field.key() != "metadata" && field.key() != "status" && field.key() != "apiVersion" && field.key() != "kind")
      copy[field.key()] = field.value();
  return copy;
}

Awaitable<kube::Result<Look>> look_at(const Destination& destination, const Object& deployment, std::string source) {
  const Key key = deployment.key();
  auto found = co_await destination.api->get(ocm::cluster_deployments, key);
  if (!found && is_absent(found.error(), key.name)) co_return Look{};
  if (!found) co_return found.error();
  const auto name = "ClusterDeployment " + kube::to_string(key);
  if (!deployment.uid().empty() && found->uid() == deployment.uid())
    co_return Look{Holding::same_hub, "the destination is this hub: it has this very " + name};
  if (is_another_cluster(*found, deployment))
    co_return Look{Holding::other, "the destination has another cluster as " + name + " " + description_of(*found)};
  if (!is_proven(*found, deployment, source))
    co_return Look{Holding::unclear, "the destination has a " + name + " " + description_of(*found) +
                                         " that is not proven to be a copy of this one: remove it if it is not in use"};
  if (found->is_being_deleted()) co_return Look{Holding::leaving, name + " is being deleted on the destination"};
  if (relocation_of(*found).stage == Stage::complete)
    co_return Look{Holding::leaving, name + " has just been relocated from the destination to another hub"};
  co_return Look{Holding::ours, {}};
}

Awaitable<OrProblem<Look>> prepare_and_look(const Destination& destination, const Object& deployment,
                                            std::string source) {
  if (destination.identity.empty() || deployment.annotation(names::relocated_from) != destination.identity) {
    json::object wanted;
    kube::object_in(wanted, "metadata")["name"] = deployment.ns();
    auto created = co_await destination.api->create(kube::resources::namespaces, wanted);
    if (created) co_return Look{};
    if (created.error().kind != kube::ErrorKind::already_exists) {
      auto problem = copy_failed(kube::resources::namespaces, wanted, created.error());
      if (kube::is_transient(created.error().kind)) problem.reason = reasons::no_connection;
      co_return problem;
    }
  }
  auto look = co_await look_at(destination, deployment, std::move(source));
  if (!look) co_return Problem{reasons::no_connection, "cannot read from the destination: " + look.error().describe()};
  co_return *look;
}

Awaitable<OrProblem<bool>> Copier::copy(InventoryItem item) {
  auto wanted = clean_copy(item.object);
  return put(std::move(item.resource), std::move(wanted));
}

Awaitable<OrProblem<Presence>> Copier::compare(InventoryItem item) {
  Object present;
  co_return co_await find_existing(item.resource, clean_copy(item.object), present);
}

json::object Copier::arriving(const Object& zone) const {
  auto wanted = clean_copy(zone);
  merge_annotations(wanted, annotations_for(Stage::incoming, relocator_, false));
  return wanted;
}

Awaitable<OrProblem<Presence>> Copier::compare_zone(Object zone) {
  Object present;
  co_return co_await find_existing(ocm::dns_zones, arriving(zone), present);
}

Awaitable<OrProblem<bool>> Copier::copy_zone(Object zone) {
  auto wanted = arriving(zone);
  auto copied = co_await put(ocm::dns_zones, wanted);
  if (!copied) co_return copied.error();
  json::object status = zone_status(zone);
  if (status.empty()) co_return true;
  json::object patch;
  patch["status"] = std::move(status);
  const Key key = zone.key();
  auto written = co_await destination_->api->merge_patch(ocm::dns_zones, key, patch, "status");
  if (!written) co_return copy_failed(ocm::dns_zones, wanted, written.error());
  co_return true;
}

Awaitable<OrProblem<Object>> Copier::create_deployment() {
  auto wanted = clean_copy(deployment_);
  merge_annotations(wanted, annotations_for(Stage::incoming, relocator_, true));
  auto& annotations = kube::object_in(kube::object_in(wanted, "metadata"), "annotations");
  annotations[names::relocated_from] = source_;
  annotations.erase(names::confirmed);
  auto created = co_await destination_->api->create(ocm::cluster_deployments, wanted);
  if (created && is_copy(*created)) co_return *created;
  const auto kind = created ? kube::ErrorKind::ambiguous : created.error().kind;
  if (kind == kube::ErrorKind::already_exists || kind == kube::ErrorKind::ambiguous) {
    // Ours, without an answer; or that of a manager that does not know yet that it has been replaced; or a webhook or
    // proxy has changed what was sent.
    auto look = co_await look_at(*destination_, deployment_, source_);
    if (look && look->holding == Holding::ours) co_return Object{};
    if (look && !look->message.empty()) co_return copy_failed(ocm::cluster_deployments, wanted, look->message);
  }
  co_return copy_failed(ocm::cluster_deployments, wanted,
                        created ? "the destination has answered with something else" : created.error().describe());
}

bool Copier::is_copy(const Object& answer) const {
  return !answer.uid().empty() && answer.uid() != deployment_.uid() && answer.key() == deployment_.key() &&
         !is_another_cluster(answer, deployment_) && is_proven(answer, deployment_, source_);
}

Awaitable<OrProblem<bool>> Copier::put(kube::Resource resource, json::object wanted) {
  kube::object_in(kube::object_in(wanted, "metadata"), "labels")[names::relocated_from] = source_;
  auto created = co_await destination_->api->create(resource, wanted);
  if (created) co_return true;
  const auto kind = created.error().kind;
  if (kind != kube::ErrorKind::already_exists && kind != kube::ErrorKind::ambiguous)
    co_return copy_failed(resource, wanted, created.error());
  Object present;
  const auto found = co_await find_existing(resource, wanted, present);
  if (!found) co_return found.error();
  // Then the server did not do it: an object that is too large for etcd, for example, is answered by a 500.
  if (*found == Presence::absent) co_return copy_failed(resource, wanted, created.error());
  if (*found == Presence::equal) co_return true;
  co_return co_await update(std::move(resource), std::move(wanted), std::move(present));
}

Awaitable<OrProblem<Presence>> Copier::find_existing(kube::Resource resource, json::object wanted, Object& present) {
  const Key key = Object{wanted}.key();
  auto found = co_await destination_->api->get(resource, key);
  if (!found && is_absent(found.error(), key.name)) co_return Presence::absent;
  if (!found) co_return copy_failed(resource, wanted, found.error());
  present = *found;
  // Also if it is equal: it would be gone soon.
  if (present.is_being_deleted()) co_return copy_failed(resource, wanted, "it is being deleted on the destination");
  auto comparable = clean_copy(present);
  if (resource == ocm::machine_pools) ignore_finalizers(comparable, wanted);
  if (without_origin(comparable) == without_origin(wanted)) co_return Presence::equal;
  const auto owner = present.label(ocm::names::hive_deployment_label);
  if (!owner.empty() && owner != deployment_.name())
    co_return copy_failed(resource, wanted,
                          "the destination has one that belongs to ClusterDeployment " + std::string{owner});
  if (resource == ocm::dns_zones && relocation_of(present).stage != Stage::incoming)
    co_return copy_failed(resource, wanted,
                          "the destination has one that did not arrive by a relocation: remove it if it is not in use");
  if (present.label(names::relocated_from) != source_)
    co_return copy_failed(resource, wanted,
                          "the destination has one that differs and was not copied from this hub: remove it if it is "
                          "not in use, or make them equal");
  auto other = co_await other_user(resource, present);
  if (!other) co_return copy_failed(resource, wanted, other.error());
  if (!other->empty())
    co_return copy_failed(
        resource, wanted,
        "the destination has one that differs, which ClusterDeployment " + *other + " there may use: make them equal");
  co_return Presence::outdated;
}

Awaitable<OrProblem<bool>> Copier::update(kube::Resource resource, json::object wanted, Object present) {
  json::object updated = wanted;
  auto& metadata = kube::object_in(updated, "metadata");
  metadata["resourceVersion"] = present.resource_version();
  metadata["uid"] = present.uid();
  auto written = co_await destination_->api->update(resource, std::move(updated));
  if (written) co_return true;
  // Immutable, or another type: only a new object can have this content.
  if (written.error().kind == kube::ErrorKind::invalid)
    co_return co_await replace(std::move(resource), std::move(wanted), std::move(present));
  co_return copy_failed(resource, wanted, written.error());
}

Awaitable<kube::Result<std::string>> Copier::other_user(kube::Resource resource, const Object& present) {
  const bool ours_alone = present.label(ocm::names::hive_deployment_label) == deployment_.name() ||
                          resource == ocm::machine_pools || resource == ocm::dns_zones;
  if (ours_alone) co_return std::string{};
  kube::ListOptions in_namespace;
  in_namespace.ns = std::string{deployment_.ns()};
  auto deployments = co_await destination_->api->list_all(ocm::cluster_deployments, in_namespace);
  if (!deployments) co_return deployments.error();
  for (const auto& one : *deployments)
    if (one.name() != deployment_.name()) co_return std::string{one.name()};
  co_return std::string{};
}

Awaitable<OrProblem<bool>> Copier::replace(kube::Resource resource, json::object wanted, Object present) {
  // Not before the server says that it would take it: what is deleted and then refused, because it is too large or by
  // some webhook, would be lost there. Only that there is one already may be in the way.
  kube::Request trial;
  trial.verb = kube::Verb::create;
  trial.resource = resource;
  trial.key.ns = present.key().ns;
  trial.body = kube::with_type(resource, wanted);
  trial.dry_run = true;
  auto tried = co_await destination_->api->call(std::move(trial));
  if (!tried && tried.error().kind != kube::ErrorKind::already_exists)
    co_return copy_failed(resource, wanted, tried.error());
  kube::Request request;
  request.verb = kube::Verb::remove;
  request.resource = resource;
  request.key = present.key();
  request.propagation = kube::Propagation::background;
  request.precondition_uid = std::string{present.uid()};
  auto removed = co_await destination_->api->call(std::move(request));
  if (!removed && removed.error().kind != kube::ErrorKind::not_found)
    co_return copy_failed(resource, wanted, removed.error());
  auto created = co_await destination_->api->create(resource, wanted);
  if (!created) co_return copy_failed(resource, wanted, created.error());
  co_return true;
}

}  // namespace hubferry::relocator
