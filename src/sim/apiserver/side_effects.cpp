#include <algorithm>

#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "sim/apiserver/core.hpp"
#include "sim/apiserver/object_validation.hpp"

namespace hubferry::sim {

namespace {

kube::Condition met(std::string type, std::string reason, std::string message) {
  return {.type = std::move(type),
          .status = kube::ConditionStatus::yes,
          .reason = std::move(reason),
          .message = std::move(message),
          .observed_generation = 0};
}

}  // namespace

void Core::after_write(const Kind& kind, const kube::Object& object) {
  if (const auto* owners = object.find({"metadata", "ownerReferences"}); owners != nullptr && owners->is_array())
    for (const auto& owner : owners->get_array())
      if (owner.is_object() && !store_.exists(kube::string_at(owner.get_object(), {"uid"}))) {
        later(
            [this, reference = Store::Reference{kind.collection->id(), object.key()}] { collect_garbage(reference); });
        break;
      }
  if (!kind.built_in) return;
  if (kind.resource.group == kube::resources::roles.group) authorizer_.put(kind.resource, object);
  if (kind.resource == kube::resources::custom_resource_definitions && !object.is_being_deleted())
    later([this, name = std::string{object.name()}] { establish(name); });
  if (kind.resource == kube::resources::certificate_signing_requests && kube::is_condition_true(object, "Approved") &&
      !kube::is_condition_true(object, "Failed") && kube::find(object.json(), {"status", "certificate"}) == nullptr)
    later([this, name = std::string{object.name()}] { sign(name); });
}

void Core::after_erase(Collection& collection, const kube::Object& object) {
  const auto& kind = kind_of(collection);
  const std::string uid{object.uid()};
  foreground_.erase(uid);
  if (!store_.dependents(uid).empty()) later([this, uid] { delete_dependents(uid); });
  if (!foreground_.empty())
    if (const auto* owners = object.find({"metadata", "ownerReferences"}); owners != nullptr && owners->is_array())
      for (const auto& owner : owners->get_array()) {
        std::string owner_uid{kube::string_at(owner.as_object(), {"uid"})};
        if (foreground_.contains(owner_uid)) later([this, owner_uid] { advance_foreground(owner_uid); });
      }
  if (!terminating_namespaces_.empty())
    if (std::string ns{object.ns()}; terminating_namespaces_.contains(ns)) later([this, ns] { empty_namespace(ns); });
  if (const auto found = terminating_definitions_.find(collection.id());
      found != terminating_definitions_.end() && collection.entries.empty())
    later([this, name = found->second] { empty_definition(name); });
  if (!kind.built_in) return;
  if (kind.resource.group == kube::resources::roles.group) authorizer_.erase(kind.resource, object);
  if (kind.resource == kube::resources::namespaces) terminating_namespaces_.erase(std::string{object.name()});
  if (kind.resource == kube::resources::custom_resource_definitions) {
    const std::string group{object.string_at({"spec", "group"})};
    const std::string plural{object.string_at({"spec", "names", "plural"})};
    if (const auto found = collection_of_definition_.find(std::string{object.name()});
        found != collection_of_definition_.end())
      found->second->cut_watches(SIZE_MAX);
    kinds_.remove(group, plural);
  }
}

void Core::establish(const std::string& name) {
  auto& definitions = *kinds_.find(kube::resources::custom_resource_definitions)->collection;
  const auto found = definitions.entries.find(kube::Key{{}, name});
  if (found == definitions.entries.end() || found->second.object.is_being_deleted()) return;
  const kube::Object definition = found->second.object;
  auto& done = established_versions_[name];
  if (done == definition.resource_version()) return;  // what came is our own write, below
  auto& collection = collection_of_definition_[name];
  if (collection == nullptr) {
    collection = &store_.add_collection();
    stored_kinds_.emplace_back();
  }
  const std::string group{definition.string_at({"spec", "group"})};
  const std::string plural{definition.string_at({"spec", "names", "plural"})};
  for (const auto& known : std::vector(kinds_.all()))
    if (known->resource.group == group && known->resource.plural == plural) {
      kinds_.remove(group, plural);  // versions may have been removed
      break;
    }
  std::vector<std::string> stored_versions;
  for (auto& kind : Kinds::from_definition(definition.json())) {
    kind.collection = collection;
    if (stored_versions.empty()) stored_versions.push_back(kind.stored_version);
    auto added = kinds_.add(std::move(kind));
    auto& main = stored_kinds_[collection->id()];
    if (main == nullptr || added->resource.version == added->stored_version) main = std::move(added);
  }
  rewrite(definitions, kube::Key{{}, name}, [&](json::object& object) {
    auto& finalizers = object["metadata"].as_object()["finalizers"];
    if (!finalizers.is_array()) finalizers = json::array{};
    const json::value cleanup = "customresourcecleanup.apiextensions.k8s.io";
    if (std::ranges::find(finalizers.get_array(), cleanup) == finalizers.get_array().end())
      finalizers.get_array().push_back(cleanup);
    auto& status = object["status"];
    if (!status.is_object()) status = json::object{};
    auto& fields = status.get_object();
    fields["acceptedNames"] = *kube::find(object, {"spec", "names"});
    fields["storedVersions"] = json::array(stored_versions.begin(), stored_versions.end());
    kube::set_condition(fields, met("NamesAccepted", "NoConflicts", "no conflicts found"), clock_.wall_now());
    kube::set_condition(fields, met("Established", "InitialNamesAccepted", "the initial names have been accepted"),
                        clock_.wall_now());
  });
  done = found->second.object.resource_version();
}

void Core::sign(const std::string& name) {
  auto& requests = *kinds_.find(kube::resources::certificate_signing_requests)->collection;
  const auto found = requests.entries.find(kube::Key{{}, name});
  if (found == requests.entries.end()) return;
  const kube::Object request = found->second.object;
  if (kube::is_condition_true(request, "Denied") || request.find({"status", "certificate"}) != nullptr) return;
  const auto pem = kube::decode_base64(request.string_at({"spec", "request"}));
  const auto* seconds = request.find({"spec", "expirationSeconds"});
  // The requested lifetime, up to the signer's default.
  constexpr std::int64_t longest = 365L * 86400;
  const std::chrono::seconds lifetime{
      seconds != nullptr && seconds->is_int64() ? std::clamp<std::int64_t>(seconds->get_int64(), 1, longest) : longest};
  const auto certificate =
      pem ? authority().sign(*pem, clock_.wall_now(), lifetime) : Outcome<std::string>{errors::bad_request("no PEM")};
  rewrite(requests, kube::Key{{}, name}, [&](json::object& object) {
    auto& status = object["status"].as_object();
    if (certificate) {
      status["certificate"] = kube::encode_base64(*certificate);
      return;
    }
    kube::set_condition(status, met("Failed", "SignerValidationFailure", certificate.error().message),
                        clock_.wall_now());
  });
}

}  // namespace hubferry::sim
