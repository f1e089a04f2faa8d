#include <algorithm>
#include <boost/json/serialize.hpp>

#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/ensure.hpp"
#include "sim/ocm/hub_controller.hpp"

namespace hubferry::sim {

namespace {

constexpr const char* by_config = "klusterlet-config";

/// Recorded: one to five writes a second.
constexpr auto restless_interval = std::chrono::milliseconds{500};

std::string config_of(const Object& cluster) {
  return std::string{cluster.annotation(ocm::names::klusterlet_config_annotation)};
}

/// The Secrets that a KlusterletConfig names, in order, from both of its formats.
std::vector<std::string> secrets_of(const Object& config) {
  std::vector<std::string> names;
  const auto read = [&](const json::value* list) {
    if (list == nullptr || !list->is_array()) return;
    for (const auto& item : list->get_array()) {
      if (!item.is_object()) continue;
      std::string name{kube::string_at(item.get_object(), {"name"})};
      if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  };
  read(config.find({"spec", "bootstrapKubeConfigs", "localSecretsConfig", "kubeConfigSecrets"}));
  read(config.find({"spec", "multipleHubsConfig", "bootstrapKubeConfigs", "localSecretsConfig", "kubeConfigSecrets"}));
  return names;
}

/// True if the KlusterletConfig puts several hubs in force, in the format of MCE 2.9 and newer.
bool has_several_hubs(const Object& config) {
  return config.find({"spec", "multipleHubsConfig", "bootstrapKubeConfigs", "localSecretsConfig"}) != nullptr;
}

struct BootstrapSecret {
  std::string name;
  std::string kubeconfig;  // base64
};

json::object secret_manifest(const BootstrapSecret& secret) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"type", "Opaque"},
          {"metadata", json::object{{"name", secret.name}, {"namespace", ocm::names::agent_namespace}}},
          {"data", json::object{{"kubeconfig", secret.kubeconfig}}}};
}

/// The account by which the agent of one cluster registers; its certificate requests are approved at once.
json::object bootstrap_account(const std::string& cluster) {
  return {{"metadata", json::object{{"name", import_names::bootstrap_account(cluster)}, {"namespace", cluster}}}};
}

json::object bootstrap_account_binding(const std::string& cluster) {
  return {{"metadata", json::object{{"name", import_names::bootstrap_binding(cluster)}}},
          {"roleRef", json::object{{"apiGroup", "rbac.authorization.k8s.io"},
                                   {"kind", "ClusterRole"},
                                   {"name", ocm::names::ocm_bootstrap_role}}},
          {"subjects", json::array{json::object{{"kind", "ServiceAccount"},
                                                {"name", import_names::bootstrap_account(cluster)},
                                                {"namespace", cluster}}}}};
}

/// What an administrator applies on the cluster by hand.
json::object import_secret(const std::string& cluster, const json::array& manifests) {
  std::string text;
  for (const auto& manifest : manifests) text += "---\n" + json::serialize(manifest) + "\n";
  return {
      {"metadata",
       json::object{{"name", cluster + "-import"},
                    {"namespace", cluster},
                    {"labels",
                     json::object{{"managedcluster-import-controller.open-cluster-management.io/import-secret", ""}}}}},
      {"type", "Opaque"},
      {"data", json::object{{"import.yaml", kube::encode_base64(text)}}}};
}

json::object klusterlet_manifest(const std::string& cluster, const std::vector<BootstrapSecret>& secrets,
                                 std::chrono::seconds timeout, const Object* config) {
  json::object registration;
  if (secrets.size() > 1) {
    json::array names;
    for (const auto& secret : secrets) names.push_back(json::object{{"name", secret.name}});
    registration["featureGates"] = json::array{json::object{{"feature", "MultipleHubs"}, {"mode", "Enable"}}};
    registration["bootstrapKubeConfigs"] = json::object{
        {"type", "LocalSecrets"},
        {"localSecretsConfig",
         json::object{{"hubConnectionTimeoutSeconds", timeout.count()}, {"kubeConfigSecrets", std::move(names)}}}};
  }
  json::object spec{{"clusterName", cluster},
                    {"namespace", ocm::names::agent_namespace},
                    {"registrationConfiguration", std::move(registration)}};
  if (const auto* placement = config == nullptr ? nullptr : config->find({"spec", "nodePlacement"}))
    spec["nodePlacement"] = *placement;
  return {{"apiVersion", ocm::klusterlets.api_version()},
          {"kind", ocm::klusterlets.kind},
          {"metadata", json::object{{"name", "klusterlet"}}},
          {"spec", std::move(spec)}};
}

/// MCE 5.x: with disable-auto-import the agent must not apply anything. It reports such manifests as applied.
json::array read_only_configs(const json::array& manifests) {
  json::array configs;
  for (const auto& manifest : manifests) {
    const auto& object = manifest.as_object();
    const std::string kind{kube::string_at(object, {"kind"})};
    const auto slash = kube::string_at(object, {"apiVersion"}).find('/');
    json::object identifier{{"group", slash == std::string_view::npos
                                          ? std::string{}
                                          : std::string{kube::string_at(object, {"apiVersion"}).substr(0, slash)}},
                            {"resource", kind == "Secret" ? "secrets" : ocm::klusterlets.plural},
                            {"name", kube::string_at(object, {"metadata", "name"})}};
    if (const auto ns = kube::string_at(object, {"metadata", "namespace"}); !ns.empty()) identifier["namespace"] = ns;
    configs.push_back(json::object{{"resourceIdentifier", std::move(identifier)},
                                   {"updateStrategy", json::object{{"type", "ReadOnly"}}}});
  }
  return configs;
}

bool is_import_disabled(const Object& cluster) {
  return cluster.find({"metadata", "annotations", ocm::names::disable_auto_import_annotation}) != nullptr;
}

bool is_importable(const Object& cluster) {
  return is_accepted(cluster) && !cluster.is_being_deleted() && kube::is_condition_true(cluster, ocm::names::accepted);
}

/// Gives every accepted cluster its bootstrap kubeconfigs: this hub's own; or, with a KlusterletConfig that names
/// others, those and then this hub's under another name. As the real one, that of 5.x never comes to rest then: it
/// looks for its own token under the first name, does not find it, and writes a new one, which makes it look again.
class Import final : public HubController {
 public:
  explicit Import(HubContext& hub)
      : HubController(hub, "import"), own_kubeconfig_(hub.options.bootstrap_kubeconfig.reveal()) {
    hub.clusters.add_index(by_config, [](const Object& cluster) {
      auto config = config_of(cluster);
      return config.empty() ? std::vector<std::string>{} : std::vector{std::move(config)};
    });
    follow(hub.clusters, [this](const Key& key, const auto& old, const auto& now) {
      if (now == nullptr || !is_importable(*now)) return;
      if (old == nullptr || !is_importable(*old) || config_of(*old) != config_of(*now) ||
          is_import_disabled(*old) != is_import_disabled(*now))
        queue_.add(key);
    });
    follow(hub.klusterlet_configs, [this](const Key& key, const auto&, const auto&) { add_users_of(key.name); });
    follow(hub.engine_secrets, [this](const Key& key, const auto&, const auto&) {
      hub_.klusterlet_configs.for_each([&](const Key& config_key, const auto& config) {
        const auto named = secrets_of(*config);
        if (std::ranges::find(named, key.name) != named.end()) add_users_of(config_key.name);
      });
    });
    follow(hub.namespaces, [this](const Key& key, const auto& old, const auto& now) {
      if (old == nullptr && now != nullptr) queue_.add(key);
    });
    follow(hub.works, [this](const Key& key, const auto&, const auto& now) {
      if (now == nullptr && key.name == key.ns + "-klusterlet") queue_.add(cluster_key(key.ns));
    });
  }

 private:
  void add_users_of(const std::string& config) {
    for (const auto& cluster : hub_.clusters.lookup(by_config, config)) queue_.add(cluster->key());
  }

  Awaitable<Done> reconcile(Key key) override {
    const auto cluster = hub_.clusters.get(key);
    if (cluster == nullptr || !is_importable(*cluster)) co_return Done{};
    const auto space = hub_.namespaces.get(key);
    if (space == nullptr || space->is_being_deleted()) co_return Done{};  // reconciled again when it is created
    const bool read_only = hub_.options.import_controller == ImportController::mce_5_x && is_import_disabled(*cluster);
    const auto present = hub_.works.get({key.name, key.name + "-klusterlet"});
    json::object spec;
    bool restless = false;
    if (read_only && present != nullptr) {
      // The content of an existing work is not written any more.
      const auto* manifests = present->find({"spec", "workload", "manifests"});
      if (manifests == nullptr || !manifests->is_array()) co_return Done{};
      spec["manifestConfigs"] = read_only_configs(manifests->get_array());
    } else {
      auto secrets = secrets_for(*cluster);
      if (!secrets) co_return secrets.error();
      json::array manifests;
      for (const auto& secret : *secrets) manifests.push_back(secret_manifest(secret));
      const auto config = hub_.klusterlet_configs.get(cluster_key(config_of(*cluster)));
      restless = config != nullptr && never_rests(*config);
      manifests.push_back(klusterlet_manifest(key.name, *secrets, hub_.options.hub_connection_timeout, config.get()));
      if (present == nullptr) {
        auto prepared = co_await prepare_import(key.name, manifests);
        if (!prepared) co_return prepared.error();
      }
      spec["manifestConfigs"] = read_only ? read_only_configs(manifests) : json::array{};
      spec["workload"] = json::object{{"manifests", std::move(manifests)}};
    }
    // The klusterlet outlives its hub.
    spec["deleteOption"] = json::object{{"propagationPolicy", "Orphan"}};
    json::object labels{{ocm::names::klusterlet_works_label, "true"}};
    json::object work{
        {"metadata",
         json::object{{"name", key.name + "-klusterlet"}, {"namespace", key.name}, {"labels", std::move(labels)}}},
        {"spec", std::move(spec)}};
    auto written = co_await write_work(std::move(work));
    if (written && restless) queue_.add_after(key, restless_interval);
    co_return written;
  }

  /// What the spec no longer has is removed from the work.
  Awaitable<Done> write_work(json::object work) {
    const Key key = Object{work}.key();
    const auto spec = std::make_shared<json::object>(work.at("spec").as_object());
    kube::Mutation mutate = [spec, labels = work.at("metadata").at("labels")](json::object& object) {
      // One reference at a time: looking up another field may move them.
      const json::object before = object;
      auto& present = kube::object_in(object, "spec");
      for (const auto& field : *spec) present[field.key()] = field.value();
      kube::object_in(object, "metadata")["labels"] = labels;
      return object != before;
    };
    auto written = co_await kube::create_or_patch(hub_.api, ocm::manifest_works, key, std::move(mutate));
    if (!written) co_return written.error();
    co_return Done{};
  }

  /// Before the first work: the cluster's own bootstrap account, and the Secret for an import by hand.
  Awaitable<Done> prepare_import(std::string cluster, json::array manifests) {
    auto account = co_await ensure_exists(hub_.api, kube::resources::service_accounts, bootstrap_account(cluster));
    if (!account) co_return account.error();
    auto bound =
        co_await ensure_exists(hub_.api, kube::resources::cluster_role_bindings, bootstrap_account_binding(cluster));
    if (!bound) co_return bound.error();
    auto secret = co_await ensure_exists(hub_.api, kube::resources::secrets, import_secret(cluster, manifests));
    co_return secret;
  }

  [[nodiscard]] kube::Result<std::vector<BootstrapSecret>> secrets_for(const Object& cluster) {
    const std::vector<BootstrapSecret> own_only{{ocm::names::bootstrap_secret, kube::encode_base64(own_kubeconfig_)}};
    const auto config = hub_.klusterlet_configs.get(cluster_key(config_of(cluster)));
    if (config == nullptr) return own_only;
    const auto names = secrets_of(*config);
    if (names.empty()) return own_only;
    std::vector<BootstrapSecret> secrets;
    for (const auto& name : names) {
      const auto secret = hub_.engine_secrets.get({ocm::names::engine_namespace, name});
      std::string kubeconfig{secret == nullptr ? "" : secret->string_at({"data", "kubeconfig"})};
      // As the real one, it does nothing at all until the Secret exists.
      if (kubeconfig.empty())
        return kube::Error{kube::ErrorKind::retry_later, 0, {}, "there is no Secret " + name, std::nullopt};
      secrets.push_back({name, std::move(kubeconfig)});
    }
    const auto current = never_rests(*config) ? with_new_token() : own_kubeconfig_;
    secrets.push_back({std::string{ocm::names::bootstrap_secret} + "-current-hub", kube::encode_base64(current)});
    return secrets;
  }

  [[nodiscard]] bool never_rests(const Object& config) const {
    return hub_.options.import_controller == ImportController::mce_5_x && has_several_hubs(config);
  }

  /// The token itself does not matter: the old ones stay valid.
  std::string with_new_token() { return own_kubeconfig_ + "\n# token " + std::to_string(++tokens_) + "\n"; }

  std::string own_kubeconfig_;
  std::uint64_t tokens_ = 0;
};

}  // namespace

std::unique_ptr<HubController> make_import(HubContext& hub) {
  return std::make_unique<Import>(hub);
}

}  // namespace hubferry::sim
