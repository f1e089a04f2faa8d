#include "sim/apiserver/core.hpp"
#include "sim/apiserver/object_validation.hpp"

namespace hubferry::sim {

Outcome<> Core::check_namespace(const Kind& kind, const kube::Key& key) const {
  if (!kind.resource.namespaced) return {};
  const auto* namespaces = kinds_.find(kube::resources::namespaces);
  const auto found = namespaces->collection->entries.find(kube::Key{{}, key.ns});
  if (found == namespaces->collection->entries.end()) return errors::not_found(kube::resources::namespaces, key.ns);
  if (!found->second.object.is_being_deleted()) return {};
  auto failure =
      errors::forbidden(kind.resource, key.name,
                        "unable to create new content in namespace " + key.ns + " because it is being terminated");
  failure.details["causes"] = json::array{json::object{{"reason", "NamespaceTerminating"},
                                                       {"message", "namespace " + key.ns + " is being terminated"},
                                                       {"field", "metadata.namespace"}}};
  return failure;
}

Outcome<> Core::check_content(const Kind& kind, std::string_view name, json::object& object,
                              const json::object* old) const {
  if (kind.schema == nullptr) return {};
  kind.schema->prune(object);
  kind.schema->apply_defaults(object);
  std::vector<FieldError> field_errors;
  kind.schema->validate(object, field_errors);
  // As real servers do it: rules may rely on what the schema demands.
  if (field_errors.empty() && validation_rules) kind.schema->validate_rules(object, old, field_errors);
  if (!field_errors.empty()) return errors::invalid(kind.resource, name, field_errors);
  return {};
}

Outcome<kube::Object> Core::create(const User& user, const Kind& kind, kube::Request& request) {
  if (request.subresource == "token") return request_token(request);
  if (!request.subresource.empty()) return errors::method_not_allowed();
  if (!request.body.is_object()) return errors::bad_request("the body must be an object");
  return insert(user, kind, request, std::move(request.body.get_object()), nullptr);
}

Outcome<kube::Object> Core::insert(const User& user, const Kind& kind, kube::Request& request, json::object object,
                                   std::unique_ptr<ManagedFields> managed) {
  if (auto checked = check_type(kind.resource, object); !checked) return checked.error();
  to_stored_names(kind, object);
  kube::object_in(object, "metadata");
  kube::Key key{request.key.ns, std::string{kube::string_at(object, {"metadata", "name"})}};
  if (const auto ns = kube::string_at(object, {"metadata", "namespace"}); !ns.empty() && ns != key.ns)
    return errors::bad_request("the namespace of the provided object does not match the namespace sent on the request");
  if (!kube::string_at(object, {"metadata", "resourceVersion"}).empty())
    return errors::bad_request("resourceVersion should not be set on objects to be created");
  auto& entries = kind.collection->entries;
  if (const auto prefix = kube::string_at(object, {"metadata", "generateName"}); key.name.empty() && !prefix.empty()) {
    do key.name = std::string{prefix} + random.suffix();
    while (entries.contains(key));
    kube::object_in(object, "metadata")["name"] = key.name;
  }
  if (auto checked = check_namespace(kind, key); !checked) return checked.error();
  if (auto field_errors = check_metadata(kind.resource, object); !field_errors.empty())
    return errors::invalid(kind.resource, key.name, field_errors);

  if (kind.status && kind.resource.kind != "Pod") object.erase("status");
  object["apiVersion"] = stored_api_version(kind);
  object["kind"] = kind.resource.kind;
  if (kind.resource == kube::resources::namespaces) {
    object["spec"] = json::object{{"finalizers", json::array{"kubernetes"}}};
    object["status"] = json::object{{"phase", "Active"}};
  }
  // From here on no fields are added to the object: references into it stay valid.
  auto& metadata = kube::object_in(object, "metadata");
  for (const char* field : {"uid", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
                            "generation", "resourceVersion"})
    metadata.erase(field);
  if (kind.resource.namespaced)
    metadata["namespace"] = key.ns;
  else
    metadata.erase("namespace");
  if (kind.resource == kube::resources::namespaces) {
    auto& labels = metadata["labels"];
    if (!labels.is_object()) labels = json::object{};
    labels.get_object()["kubernetes.io/metadata.name"] = key.name;
  } else if (kind.resource == kube::resources::certificate_signing_requests) {
    auto& spec = object["spec"];
    if (!spec.is_object()) spec = json::object{};
    spec.get_object()["username"] = user.name;
    spec.get_object()["groups"] = json::array(user.groups.begin(), user.groups.end());
  } else if (kind.resource == kube::resources::secrets) {
    fold_string_data(object);
  }
  if (auto checked = check_content(kind, key.name, object, nullptr); !checked) return checked.error();
  if (kind.resource == kube::resources::custom_resource_definitions)
    if (auto field_errors = check_definition(object); !field_errors.empty())
      return errors::invalid(kind.resource, key.name, field_errors);
  if (entries.contains(key)) return errors::already_exists(kind.resource, key.name);
  if (auto asked = check_admission(user, kind, nullptr, object); !asked) return asked.error();

  auto& fixed = kube::object_in(object, "metadata");
  fixed["uid"] = random.uuid();
  fixed["creationTimestamp"] = timestamp();
  if (kind.counts_generations) fixed["generation"] = 1;
  if (request.dry_run) return in_version(kind, kube::Object{std::move(object)});
  const auto* creator = managed == nullptr ? store_.intern(manager_of(request)) : nullptr;
  auto stored = store_.put(*kind.collection, key, std::move(object), std::move(managed), creator);
  after_write(kind, stored);
  return in_version(kind, stored);
}

}  // namespace hubferry::sim
