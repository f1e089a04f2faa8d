#include "hubferry/hubs/hub_directory.hpp"

#include <algorithm>
#include <set>

#include "hubferry/kube/base64.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubs/connections.hpp"
#include "hubs/flow_api.hpp"

namespace hubferry::hubs {

namespace {

using kube::Key;
using kube::Object;
using ocm::ManagedCluster;
using namespace ocm::names;

/// Index of the kubeconfig Secrets: an update of one hub does not look at those of all.
constexpr const char* by_hub = "hub";

kube::CacheOptions kubeconfig_secrets() {
  kube::CacheOptions options;
  options.label_selector = std::string{hub_kubeconfig_label} + "=true";
  return options;
}

}  // namespace

class HubDirectory::State {
 public:
  State(kube::Api& api, Connect how, HubDirectoryOptions given, kube::Env surroundings, Troubles& known_troubles)
      : global(api),
        troubles(known_troubles),
        connect(std::move(how)),
        options(std::move(given)),
        env{surroundings.clock, surroundings.random, surroundings.metrics, surroundings.log.named("hubs")},
        clusters(global, ocm::managed_clusters, {}, ocm::managed_cluster_decoder(), env),
        secrets(global, kube::resources::secrets, kubeconfig_secrets(), kube::object_decoder(), env),
        connections(std::make_shared<Connections>()),
        hubs_(env.metrics.gauge_family(
            "hubferry_hubs", "Hubs that the global hub knows, by how the manager is connected to them.", {"way"})),
        reachable_(
            env.metrics.gauge_family("hubferry_hub_reachable", "Whether a hub answered the last operation.", {"hub"})) {
    for (const char* way : {"direct", "none"}) hubs_.with({way}).set(0);
    secrets.add_index(by_hub, [](const Object& secret) { return std::vector{std::string{secret.ns()}}; });
  }

  Awaitable<> run() {
    auto body = [this](async::TaskScope& scope) -> Awaitable<> {
      scope_ = &scope;
      auto on_secret = secrets.subscribe([this](const Key& key, const auto&, const auto&) { update(key.ns); },
                                         kube::Replay::existing);
      auto on_cluster = clusters.subscribe(
          [this](const Key& key, const auto& old, const auto& now) {
            if (old == nullptr || now == nullptr || is_hub(*old) != is_hub(*now) ||
                is_global_hub(*old) != is_global_hub(*now))
              update(key.name);
          },
          kube::Replay::existing);
      scope.spawn(secrets.run());
      co_await clusters.run();
    };
    const Closing closing{*this};
    co_await async::with_scope(std::move(body));
  }

  [[nodiscard]] bool synced() const { return clusters.synced() && secrets.synced(); }
  Awaitable<> wait_synced() {
    co_await clusters.wait_synced();
    co_await secrets.wait_synced();
  }

  [[nodiscard]] Result<std::shared_ptr<Connection>> connection(const std::string& hub) const {
    if (!synced()) return Error{FailureReason::hub_unreachable, "the clusters of the global hub are not synced yet"};
    if (clusters.get({{}, hub}) == nullptr)
      return Error{FailureReason::hub_not_found,
                   "there is no hub " + hub + ": the global hub has no ManagedCluster of that name"};
    return connections->find(hub);
  }

  /// The server of a hub's kubeconfig; without the credential.
  struct Address {
    std::string server;
    std::string ca_pem;
  };
  [[nodiscard]] Address address_of(const std::string& hub) const {
    const auto found = addresses_.find(hub);
    return found == addresses_.end() ? Address{} : found->second;
  }

  kube::Api& global;
  Troubles& troubles;
  Connect connect;
  HubDirectoryOptions options;
  kube::Env env;
  kube::Cache<ManagedCluster> clusters;
  kube::Cache<Object> secrets;
  std::shared_ptr<Connections> connections;

 private:
  /// However run() ends: operations that are running end with an error, then the connections' own tasks are joined.
  struct Closing {
    State& state;
    ~Closing() {
      state.scope_ = nullptr;
      state.secrets_in_use_.clear();
      state.connections->drop_all("the manager is stopping");
    }
  };

  /// The hub's Secret; of several the first by name, with a warning whenever they change.
  [[nodiscard]] std::shared_ptr<const Object> secret_of(const std::string& hub) {
    std::map<std::string, std::shared_ptr<const Object>> found;
    for (auto& secret : secrets.lookup(by_hub, hub)) found.emplace(secret->name(), secret);
    std::string ignored;
    for (const auto& [name, secret] : found)
      if (name != found.begin()->first) ignored += (ignored.empty() ? "" : ", ") + name;
    if (ignored != std::exchange(ignored_secrets_[hub], ignored) && !ignored.empty())
      env.log.warn("hub has several kubeconfig Secrets, using the first by name",
                   {{"hub", hub}, {"used", found.begin()->first}, {"ignored", ignored}});
    return found.empty() ? nullptr : found.begin()->second;
  }

  /// Updates one hub from the caches.
  void update(const std::string& hub) {
    const auto cluster = clusters.get({{}, hub});
    const bool known = cluster != nullptr && is_hub(*cluster);
    if (known)
      known_.insert(hub);
    else
      known_.erase(hub);
    if (!known) {
      forget(hub, "hub " + hub + " is not, or no longer, a hub of the global hub");
    } else if (is_global_hub(*cluster)) {
      use(hub, "local", "", [this] { return std::shared_ptr<kube::Api>{std::shared_ptr<void>{}, &global}; },
          {options.global_server, options.global_ca_pem});
    } else if (const auto secret = secret_of(hub)) {
      use_secret(hub, *secret);
    } else {
      forget(hub, missing_kubeconfig(hub));
    }
    count();
  }

  void use_secret(const std::string& hub, const Object& secret) {
    const std::string version = std::string{secret.uid()} + "@" + std::string{secret.resource_version()};
    try {
      const auto config = read_hub_kubeconfig(secret);
      const auto credential = "Secret " + kube::to_string(secret.key()) + " of the global hub";
      use(hub, version, credential, [&] { return connect(hub, config); }, {config.server, config.ca_pem});
    } catch (const std::exception& error) {
      env.log.warn("hub kubeconfig rejected", {{"hub", hub}, {"error", error.what()}});
      forget(hub, "there is no usable kubeconfig for hub " + hub + ": " + error.what());
    }
  }

  template <typename Open>
  void use(const std::string& hub, const std::string& version, const std::string& credential, Open open,
           Address address) {
    if (scope_ == nullptr || secrets_in_use_[hub] == version) return;
    auto& open_writes = open_writes_[hub];
    if (open_writes == nullptr) open_writes = hubagent::make_open_writes();
    auto api = std::make_shared<ObservedApi>(open(), hub, credential, troubles, env.clock);
    auto hub_options = options.hub;
    if (is_global_hub(*clusters.get({{}, hub}))) hub_options.review_permissions = options.is_manager;
    hub_options.report_staying = !options.is_manager;
    auto flow = std::make_shared<FlowApi>(api, hub, env);
    auto to = std::make_shared<hubagent::Hub>(hub, std::move(flow), std::move(hub_options), env, open_writes);
    auto connection = make_connection(to, reachable_.with({hub}), std::move(api), troubles);
    env.log.info(secrets_in_use_[hub].empty() ? "hub found, connecting" : "hub kubeconfig changed, reconnecting",
                 {{"hub", hub}, {"server", address.server}});
    secrets_in_use_[hub] = version;
    addresses_[hub] = std::move(address);
    scope_->spawn(watch_clusters(std::move(to), connection));
    connections->put(hub, std::move(connection));
    troubles.clear(hub);
    troubles.report_recovery();
  }

  void forget(const std::string& hub, std::string why) {
    secrets_in_use_.erase(hub);
    addresses_.erase(hub);
    troubles.clear(hub);  // the error of connection() says it
    // A hub that never had a connection, too.
    if (known_.contains(hub)) reachable_.with({hub}).set(0);
    connections->drop(hub, std::move(why));
  }

  void count() {
    const auto known = known_.size();
    const auto open = connections->open();
    hubs_.with({"direct"}).set(static_cast<double>(open));
    hubs_.with({"none"}).set(static_cast<double>(known > open ? known - open : 0));
  }

  obs::Family<obs::Gauge>& hubs_;
  obs::Family<obs::Gauge>& reachable_;
  async::TaskScope* scope_ = nullptr;  // while run() runs
  std::set<std::string> known_;        // hubs of the global hub
  std::map<std::string, std::string> secrets_in_use_;
  std::map<std::string, std::string> ignored_secrets_;  // by hub: names
  std::map<std::string, Address> addresses_;
  /// By hub; kept when a connection is replaced: what was sent over the old one may still take effect.
  std::map<std::string, std::shared_ptr<hubagent::OpenWrites>> open_writes_;
};

HubDirectory::HubDirectory(kube::Api& global, Connect connect, HubDirectoryOptions options, kube::Env env)
    : state_(std::make_shared<State>(global, std::move(connect), std::move(options), env, troubles)) {}

HubDirectory::~HubDirectory() = default;

async::Awaitable<> HubDirectory::run() {
  return state_->run();
}

bool HubDirectory::synced() const {
  return state_->synced();
}

async::Awaitable<HubInfo> HubDirectory::find(std::string hub) {
  const auto state = state_;
  co_await state->wait_synced();
  HubInfo info;
  info.name = hub;
  const Key key{{}, hub};
  const auto cluster = state->clusters.get(key);
  if (cluster == nullptr) co_return info;
  info.exists = true;
  info.available = is_global_hub(*cluster) || cluster->is_true(available);
  info.is_hub = is_hub(*cluster);
  const auto address = state->address_of(hub);
  info.server_url = address.server;
  info.ca_pem = address.ca_pem;
  if (cluster->client_url().empty()) co_return info;

  info.server_url = cluster->client_url();
  if (info.server_url != address.server) info.ca_pem.clear();
  // The cache omits certificates: they are long, and only those of hubs are ever needed.
  auto whole = co_await state->global.get(ocm::managed_clusters, key);
  if (!whole) info.ca_error = whole.error();
  const auto* clients = whole ? whole->find({"spec", "managedClusterClientConfigs"}) : nullptr;
  if (clients == nullptr || !clients->is_array() || clients->get_array().empty()) co_return info;
  const auto& first = clients->get_array().front();
  const auto bundle = first.is_object() ? kube::string_at(first.get_object(), {"caBundle"}) : std::string_view{};
  if (auto pem = kube::decode_base64(bundle); pem && !pem->empty()) info.ca_pem = std::move(*pem);
  co_return info;
}

async::Awaitable<std::vector<std::string>> HubDirectory::names() {
  const auto state = state_;
  co_await state->wait_synced();
  std::vector<std::string> names;
  state->clusters.for_each([&](const Key& key, const auto& cluster) {
    if (is_hub(*cluster)) names.push_back(key.name);
  });
  std::ranges::sort(names);
  co_return names;
}

hubagent::Result<std::shared_ptr<Connection>> HubDirectory::connection(const std::string& hub) {
  return state_->connection(hub);
}

}  // namespace hubferry::hubs
