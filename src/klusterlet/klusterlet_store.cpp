#include "hubferry/klusterlet/klusterlet_store.hpp"

#include <algorithm>
#include <boost/json/array.hpp>

#include "hubferry/async/backoff.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/resources.hpp"

namespace hubferry::klusterlet {

namespace {

using kube::json::array;
using kube::json::object;
using kube::json::value;

constexpr const char* gate = "MultipleHubs";

bool is_gate_on(const value* gates) {
  if (gates == nullptr || !gates->is_array()) return false;
  return std::ranges::any_of(gates->get_array(), [](const value& entry) {
    return entry.is_object() && kube::string_at(entry.get_object(), {"feature"}) == gate &&
           kube::string_at(entry.get_object(), {"mode"}) == "Enable";
  });
}

kube::CacheOptions only(const std::string& name) {
  kube::CacheOptions options;
  options.field_selector = "metadata.name=" + name;
  return options;
}

kube::CacheOptions in_namespace(const std::string& ns) {
  kube::CacheOptions options;
  options.ns = ns;
  return options;
}

std::string decoded(const kube::Object& secret, std::string_view key) {
  return kube::decode_base64(secret.string_at({"data", key})).value_or(std::string{});
}

/// Sets a field; true if it changed.
bool put(object& target, std::string_view name, value wanted) {
  auto& field = target[name];
  if (field == wanted) return false;
  field = std::move(wanted);
  return true;
}

object& child(object& parent, std::string_view name) {
  auto& field = parent[name];
  if (!field.is_object()) field = object{};
  return field.get_object();
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

void read_certificate_settings(const value* registration, KlusterletSettings& settings) {
  if (registration == nullptr) return;
  // A lifetime below the API's minimum is ignored: the hub decides.
  const auto* lifetime = kube::find(*registration, {"clientCertExpirationSeconds"});
  if (lifetime != nullptr && lifetime->is_int64() && lifetime->get_int64() >= 3600)
    settings.certificate_lifetime = std::chrono::seconds{lifetime->get_int64()};
  const auto* annotations = kube::find(*registration, {"clusterAnnotations"});
  if (annotations != nullptr && annotations->is_object())
    for (const auto& [name, text] : annotations->get_object())
      if (text.is_string()) settings.cluster_annotations.emplace(name, text.get_string());
}

}  // namespace

KlusterletSettings read_klusterlet(const kube::Object& klusterlet) {
  KlusterletSettings settings;
  const auto refuse = [&](const char* reason, std::string problem) {
    settings.problem_reason = reason;
    settings.problem = std::move(problem);
    return settings;
  };
  const auto* registration = klusterlet.find({"spec", "registrationConfiguration"});
  read_certificate_settings(registration, settings);
  settings.multiple_hubs = registration != nullptr && is_gate_on(kube::find(*registration, {"featureGates"}));
  if (!settings.multiple_hubs) {
    settings.secrets = {ocm::names::bootstrap_secret};
    return settings;
  }
  const auto* configs = kube::find(*registration, {"bootstrapKubeConfigs"});
  const auto type = configs != nullptr && configs->is_object() ? kube::string_at(configs->get_object(), {"type"})
                                                               : std::string_view{};
  if (type != "LocalSecrets")
    return refuse("BootstrapKubeConfigsMissing",
                  "the feature gate MultipleHubs is on, but bootstrapKubeConfigs is of type " +
                      std::string{type.empty() ? "None" : type} + ": it must be LocalSecrets and name the Secrets");
  const auto* local = kube::find(*configs, {"localSecretsConfig"});
  const auto* names = local == nullptr ? nullptr : kube::find(*local, {"kubeConfigSecrets"});
  if (names != nullptr && names->is_array())
    for (const auto& entry : names->get_array())
      if (entry.is_object()) settings.secrets.emplace_back(kube::string_at(entry.get_object(), {"name"}));
  if (settings.secrets.size() < 2)
    return refuse("TooFewBootstrapKubeConfigs",
                  "the feature gate MultipleHubs is on: localSecretsConfig.kubeConfigSecrets must name at least two "
                  "Secrets, not " +
                      std::to_string(settings.secrets.size()));
  const auto* seconds = kube::find(*local, {"hubConnectionTimeoutSeconds"});
  if (seconds != nullptr && seconds->is_int64() && seconds->get_int64() > 0)
    settings.timeout = std::chrono::seconds{seconds->get_int64()};
  return settings;
}

KlusterletStore::KlusterletStore(kube::Api& api, KlusterletStoreOptions options, kube::Env env)
    : api_(api),
      options_(std::move(options)),
      env_(std::move(env)),
      klusterlets_(api_, ocm::klusterlets, only(options_.klusterlet), kube::object_decoder(), env_),
      secrets_(api_, kube::resources::secrets, in_namespace(options_.ns), kube::object_decoder(), env_) {}

Awaitable<> KlusterletStore::run() {
  auto follow = [this](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(klusterlets_.run());
    scope.spawn(secrets_.run());
    co_await wait_synced();
    const auto look = [this](const kube::Key&, const auto&, const auto&) { apply_settings(); };
    const auto of_klusterlets = klusterlets_.subscribe(look);
    const auto of_secrets = secrets_.subscribe(look);
    apply_settings();
    co_await write_status();
  };
  co_await async::with_scope(follow);
}

Awaitable<> KlusterletStore::wait_ready() {
  co_await wait_synced();
  const bool there = klusterlets_.get({{}, options_.klusterlet}) != nullptr;
  if (!there) env_.log.info("waiting for the Klusterlet to be created", {{"klusterlet", options_.klusterlet}});
  co_await found_.wait();
}

Awaitable<> KlusterletStore::wait_synced() {
  co_await klusterlets_.wait_synced();
  co_await secrets_.wait_synced();
}

std::string KlusterletStore::cluster_name() const {
  const auto klusterlet = klusterlets_.get({{}, options_.klusterlet});
  return klusterlet == nullptr ? std::string{} : std::string{klusterlet->string_at({"spec", "clusterName"})};
}

void KlusterletStore::apply_settings() {
  const auto klusterlet = klusterlets_.get({{}, options_.klusterlet});
  if (klusterlet == nullptr) return;
  found_.set();
  latest_settings_ = read_klusterlet(*klusterlet);
  status_changed_.notify();
  if (!latest_settings_.problem.empty()) return;
  const bool settings_changed =
      settings_.multiple_hubs != latest_settings_.multiple_hubs || settings_.timeout != latest_settings_.timeout;
  settings_ = latest_settings_;
  std::vector<BootstrapConfig> list;
  for (const auto& name : settings_.secrets) {
    BootstrapConfig config{.name = options_.ns + "/" + name, .kubeconfig = {}, .base = std::nullopt};
    const auto secret = secrets_.get({options_.ns, name});
    if (secret == nullptr)
      config.unreadable = "the Secret does not exist";
    else if (auto text = decoded(*secret, "kubeconfig"); text.empty())
      config.unreadable = "the Secret has no key kubeconfig";
    else
      config.kubeconfig = obs::Secret{std::move(text)};
    list.push_back(std::move(config));
  }
  if (list == bootstraps_ && !settings_changed) return;
  bootstraps_ = std::move(list);
  changed();
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
  co_return kube::Result<>{};
}

Awaitable<kube::Result<>> KlusterletStore::put_bootstraps(std::vector<BootstrapConfig> list,
                                                          std::optional<Duration> timeout) {
  array names;
  for (const auto& entry : list) {
    // Names from this store have the namespace as prefix.
    const auto name = entry.name.substr(entry.name.rfind('/') + 1);
    names.push_back(object{{"name", name}});
    if (entry.kubeconfig.empty()) continue;
    const kube::Key key{options_.ns, name};
    const auto mutate = with_data({{"kubeconfig", kube::encode_base64(entry.kubeconfig.reveal())}});
    auto written = co_await kube::create_or_patch(api_, kube::resources::secrets, key, mutate);
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
  co_return kube::Result<>{};
}

void KlusterletStore::report(const AgentReport& report) {
  report_ = report;
  status_changed_.notify();
}

namespace {

kube::Condition connection_condition(const AgentReport& report, std::int64_t observed) {
  kube::Condition condition{.type = "HubConnectionDegraded",
                            .status = kube::ConditionStatus::yes,
                            .reason = "HubKubeConfigMissing",
                            .message = "agent phase: " + report.phase,
                            .observed_generation = observed};
  if (report.phase == "Joined" && report.heartbeat_problem.empty()) {
    condition.status = kube::ConditionStatus::no;
    condition.reason = "HubConnectionFunctional";
    condition.message = "agent joined hub " + report.hub;
  } else if (report.phase == "Joined") {
    condition.reason = report.heartbeat_reason;
    condition.message = report.heartbeat_problem;
  } else if (!report.problem.empty()) {
    condition.reason = "BootstrapSecretError";
    condition.message = report.problem;
  }
  return condition;
}

}  // namespace

bool KlusterletStore::put_conditions(object& klusterlet) const {
  auto& status = child(klusterlet, "status");
  const auto now = env_.clock.wall_now();
  const auto* generation = kube::find(klusterlet, {"metadata", "generation"});
  const auto observed = generation != nullptr && generation->is_int64() ? generation->get_int64() : 0;
  const bool valid = latest_settings_.problem.empty();
  const kube::Condition applied{.type = "Applied",
                                .status = valid ? kube::ConditionStatus::yes : kube::ConditionStatus::no,
                                .reason = valid ? "KlusterletApplied" : latest_settings_.problem_reason,
                                .message = valid ? "the agent uses this Klusterlet" : latest_settings_.problem,
                                .observed_generation = observed};
  const auto connection = connection_condition(report_, observed);
  bool changed = kube::set_condition(status, applied, now);
  if (!report_.phase.empty()) changed = kube::set_condition(status, connection, now) || changed;
  return changed;
}

Awaitable<> KlusterletStore::write_status() {
  async::Backoff backoff{{}, env_.clock, env_.random};
  kube::EditOptions options;
  options.subresource = "status";
  const kube::Key key{{}, options_.klusterlet};
  const kube::Mutation mutate = [this](object& klusterlet) { return put_conditions(klusterlet); };
  while (true) {
    co_await status_changed_.wait();
    auto written = co_await kube::edit(api_, ocm::klusterlets, key, mutate, options);
    if (written || written.error().kind == kube::ErrorKind::not_found) continue;
    env_.log.info("writing the Klusterlet status failed, retrying", {{"error", written.error().describe()}});
    co_await backoff.pause();
    status_changed_.notify();
  }
}

}  // namespace hubferry::klusterlet
