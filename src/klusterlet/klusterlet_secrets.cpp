#include "hubferry/async/deadline.hpp"
#include "hubferry/klusterlet/certificates.hpp"
#include "hubferry/klusterlet/klusterlet_store.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/resources.hpp"
#include "klusterlet/klusterlet_objects.hpp"

// The Secrets of a KlusterletStore: the administrator's, those that a hub sent, and the hub credential.
namespace hubferry::klusterlet {

using namespace objects;

namespace {

constexpr const char* sent_label = "hubferry.io/sent-by-hub";
constexpr const char* replaces_annotation = "hubferry.io/replaces";
constexpr const char* listed_annotation = "hubferry.io/listed";
constexpr const char* fallback_annotation = "hubferry.io/fallback";
// How long a list may take until it is in effect; one that is invalid never is.
constexpr auto settling_time = std::chrono::seconds{10};

bool is_sent(const kube::Object& secret) {
  return !secret.label(sent_label).empty();
}

/// Where we keep what a hub sent for a Secret that is not ours.
std::string own_copy_of(const std::string& name) {
  return name + "-hubferry";
}

/// Makes the Secret one of ours. Leaves it alone if it is another's: it may have been created meanwhile.
kube::Mutation as_sent(const BootstrapConfig& sent, std::string replaces) {
  return [text = kube::encode_base64(sent.kubeconfig.reveal()), listed = sent.sent, fallback = sent.fallback,
          replaces = std::move(replaces)](object& secret) {
    auto& metadata = child(secret, "metadata");
    if (metadata.contains("uid") && !child(metadata, "labels").contains(sent_label)) return false;
    bool changed = put(child(metadata, "labels"), sent_label, "true");
    auto& annotations = child(metadata, "annotations");
    changed = put(annotations, replaces_annotation, value(replaces)) || changed;
    changed = put(annotations, listed_annotation, listed ? "true" : "false") || changed;
    changed = put(annotations, fallback_annotation, fallback ? "true" : "false") || changed;
    return put(child(secret, "data"), "kubeconfig", value(text)) || changed;
  };
}

kube::Mutation with_data(object data) {
  return [data = std::move(data)](object& secret) {
    bool changed = false;
    auto& known = child(secret, "data");
    for (const auto& [name, content] : data) changed = put(known, name, content) || changed;
    return changed;
  };
}

bool put_gate(object& registration) {
  if (is_gate_on(registration.if_contains("featureGates"))) return false;
  array kept;
  if (const auto* gates = registration.if_contains("featureGates"); gates != nullptr && gates->is_array())
    for (const auto& entry : gates->get_array())
      if (entry.is_object() && kube::string_at(entry.get_object(), {"feature"}) != gate) kept.push_back(entry);
  kept.push_back(object{{"feature", gate}, {"mode", "Enable"}});
  return put(registration, "featureGates", std::move(kept));
}

}  // namespace

BootstrapConfig KlusterletStore::read_bootstrap(const std::string& name) const {
  BootstrapConfig config{.name = options_.ns + "/" + name, .kubeconfig = {}, .base = std::nullopt};
  const auto secret = secrets_.get({options_.ns, name});
  if (secret == nullptr)
    config.unreadable = "the Secret does not exist";
  else if (auto text = decoded(*secret, "kubeconfig"); text.empty())
    config.unreadable = "the Secret has no key kubeconfig";
  else
    config.kubeconfig = obs::Secret{std::move(text)};
  const auto copy = secrets_.get({options_.ns, own_copy_of(name)});
  const auto* ours = copy != nullptr && is_sent(*copy) ? copy.get() : nullptr;
  if (secret != nullptr && is_sent(*secret)) ours = secret.get();
  if (ours == nullptr) return config;
  // The administrator has edited his since: it counts.
  const bool is_edited = ours != secret.get() && config.unreadable.empty() &&
                         ours->annotation(replaces_annotation) != digest_of(config.kubeconfig.reveal());
  if (is_edited) return config;
  config.unreadable.clear();
  config.kubeconfig = obs::Secret{decoded(*ours, "kubeconfig")};
  config.sent = ours->annotation(listed_annotation) != "false";
  config.fallback = ours->annotation(fallback_annotation) == "true";
  return config;
}

Awaitable<kube::Result<std::optional<HubSecret>>> KlusterletStore::load() {
  const kube::Key key{options_.ns, ocm::names::hub_kubeconfig_secret};
  auto found = co_await api_.get(kube::resources::secrets, key);
  if (!found && found.error().kind == kube::ErrorKind::not_found) co_return std::optional<HubSecret>{};
  if (!found) co_return found.error();
  HubSecret secret{.kubeconfig = decoded(*found, "kubeconfig"),
                   .certificate = decoded(*found, "tls.crt"),
                   .key = obs::Secret{decoded(*found, "tls.key")},
                   .cluster_name = decoded(*found, "cluster-name"),
                   .agent_name = decoded(*found, "agent-name")};
  // Without a kubeconfig there may still be names to keep.
  if (secret.kubeconfig.empty() && secret.cluster_name.empty() && secret.agent_name.empty())
    co_return std::optional<HubSecret>{};
  co_return std::optional<HubSecret>{std::move(secret)};
}

Awaitable<kube::Result<>> KlusterletStore::save(HubSecret secret) {
  const kube::Key key{options_.ns, ocm::names::hub_kubeconfig_secret};
  const auto mutate = with_data({{"kubeconfig", kube::encode_base64(secret.kubeconfig)},
                                 {"tls.crt", kube::encode_base64(secret.certificate)},
                                 {"tls.key", kube::encode_base64(secret.key.reveal())},
                                 {"cluster-name", kube::encode_base64(secret.cluster_name)},
                                 {"agent-name", kube::encode_base64(secret.agent_name)}});
  auto written = co_await kube::create_or_patch(api_, kube::resources::secrets, key, mutate);
  if (!written) co_return written.error();
  lost_secret_ = false;
  co_return kube::Result<>{};
}

Awaitable<kube::Result<>> KlusterletStore::put_secret(std::string name, BootstrapConfig sent) {
  const kube::Key key{options_.ns, name};
  auto found = co_await api_.get(kube::resources::secrets, key);
  if (!found && found.error().kind != kube::ErrorKind::not_found) co_return found.error();
  const bool is_foreign = found && !is_sent(*found);
  const auto theirs = is_foreign ? decoded(*found, "kubeconfig") : std::string{};
  if (is_foreign && theirs == sent.kubeconfig.reveal()) co_return kube::Result<>{};
  const kube::Key target{options_.ns, is_foreign ? own_copy_of(name) : name};
  const auto mutate = as_sent(sent, is_foreign ? digest_of(theirs) : std::string{});
  auto written = co_await kube::create_or_patch(api_, kube::resources::secrets, target, mutate);
  if (!written) co_return written.error();
  co_return kube::Result<>{};
}

Awaitable<> KlusterletStore::delete_unused(std::vector<std::string> names) {
  std::vector<std::shared_ptr<const kube::Object>> unused;
  names.insert(names.end(), settings_.secrets.begin(), settings_.secrets.end());
  secrets_.for_each([&](const kube::Key& key, const std::shared_ptr<const kube::Object>& secret) {
    const auto is_for = [&](const std::string& name) { return key.name == name || key.name == own_copy_of(name); };
    if (is_sent(*secret) && std::ranges::none_of(names, is_for)) unused.push_back(secret);
  });
  for (const auto& secret : unused) {
    kube::Request request;
    request.verb = kube::Verb::remove;
    request.resource = kube::resources::secrets;
    request.key = secret->key();
    request.precondition_uid = secret->uid();
    auto removed = co_await api_.call(std::move(request));
    if (!removed && removed.error().kind != kube::ErrorKind::not_found)
      env_.log.info("deleting an unused bootstrap Secret failed", {{"error", removed.error().describe()}});
  }
}

Awaitable<kube::Result<>> KlusterletStore::put_bootstraps(std::vector<BootstrapConfig> list,
                                                          std::optional<Duration> timeout) {
  array names;
  std::vector<std::string> used;
  for (const auto& entry : list) {
    // Names from this store have the namespace as prefix.
    const auto name = entry.name.substr(entry.name.rfind('/') + 1);
    names.push_back(object{{"name", name}});
    used.push_back(name);
    if (entry.kubeconfig.empty()) continue;
    auto written = co_await put_secret(name, entry);
    if (!written) co_return written.error();
  }
  if (names.size() < 2) co_return kube::Result<>{};
  const kube::Mutation mutate = [&](object& klusterlet) {
    auto& registration = child(child(klusterlet, "spec"), "registrationConfiguration");
    bool changed = put_gate(registration);
    auto& configs = child(registration, "bootstrapKubeConfigs");
    changed = put(configs, "type", "LocalSecrets") || changed;
    auto& local = child(configs, "localSecretsConfig");
    changed = put(local, "kubeConfigSecrets", names) || changed;
    if (timeout)
      changed = put(local, "hubConnectionTimeoutSeconds",
                    std::chrono::duration_cast<std::chrono::seconds>(*timeout).count()) ||
                changed;
    return changed;
  };
  auto edited = co_await kube::edit(api_, ocm::klusterlets, {{}, options_.klusterlet}, mutate);
  if (!edited) co_return edited.error();
  // Those of the list in effect stay: wait until it is this one.
  const auto latest = async::later(env_.clock.now(), settling_time);
  while (settings_.secrets != used && co_await async::before_deadline(env_.clock, latest, wait_for_change(version()))) {
  }
  co_await delete_unused(std::move(used));
  co_return kube::Result<>{};
}

}  // namespace hubferry::klusterlet
