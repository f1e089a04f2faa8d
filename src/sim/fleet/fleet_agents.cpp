#include "hubferry/sim/fleet_agents.hpp"

#include <algorithm>
#include <stdexcept>

#include "hubferry/async/wait_list.hpp"
#include "hubferry/kube/wait_for_object.hpp"
#include "hubferry/ocm/resources.hpp"
#include "sim/ocm/ensure.hpp"

namespace hubferry::sim {

using async::Awaitable;

namespace {

// As Open Cluster Management generates it, but the same for every run, and for a credential issued in advance.
constexpr const char* agent_name = "fleet";

/// Of the klusterlet's work. Recorded: 0.3 to 2 s, longer than an import controller takes to write the next version.
constexpr auto upstream_apply_time = std::chrono::seconds{1};

}  // namespace

struct FleetAgents::Cluster {
  Cluster(FleetMember member, klusterlet::AgentOptions settings, const FleetOptions& fleet, const Network& hubs,
          const kube::Env& environment)
      : network(hubs), env(environment), options(std::move(settings)), store(member.bootstraps, member.secret) {
    if (fleet.upstream) store.let_list_decide_on_multiple_hubs();
    own_cluster = member.own_cluster;
    if (member.own_cluster != nullptr) {
      WorkAgentOptions works;
      works.cluster = options.cluster_name;
      works.eviction_grace = fleet.eviction_grace;
      work_agent.emplace(*member.own_cluster, std::move(works), env);
      options.on_change = [this](const klusterlet::AgentView& view) { follow(view); };
    }
    start();
  }

  void start() {
    agent.emplace(options, store, [this](const kube::ClientConfig& config) { return network.connect(config); }, env);
  }

  /// Both agents are one process: works are applied while it is registered with a hub, with the same credential.
  void follow(const klusterlet::AgentView& view) {
    const auto& secret = store.secret();
    const bool is_joined = view.phase == "Joined" && secret.has_value();
    const auto credential = is_joined ? view.hub + secret->certificate : std::string{};
    if (credential == credential_in_use) return;
    credential_in_use = credential;
    work_agent->set_hub(view.hub, is_joined ? network.connect(klusterlet::client_config(*secret)) : nullptr);
  }

  /// Both agents are one pod; who deletes it restarts them.
  Awaitable<> run_pod() {
    const kube::Resource pods{"", "v1", "pods", "Pod", true};
    const kube::Key key{ocm::names::agent_namespace, "klusterlet-agent"};
    kube::json::object labels{{"app", "klusterlet-agent"}};
    kube::json::object metadata{{"name", key.name}, {"namespace", key.ns}, {"labels", std::move(labels)}};
    kube::json::object pod{{"metadata", std::move(metadata)}};
    auto is_gone = [](const kube::Object* seen) { return seen == nullptr; };
    auto made = co_await ensure_exists(*own_cluster, pods, std::move(pod));
    if (!made) co_await env.clock.sleep_until(async::never);
    co_await kube::wait_for_object(*own_cluster, pods, key, is_gone, async::never, env);
    interrupted.wake_all();
  }

  const Network& network;
  kube::Env env;
  kube::Api* own_cluster = nullptr;
  klusterlet::AgentOptions options;
  klusterlet::MemoryStore store;
  std::string credential_in_use;
  std::optional<WorkAgent> work_agent;
  std::optional<klusterlet::Agent> agent;
  bool is_removed = false;
  async::WaitList interrupted;  // by a restart or the removal
};

klusterlet::HubSecret issue_hub_secret(const Network& network, const Server& hub, const std::string& cluster,
                                       const kube::ClientConfig& bootstrap) {
  const klusterlet::Identity identity{cluster, agent_name};
  const User user{identity.common_name(), identity.organizations(), {}};
  const auto issued = network.config_for(hub, user, true);
  return {.kubeconfig = klusterlet::hub_kubeconfig(bootstrap),
          .certificate = issued.client_certificate_pem,
          .key = obs::Secret{issued.client_key_pem},
          .cluster_name = cluster,
          .agent_name = agent_name};
}

FleetAgents::FleetAgents(const Network& network, FleetOptions options, kube::Env env)
    : network_(network), options_(options), env_(std::move(env)) {}

FleetAgents::~FleetAgents() = default;

void FleetAgents::add(FleetMember member) {
  if (clusters_.contains(member.cluster)) throw std::invalid_argument("duplicate cluster name " + member.cluster);
  klusterlet::AgentOptions options;
  options.allow_plain_http = true;
  options.keys = &network_.keys();
  options.cluster_name = member.cluster;
  options.agent_name = agent_name;
  options.connection_timeout = options_.connection_timeout;
  options.record_events = options_.record_events;
  options.registers_until_restarted = options_.upstream;
  if (options_.upstream) options.work_apply_time = upstream_apply_time;
  const std::string name = member.cluster;
  auto cluster = std::make_shared<Cluster>(std::move(member), std::move(options), options_, network_, env_);
  clusters_.emplace(name, cluster);
  if (scope_ != nullptr) scope_->spawn(live(std::move(cluster)));
}

bool FleetAgents::remove(const std::string& cluster) {
  const auto found = clusters_.find(cluster);
  if (found == clusters_.end()) return false;
  found->second->is_removed = true;
  found->second->interrupted.wake_all();
  clusters_.erase(found);
  return true;
}

bool FleetAgents::restart(const std::string& cluster) {
  const auto found = clusters_.find(cluster);
  if (found == clusters_.end()) return false;
  found->second->interrupted.wake_all();
  return true;
}

Awaitable<> FleetAgents::run() {
  auto body = [this](async::TaskScope& scope) -> Awaitable<> {
    scope_ = &scope;
    for (const auto& [name, cluster] : clusters_) scope.spawn(live(cluster));
    // Keeps an empty fleet running until its first cluster is added.
    co_await env_.clock.sleep_until(async::never);
  };
  struct ForgetScope {
    FleetAgents& fleet;
    ~ForgetScope() { fleet.scope_ = nullptr; }
  } forget_scope{*this};
  co_await async::with_scope(body);
}

Awaitable<> FleetAgents::live(std::shared_ptr<Cluster> cluster) {
  if (options_.start_spread > async::Duration{0})
    co_await env_.clock.sleep_for(env_.random.between(async::Duration{0}, options_.start_spread));
  while (!cluster->is_removed) {
    auto body = [cluster](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(cluster->agent->run());
      if (cluster->work_agent) scope.spawn(cluster->work_agent->run());
      if (cluster->own_cluster != nullptr) scope.spawn(cluster->run_pod());
      co_await cluster->interrupted.wait();
      scope.stop();
    };
    co_await async::with_scope(body);
    if (cluster->is_removed) co_return;
    cluster->start();
  }
}

std::size_t FleetAgents::size() const {
  return clusters_.size();
}

const klusterlet::Agent* FleetAgents::find(const std::string& cluster) const {
  const auto found = clusters_.find(cluster);
  return found == clusters_.end() ? nullptr : &*found->second->agent;
}

klusterlet::MemoryStore* FleetAgents::store_of(const std::string& cluster) const {
  const auto found = clusters_.find(cluster);
  return found == clusters_.end() ? nullptr : &found->second->store;
}

std::size_t FleetAgents::joined_at(const std::string& server) const {
  return static_cast<std::size_t>(std::ranges::count_if(clusters_, [&](const auto& entry) {
    const auto view = entry.second->agent->view();
    return view.phase == "Joined" && view.hub == server;
  }));
}

std::size_t FleetAgents::available_at(const std::string& server) const {
  return static_cast<std::size_t>(std::ranges::count_if(clusters_, [&](const auto& entry) {
    const auto view = entry.second->agent->view();
    return view.available && view.hub == server;
  }));
}

}  // namespace hubferry::sim
