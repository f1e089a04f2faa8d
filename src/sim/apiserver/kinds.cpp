#include "sim/apiserver/kinds.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <mutex>
#include <unordered_map>

namespace hubferry::sim {

namespace {

std::string path_of(std::string_view group, std::string_view version, std::string_view plural) {
  std::string path;
  path.reserve(group.size() + version.size() + plural.size() + 2);
  path.append(group).append("/").append(version).append("/").append(plural);
  return path;
}

Kind kind_of(kube::Resource resource, std::string singular, std::vector<std::string> short_names = {}) {
  Kind kind;
  kind.stored_version = resource.version;
  kind.resource = std::move(resource);
  kind.singular = std::move(singular);
  kind.short_names = std::move(short_names);
  kind.built_in = true;
  return kind;
}

/// ".status.conditions[0].type" -> {"status", "conditions", "[0]", "type"}; filters stay one step.
std::vector<std::string> parse_path(std::string_view text) {
  std::vector<std::string> steps;
  std::string step;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      step += text[++i];
      continue;
    }
    if (c == '\'' || c == '"') quoted = !quoted;
    if (c == '[' && !quoted && depth++ == 0 && !step.empty()) {
      steps.push_back(std::move(step));
      step.clear();
    }
    if (c == '.' && depth == 0) {
      if (!step.empty()) steps.push_back(std::move(step));
      step.clear();
      continue;
    }
    step += c;
    if (c == ']' && !quoted && --depth == 0) {
      steps.push_back(std::move(step));
      step.clear();
    }
  }
  if (!step.empty()) steps.push_back(std::move(step));
  return steps;
}

std::vector<std::string> strings(const json::object& from, std::string_view name) {
  std::vector<std::string> all;
  const auto* list = from.if_contains(name);
  if (list == nullptr || !list->is_array()) return all;
  for (const auto& item : list->get_array())
    if (item.is_string()) all.emplace_back(item.get_string());
  return all;
}

void rename(json::object& object, std::string_view from, std::string_view to) {
  const auto found = object.find(from);
  if (found == object.end()) return;
  json::value value = std::move(found->value());
  object.erase(found);
  object[to] = std::move(value);
}

/// v1 Events are those of events.k8s.io, with the previous field names.
const View& event_view() {
  static const View view{kube::resources::events,
                         {{"involvedObject", "regarding"},
                          {"message", "note"},
                          {"source", "deprecatedSource"},
                          {"firstTimestamp", "deprecatedFirstTimestamp"},
                          {"lastTimestamp", "deprecatedLastTimestamp"},
                          {"count", "deprecatedCount"},
                          {"reportingComponent", "reportingController"}}};
  return view;
}

/// Every simulated server has the same definitions, and a test makes hundreds of servers: each schema is compiled once
/// for all of them.
std::shared_ptr<const Schema> compiled(const json::object& source) {
  constexpr std::size_t most = 256;
  static std::mutex mutex;
  static std::unordered_map<std::string, std::shared_ptr<const Schema>> known;
  auto text = json::serialize(source);
  const std::scoped_lock lock{mutex};
  if (const auto found = known.find(text); found != known.end()) return found->second;
  if (known.size() >= most) known.clear();
  return known.emplace(std::move(text), Schema::compile(source)).first->second;
}

}  // namespace

kube::Object in_version(const std::string& api_version, const View* view, const kube::Object& stored) {
  json::object converted = stored.json();
  if (view != nullptr)
    for (const auto& field : view->fields) rename(converted, field.stored, field.served);
  converted["apiVersion"] = api_version;
  return kube::Object{std::move(converted)};
}

kube::Object in_version(const Kind& kind, const kube::Object& stored) {
  if (kind.view == nullptr && kind.resource.version == kind.stored_version) return stored;
  return in_version(kind.resource.api_version(), kind.view, stored);
}

void to_stored_names(const Kind& kind, json::object& object) {
  if (kind.view == nullptr) return;
  for (const auto& field : kind.view->fields) rename(object, field.served, field.stored);
}

std::string stored_api_version(const Kind& kind) {
  if (kind.view != nullptr) return kind.view->stored.api_version();
  return kind.resource.group.empty() ? kind.stored_version : kind.resource.group + "/" + kind.stored_version;
}

const Kind* Kinds::find(std::string_view group, std::string_view version, std::string_view plural) const {
  const auto found = by_path_.find(path_of(group, version, plural));
  return found == by_path_.end() ? nullptr : found->second.get();
}

std::shared_ptr<const Kind> Kinds::add(Kind kind) {
  auto path = path_of(kind.resource.group, kind.resource.version, kind.resource.plural);
  if (const auto found = by_path_.find(path); found != by_path_.end()) {
    *found->second = std::move(kind);
    return found->second;
  }
  auto made = std::make_shared<Kind>(std::move(kind));
  kinds_.push_back(made);
  by_path_.emplace(std::move(path), made);
  return made;
}

void Kinds::remove(const std::string& group, const std::string& plural) {
  const auto matches = [&](const Kind& kind) { return kind.resource.group == group && kind.resource.plural == plural; };
  std::erase_if(kinds_, [&](const auto& kind) { return matches(*kind); });
  std::erase_if(by_path_, [&](const auto& entry) { return matches(*entry.second); });
}

std::vector<Kind> Kinds::built_in() {
  using namespace kube::resources;
  std::vector<Kind> all;
  auto& ns = all.emplace_back(kind_of(namespaces, "namespace", {"ns"}));
  ns.status = true;
  ns.extra_subresources = {"finalize"};
  ns.fields = {"status.phase"};
  ns.columns = {{"Status", "string", {"status", "phase"}, 0}};
  auto& secret = all.emplace_back(kind_of(secrets, "secret"));
  secret.fields = {"type"};
  secret.columns = {{"Type", "string", {"type"}, 0}};
  all.push_back(kind_of(config_maps, "configmap", {"cm"}));
  auto& account = all.emplace_back(kind_of(service_accounts, "serviceaccount", {"sa"}));
  account.extra_subresources = {"token"};
  auto& pod = all.emplace_back(kind_of({"", "v1", "pods", "Pod", true}, "pod", {"po"}));
  pod.status = true;
  pod.fields = {"spec.nodeName", "status.phase"};
  pod.columns = {{"Status", "string", {"status", "phase"}, 0}};
  auto& node = all.emplace_back(kind_of({"", "v1", "nodes", "Node", false}, "node", {"no"}));
  node.status = true;
  node.fields = {"spec.unschedulable"};
  auto& service = all.emplace_back(kind_of({"", "v1", "services", "Service", true}, "service", {"svc"}));
  service.status = true;
  auto& deployment =
      all.emplace_back(kind_of({"apps", "v1", "deployments", "Deployment", true}, "deployment", {"deploy"}));
  deployment.status = true;
  deployment.counts_generations = true;
  deployment.columns = {{"Replicas", "integer", {"spec", "replicas"}, 0}};
  auto& set = all.emplace_back(kind_of({"apps", "v1", "statefulsets", "StatefulSet", true}, "statefulset", {"sts"}));
  set.status = true;
  set.counts_generations = true;
  set.columns = {{"Replicas", "integer", {"spec", "replicas"}, 0}};
  auto& claim = all.emplace_back(
      kind_of({"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true}, "persistentvolumeclaim", {"pvc"}));
  claim.status = true;
  auto& job = all.emplace_back(kind_of({"batch", "v1", "jobs", "Job", true}, "job"));
  job.status = true;
  job.counts_generations = true;
  all.push_back(kind_of({"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true}, "endpointslice"));
  // Stored and nothing else, so that manifests can be applied: no pod is evicted, no packet dropped, no request denied.
  all.push_back(kind_of({"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true}, "poddisruptionbudget"));
  all.push_back(kind_of({"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true}, "networkpolicy"));
  const std::string admission = "admissionregistration.k8s.io";
  all.push_back(kind_of({admission, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", false},
                        "validatingadmissionpolicy"));
  all.push_back(
      kind_of({admission, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", false},
              "validatingadmissionpolicybinding"));
  auto& new_events = all.emplace_back(kind_of(events, "event", {"ev"}));
  new_events.fields = {"reason", "type", "reportingController"};
  new_events.columns = {
      {"Type", "string", {"type"}, 0}, {"Reason", "string", {"reason"}, 0}, {"Note", "string", {"note"}, 0}};
  for (const char* part : {"apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath"})
    new_events.fields.push_back(std::string{"regarding."} + part);
  auto& core_events = all.emplace_back(kind_of({"", "v1", "events", "Event", true}, "event", {"ev"}));
  core_events.view = &event_view();
  core_events.fields = {"reason", "type", "reportingComponent"};
  core_events.columns = {
      {"Type", "string", {"type"}, 0}, {"Reason", "string", {"reason"}, 0}, {"Message", "string", {"message"}, 0}};
  for (const char* part : {"apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath"})
    core_events.fields.push_back(std::string{"involvedObject."} + part);
  auto& lease = all.emplace_back(kind_of(leases, "lease"));
  lease.columns = {{"Holder", "string", {"spec", "holderIdentity"}, 0}};
  all.push_back(kind_of(cluster_roles, "clusterrole"));
  auto& cluster_binding = all.emplace_back(kind_of(cluster_role_bindings, "clusterrolebinding"));
  cluster_binding.columns = {{"Role", "string", {"roleRef", "name"}, 0}};
  all.push_back(kind_of(roles, "role"));
  auto& binding = all.emplace_back(kind_of(role_bindings, "rolebinding"));
  binding.columns = {{"Role", "string", {"roleRef", "name"}, 0}};
  auto& definition =
      all.emplace_back(kind_of(custom_resource_definitions, "customresourcedefinition", {"crd", "crds"}));
  definition.status = true;
  definition.counts_generations = true;
  definition.columns = {{"Created At", "date", {"metadata", "creationTimestamp"}, 0}};
  auto& request = all.emplace_back(kind_of(certificate_signing_requests, "certificatesigningrequest", {"csr"}));
  request.status = true;
  request.extra_subresources = {"approval"};
  request.fields = {"spec.signerName"};
  request.columns = {{"Age", "date", {"metadata", "creationTimestamp"}, 0},
                     {"SignerName", "string", {"spec", "signerName"}, 0},
                     {"Requestor", "string", {"spec", "username"}, 0},
                     {"RequestedDuration", "string", {"spec", "expirationSeconds"}, 0},
                     {"Condition", "string", {"status"}, 0}};
  for (const auto& review :
       {self_subject_access_reviews, subject_access_reviews, token_reviews,
        kube::Resource{"authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", false},
        kube::Resource{"authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", false}}) {
    std::string singular = review.kind;
    std::ranges::transform(singular, singular.begin(), [](unsigned char c) { return std::tolower(c); });
    all.emplace_back(kind_of(review, singular)).stored = false;
  }
  return all;
}

std::vector<Kind> Kinds::from_definition(const json::object& definition) {
  std::vector<Kind> all;
  const auto* spec_value = definition.if_contains("spec");
  if (spec_value == nullptr || !spec_value->is_object()) return all;
  const auto& spec = spec_value->get_object();
  const auto* versions = spec.if_contains("versions");
  if (versions == nullptr || !versions->is_array()) return all;
  std::string stored_version;
  const auto is_set = [](const json::object& from, std::string_view name) {
    const auto* value = from.if_contains(name);
    return value != nullptr && value->is_bool() && value->get_bool();
  };
  for (const auto& entry : versions->get_array())
    if (entry.is_object() && is_set(entry.get_object(), "storage"))
      stored_version = kube::string_at(entry.get_object(), {"name"});
  for (const auto& entry : versions->get_array()) {
    if (!entry.is_object() || !is_set(entry.get_object(), "served")) continue;
    const auto& version = entry.get_object();
    Kind kind;
    kind.resource.group = kube::string_at(spec, {"group"});
    kind.resource.version = kube::string_at(version, {"name"});
    kind.resource.plural = kube::string_at(spec, {"names", "plural"});
    kind.resource.kind = kube::string_at(spec, {"names", "kind"});
    kind.resource.namespaced = kube::string_at(spec, {"scope"}) == "Namespaced";
    kind.singular = kube::string_at(spec, {"names", "singular"});
    if (kind.singular.empty()) {
      kind.singular = kind.resource.kind;
      std::ranges::transform(kind.singular, kind.singular.begin(), [](unsigned char c) { return std::tolower(c); });
    }
    if (const auto* names = spec.if_contains("names"); names != nullptr && names->is_object()) {
      kind.short_names = strings(names->get_object(), "shortNames");
      kind.categories = strings(names->get_object(), "categories");
    }
    kind.stored_version = stored_version;
    kind.counts_generations = true;
    kind.status = kube::find(version, {"subresources", "status"}) != nullptr;
    if (const auto* schema = kube::find(version, {"schema", "openAPIV3Schema"});
        schema != nullptr && schema->is_object())
      kind.schema = compiled(schema->get_object());
    if (const auto* fields = version.if_contains("selectableFields"); fields != nullptr && fields->is_array())
      for (const auto& field : fields->get_array())
        if (field.is_object() && !kube::string_at(field.get_object(), {"jsonPath"}).empty())
          kind.fields.emplace_back(kube::string_at(field.get_object(), {"jsonPath"}).substr(1));
    if (const auto* columns = version.if_contains("additionalPrinterColumns");
        columns != nullptr && columns->is_array())
      for (const auto& column : columns->get_array()) {
        if (!column.is_object()) continue;
        const auto& source = column.get_object();
        const auto* priority = source.if_contains("priority");
        kind.columns.push_back(
            {std::string{kube::string_at(source, {"name"})}, std::string{kube::string_at(source, {"type"})},
             parse_path(kube::string_at(source, {"jsonPath"})),
             priority != nullptr && priority->is_int64() ? static_cast<int>(priority->get_int64()) : 0});
      }
    all.push_back(std::move(kind));
  }
  return all;
}

}  // namespace hubferry::sim
