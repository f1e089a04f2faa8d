#include "sim/core.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>

#include "sim/names.hpp"
#include "sim/patch.hpp"

namespace hubferry::sim {

namespace {

std::string_view verb_name(kube::Verb verb) {
  switch (verb) {
    case kube::Verb::get:
      return "get";
    case kube::Verb::create:
      return "create";
    case kube::Verb::update:
      return "update";
    case kube::Verb::patch:
    case kube::Verb::apply:
      return "patch";
    case kube::Verb::remove:
      return "delete";
  }
  return "get";
}

json::object& metadata_of(json::object& object) {
  auto& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = json::object{};
  return metadata.get_object();
}

/// Takes `field` from one object into another, or its absence.
void carry(json::object& to, const json::object& from, std::string_view field) {
  if (const auto* value = from.if_contains(field))
    to[field] = *value;
  else
    to.erase(field);
}

bool same_beside_metadata(const json::object& left, const json::object& right) {
  const auto covered = [](const json::object& one, const json::object& other) {
    return std::ranges::all_of(one, [&](const auto& field) {
      if (field.key() == "metadata") return true;
      const auto* value = other.if_contains(field.key());
      return value != nullptr && *value == field.value();
    });
  };
  return covered(left, right) && covered(right, left);
}

std::vector<std::string_view> finalizers_of(const json::object& object) {
  std::vector<std::string_view> all;
  const auto* list = kube::find(object, {"metadata", "finalizers"});
  if (list != nullptr && list->is_array())
    for (const auto& item : list->get_array())
      if (item.is_string()) all.emplace_back(item.get_string());
  return all;
}

}  // namespace

Core::Core(Options options, async::Clock& clock, async::Random source)
    : faults(source.fork()), random(source), options_(std::move(options)), clock_(clock), store_(options_.history) {
  for (auto& kind : Kinds::built_in()) {
    if (kind.stored) kind.collection = &store_.add_collection();
    auto added = kinds_.add(std::move(kind));
    if (added->stored) stored_kinds_.push_back(std::move(added));
  }
  const User system{"system:apiserver", {"system:masters"}, {}};
  for (const char* name : {"default", "kube-node-lease", "kube-public", "kube-system"}) {
    kube::Request request;
    request.verb = kube::Verb::create;
    request.resource = kube::resources::namespaces;
    request.body = json::object{{"metadata", json::object{{"name", name}}}};
    (void)execute(system, std::move(request));
  }
}

void Core::record(const User& user, std::string_view verb, const kube::Resource& resource,
                  const std::string& subresource, const kube::Key& key, std::string outcome) {
  if (!options_.record_requests) return;
  static std::atomic<std::uint64_t> next_sequence = 0;
  requests.push_back({clock_.now(), user.name, std::string{verb}, resource.display_name(), subresource, key,
                      std::move(outcome), next_sequence++});
}

std::string Core::timestamp() const {
  return async::format_time(clock_.wall_now());
}

std::string Core::manager_of(const kube::Request& request) const {
  return request.field_manager.empty() ? options_.field_manager : request.field_manager;
}

const Kind& Core::kind_of(const Collection& collection) const {
  return *stored_kinds_[collection.id()];
}

kube::Object Core::in_version(const Kind& kind, const kube::Object& object) const {
  if (kind.resource.version == kind.stored_version) return object;
  json::object converted = object.json();
  converted["apiVersion"] = kind.resource.api_version();
  return kube::Object{std::move(converted)};
}

Outcome<const Kind*> Core::admit(const User& user, std::string_view verb, const kube::Resource& resource,
                                 const kube::Key& key, const std::string& subresource) const {
  const auto* kind = kinds_.find(resource);
  if (kind == nullptr) return failures::no_such_resource();
  if (!subresource.empty() && !(subresource == "status" && kind->status) &&
      std::ranges::find(kind->extra_subresources, subresource) == kind->extra_subresources.end())
    return failures::no_such_resource();
  const Permissions::Question question{verb,    kind->resource.group, kind->resource.plural, subresource, key.ns,
                                       key.name};
  if (!permissions_.allows(user, question)) {
    std::string why = "User \"" + user.name + "\" cannot " + std::string{verb} + " resource \"" +
                      kind->resource.plural + (subresource.empty() ? "" : "/" + subresource) + "\" in API group \"" +
                      kind->resource.group + "\" ";
    why += key.ns.empty() ? std::string{"at the cluster scope"} : "in the namespace \"" + key.ns + "\"";
    return failures::forbidden(kind->resource, key.name, why);
  }
  return kind;
}

Outcome<kube::Object> Core::execute(const User& user, kube::Request request) {
  const auto admitted = admit(user, verb_name(request.verb), request.resource, request.key, request.subresource);
  if (!admitted) return admitted.error();
  const Kind& kind = **admitted;
  if (kind.resource.namespaced && request.key.ns.empty())
    return request.verb == kube::Verb::create
               ? failures::bad_request("an empty namespace may not be set during creation")
               : failures::bad_request("an empty namespace may not be set when a resource name is provided");
  if (!kind.resource.namespaced) request.key.ns.clear();
  if (!kind.stored) {
    if (request.verb != kube::Verb::create) return failures::method_not_allowed();
    if (!request.body.is_object()) return failures::bad_request("the body must be an object");
    return review(user, kind, request.body.get_object());
  }
  switch (request.verb) {
    case kube::Verb::get:
      return get(kind, request);
    case kube::Verb::create:
      return create(user, kind, request);
    case kube::Verb::update:
      return update(user, kind, request);
    case kube::Verb::patch:
      return patch(user, kind, request);
    case kube::Verb::apply:
      return apply(user, kind, request);
    case kube::Verb::remove:
      return remove(kind, request);
  }
  return failures::method_not_allowed();
}

Outcome<kube::Object> Core::get(const Kind& kind, const kube::Request& request) const {
  const auto found = kind.collection->entries.find(request.key);
  if (found == kind.collection->entries.end()) return failures::not_found(kind.resource, request.key.name);
  return in_version(kind, found->second.object);
}

Outcome<> Core::check_namespace(const Kind& kind, const kube::Key& key) const {
  if (!kind.resource.namespaced) return {};
  const auto* namespaces = kinds_.find(kube::resources::namespaces);
  const auto found = namespaces->collection->entries.find(kube::Key{{}, key.ns});
  if (found == namespaces->collection->entries.end()) return failures::not_found(kube::resources::namespaces, key.ns);
  if (!found->second.object.is_being_deleted()) return {};
  auto failure =
      failures::forbidden(kind.resource, key.name,
                          "unable to create new content in namespace " + key.ns + " because it is being terminated");
  failure.details["causes"] = json::array{json::object{{"reason", "NamespaceTerminating"},
                                                       {"message", "namespace " + key.ns + " is being terminated"},
                                                       {"field", "metadata.namespace"}}};
  return failure;
}

Outcome<> Core::check_content(const Kind& kind, std::string_view name, json::object& object) const {
  if (kind.schema == nullptr) return {};
  kind.schema->prune(object);
  kind.schema->apply_defaults(object);
  std::vector<Complaint> complaints;
  kind.schema->validate(object, complaints);
  if (!complaints.empty()) return failures::invalid(kind.resource, name, complaints);
  return {};
}

Outcome<kube::Object> Core::create(const User& user, const Kind& kind, kube::Request& request) {
  if (request.subresource == "token") return request_token(request);
  if (!request.subresource.empty()) return failures::method_not_allowed();
  if (!request.body.is_object()) return failures::bad_request("the body must be an object");
  return insert(user, kind, request, std::move(request.body.get_object()), nullptr);
}

Outcome<kube::Object> Core::insert(const User& user, const Kind& kind, kube::Request& request, json::object object,
                                   std::unique_ptr<ManagedFields> managed) {
  if (auto checked = check_type(kind.resource, object); !checked) return checked.error();
  metadata_of(object);
  kube::Key key{request.key.ns, std::string{kube::string_at(object, {"metadata", "name"})}};
  if (const auto ns = kube::string_at(object, {"metadata", "namespace"}); !ns.empty() && ns != key.ns)
    return failures::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  if (!kube::string_at(object, {"metadata", "resourceVersion"}).empty())
    return failures::bad_request("resourceVersion should not be set on objects to be created");
  auto& entries = kind.collection->entries;
  if (const auto prefix = kube::string_at(object, {"metadata", "generateName"}); key.name.empty() && !prefix.empty()) {
    do key.name = std::string{prefix} + random.suffix();
    while (entries.contains(key));
    metadata_of(object)["name"] = key.name;
  }
  if (auto checked = check_namespace(kind, key); !checked) return checked.error();
  if (auto complaints = check_metadata(kind.resource, object); !complaints.empty())
    return failures::invalid(kind.resource, key.name, complaints);

  if (kind.status && kind.resource.kind != "Pod") object.erase("status");
  object["apiVersion"] =
      kind.resource.group.empty() ? kind.stored_version : kind.resource.group + "/" + kind.stored_version;
  object["kind"] = kind.resource.kind;
  if (kind.resource == kube::resources::namespaces) {
    object["spec"] = json::object{{"finalizers", json::array{"kubernetes"}}};
    object["status"] = json::object{{"phase", "Active"}};
  }
  // From here on the object keeps its fields: a reference into it stays good.
  auto& metadata = metadata_of(object);
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
  if (auto checked = check_content(kind, key.name, object); !checked) return checked.error();
  if (kind.resource == kube::resources::custom_resource_definitions)
    if (auto complaints = check_definition(object); !complaints.empty())
      return failures::invalid(kind.resource, key.name, complaints);
  if (entries.contains(key)) return failures::already_exists(kind.resource, key.name);
  if (auto asked = ask_admission(user, kind, nullptr, object); !asked) return asked.error();

  auto& fixed = metadata_of(object);
  fixed["uid"] = random.uuid();
  fixed["creationTimestamp"] = timestamp();
  if (kind.counts_generations) fixed["generation"] = 1;
  if (request.dry_run) return in_version(kind, kube::Object{std::move(object)});
  const auto* creator = managed == nullptr ? store_.intern(manager_of(request)) : nullptr;
  auto stored = store_.put(*kind.collection, key, std::move(object), std::move(managed), creator);
  after_write(kind, stored);
  return in_version(kind, stored);
}

Outcome<kube::Object> Core::update(const User& user, const Kind& kind, kube::Request& request) {
  if (!request.body.is_object()) return failures::bad_request("the body must be an object");
  auto& body = request.body.get_object();
  if (auto checked = check_type(kind.resource, body); !checked) return checked.error();
  const auto name = kube::string_at(body, {"metadata", "name"});
  if (name.empty() || request.key.name.empty()) return failures::bad_request("name must be provided");
  if (name != request.key.name)
    return failures::bad_request("the name of the object (" + std::string{name} +
                                 ") does not match the name on the URL (" + request.key.name + ")");
  if (!kind.collection->entries.contains(request.key)) return failures::not_found(kind.resource, name);
  if (!kind.built_in && kube::string_at(body, {"metadata", "resourceVersion"}).empty()) {
    const std::vector<Complaint> complaints{
        {"metadata.resourceVersion", "Invalid value: 0x0: must be specified for an update", "FieldValueInvalid"}};
    return failures::invalid(kind.resource, name, complaints);
  }
  return replace(user, kind, request, request.key, std::move(body), nullptr, false);
}

Outcome<kube::Object> Core::patch(const User& user, const Kind& kind, kube::Request& request) {
  const auto found = kind.collection->entries.find(request.key);
  if (found == kind.collection->entries.end()) return failures::not_found(kind.resource, request.key.name);
  json::value next = in_version(kind, found->second.object).json();
  switch (request.patch_type) {
    case kube::PatchType::merge:
      if (!request.body.is_object()) return failures::bad_request("a merge patch must be an object");
      merge_patch(next, request.body);
      break;
    case kube::PatchType::json:
      if (!request.body.is_array()) return failures::bad_request("a JSON patch must be an array");
      if (auto done = json_patch(next, request.body.get_array()); !done) return done.error();
      break;
    case kube::PatchType::strategic:
      if (!kind.built_in)
        return Failure{415,
                       "UnsupportedMediaType",
                       "the body of the request was in an unknown format - accepted media types include: "
                       "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                       {},
                       {}};
      strategic_merge_patch(next, request.body);
      break;
  }
  if (!next.is_object()) return failures::bad_request("the patched object is no object");
  if (kube::string_at(next.get_object(), {"metadata", "name"}) != request.key.name)
    return failures::bad_request("the name of the object does not match the name on the URL");
  return replace(user, kind, request, request.key, std::move(next.get_object()), nullptr, false);
}

Outcome<kube::Object> Core::apply(const User& user, const Kind& kind, kube::Request& request) {
  if (!request.body.is_object()) return failures::bad_request("the body must be an object");
  auto& applied = request.body.get_object();
  if (auto checked = check_type(kind.resource, applied); !checked) return checked.error();
  if (const auto name = kube::string_at(applied, {"metadata", "name"}); !name.empty() && name != request.key.name)
    return failures::bad_request("the name of the object (" + std::string{name} +
                                 ") does not match the name on the URL (" + request.key.name + ")");
  auto& metadata = metadata_of(applied);
  if (metadata.contains("managedFields")) return failures::bad_request("metadata.managedFields must be nil");
  metadata["name"] = request.key.name;
  FieldManager manager{manager_of(request), true, request.subresource, kind.resource.api_version(), timestamp(), {}};
  const auto found = kind.collection->entries.find(request.key);
  if (found == kind.collection->entries.end()) {
    if (!request.subresource.empty()) return failures::not_found(kind.resource, request.key.name);
    if (!kube::string_at(applied, {"metadata", "uid"}).empty())
      return failures::conflict(kind.resource, request.key.name,
                                "uid mismatch: the provided object specified uid " +
                                    std::string{kube::string_at(applied, {"metadata", "uid"})} +
                                    ", and no existing object was found");
    const auto allowed = admit(user, "create", request.resource, request.key, {});
    if (!allowed) return allowed.error();
    if (kind.status) applied.erase("status");
    auto managed = std::make_unique<ManagedFields>();
    json::object fresh;
    if (auto done = apply_fields(*managed, manager, nullptr, true, fresh, applied, kind.schema.get()); !done)
      return done.error();
    return insert(user, kind, request, std::move(applied), std::move(managed));
  }
  // Only what this request can write is applied, and so owned.
  if (request.subresource == "status") {
    json::object narrowed;
    for (const char* field : {"apiVersion", "kind", "metadata", "status"}) carry(narrowed, applied, field);
    for (const char* field : {"labels", "annotations", "finalizers", "ownerReferences"})
      metadata_of(narrowed).erase(field);
    applied = std::move(narrowed);
  } else if (kind.status) {
    applied.erase("status");
  }
  const auto& entry = found->second;
  auto managed =
      entry.managed != nullptr ? std::make_unique<ManagedFields>(*entry.managed) : std::make_unique<ManagedFields>();
  json::object next = in_version(kind, entry.object).json();
  if (auto done = apply_fields(*managed, manager, entry.creator, request.force, next, applied, kind.schema.get());
      !done)
    return done.error();
  return replace(user, kind, request, request.key, std::move(next), std::move(managed), true);
}

Outcome<kube::Object> Core::replace(const User& user, const Kind& kind, const kube::Request& request,
                                    const kube::Key& key, json::object next, std::unique_ptr<ManagedFields> managed,
                                    bool applied) {
  auto& entry = kind.collection->entries.at(key);
  const kube::Object before = entry.object;
  const auto& old = before.json();
  const auto given_version = kube::string_at(next, {"metadata", "resourceVersion"});
  if (!given_version.empty() && given_version != before.resource_version())
    return failures::modified(kind.resource, key.name);
  if (const auto uid = kube::string_at(next, {"metadata", "uid"}); !uid.empty() && uid != before.uid())
    return failures::conflict(kind.resource, key.name,
                              "Precondition failed: UID in precondition: " + std::string{uid} +
                                  ", UID in object meta: " + std::string{before.uid()});

  if (request.subresource.empty()) {
    if (kind.status) carry(next, old, "status");
    if (kind.resource == kube::resources::namespaces || kind.resource == kube::resources::certificate_signing_requests)
      carry(next, old, "spec");
    if (kind.resource == kube::resources::secrets) fold_string_data(next);
  } else {
    json::object narrowed = old;
    if (request.subresource == "finalize")
      carry(narrowed, next, "spec");
    else
      carry(narrowed, next, "status");
    if (request.subresource == "approval") {
      auto& status = narrowed["status"];
      if (!status.is_object()) status = json::object{};
      const auto* had = kube::find(old, {"status", "certificate"});
      if (had != nullptr) status.get_object()["certificate"] = *had;
    }
    next = std::move(narrowed);
  }
  auto& metadata = metadata_of(next);
  const auto& old_metadata = old.at("metadata").get_object();
  for (const char* field : {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
                            "name", "namespace", "generateName", "resourceVersion"})
    carry(metadata, old_metadata, field);
  metadata.erase("managedFields");
  metadata.erase("selfLink");
  for (const char* field : {"labels", "annotations", "finalizers", "ownerReferences"})
    if (const auto* value = metadata.if_contains(field);
        value != nullptr && (value->is_null() || (value->is_object() && value->get_object().empty()) ||
                             (value->is_array() && value->get_array().empty())))
      metadata.erase(field);
  next["apiVersion"] = old.at("apiVersion");
  next["kind"] = old.at("kind");
  if (auto complaints = check_metadata(kind.resource, next); !complaints.empty())
    return failures::invalid(kind.resource, key.name, complaints);
  if (before.is_being_deleted()) {
    const auto had = finalizers_of(old);
    for (const auto finalizer : finalizers_of(next))
      if (std::ranges::find(had, finalizer) == had.end()) {
        const std::vector<Complaint> complaints{
            {"metadata.finalizers",
             "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
             "[]string{\"" +
                 std::string{finalizer} + "\"}",
             "FieldValueForbidden"}};
        return failures::invalid(kind.resource, key.name, complaints);
      }
  }
  if (auto checked = check_content(kind, key.name, next); !checked) return checked.error();
  if (request.subresource.empty())
    if (auto asked = ask_admission(user, kind, &before, next); !asked) return asked.error();
  auto& fixed = metadata_of(next);
  if (kind.counts_generations && request.subresource.empty() && !same_beside_metadata(old, next))
    fixed["generation"] = before.generation() + 1;

  const bool unchanged = next == old;
  if (unchanged && !(applied && managed != nullptr)) return in_version(kind, before);
  if (request.dry_run) return in_version(kind, kube::Object{std::move(next)});
  if (unchanged) {
    entry.managed = std::move(managed);  // ownership alone is no change that watchers see
    return in_version(kind, before);
  }
  if (!applied) {
    const auto name = manager_of(request);
    const bool is_creator = entry.creator != nullptr && *entry.creator == name && request.subresource.empty();
    managed = std::move(entry.managed);
    if (managed == nullptr && !is_creator) managed = std::make_unique<ManagedFields>();
    if (managed != nullptr) {
      const FieldManager manager{name, false, request.subresource, kind.resource.api_version(), timestamp(), {}};
      record_update(*managed, manager, is_creator, old, next, kind.schema.get());
    }
  }
  if (before.is_being_deleted() && is_released(next)) return in_version(kind, erase(*kind.collection, key));
  auto stored = store_.put(*kind.collection, key, std::move(next), std::move(managed), nullptr);
  after_write(kind, stored);
  return in_version(kind, stored);
}

void Core::run_background_on(const async::Executor& executor) {
  if (!executor_) executor_ = executor;
  schedule();
}

void Core::later(std::function<void()> task) {
  tasks_.push_back(std::move(task));
  schedule();
}

void Core::schedule() {
  if (scheduled_ || tasks_.empty() || !executor_) return;
  scheduled_ = true;
  async::asio::post(executor_, [self = weak_from_this()] {
    if (const auto core = self.lock()) core->run_one_task();
  });
}

void Core::run_one_task() {
  scheduled_ = false;
  if (tasks_.empty()) return;
  auto task = std::move(tasks_.front());
  tasks_.pop_front();
  task();
  schedule();
}

std::string Core::add_token(User user, std::optional<async::WallTime> expires, std::string account_uid) {
  std::string token = make_token(user.name, expires, random);
  tokens_[token] = {std::move(user), expires, std::move(account_uid)};
  return token;
}

std::optional<User> Core::authenticate(const std::string& token) const {
  const auto found = tokens_.find(token);
  if (found == tokens_.end()) return std::nullopt;
  const auto& [user, expires, account_uid] = found->second;
  if (expires && clock_.wall_now() >= *expires) return std::nullopt;
  if (!account_uid.empty() && !store_.exists(account_uid)) return std::nullopt;
  return user;
}

CertificateAuthority& Core::authority() {
  if (authority_ == nullptr) authority_ = std::make_unique<CertificateAuthority>(options_.name, clock_.wall_now());
  return *authority_;
}

json::object Core::with_managed_fields(const Kind& kind, const kube::Object& object) const {
  json::object shown = object.json();
  const auto found = kind.collection->entries.find(object.key());
  if (found == kind.collection->entries.end()) return shown;
  const auto& entry = found->second;
  ManagedFields managed = entry.managed != nullptr ? *entry.managed : ManagedFields{};
  if (managed.rest_is_creators && entry.creator != nullptr) {
    FieldManager rest{*entry.creator,
                      false,
                      {},
                      kind.resource.api_version(),
                      std::string{kube::string_at(shown, {"metadata", "creationTimestamp"})},
                      {}};
    for (const auto& [path, value] : leaves_of(shown, kind.schema.get()))
      if (std::ranges::none_of(managed.managers, [&](const auto& other) { return other.fields.contains(path); }))
        rest.fields.insert(path);
    managed.managers.insert(managed.managers.begin(), std::move(rest));
  }
  shown["metadata"].as_object()["managedFields"] = managed.to_json();
  return shown;
}

}  // namespace hubferry::sim
