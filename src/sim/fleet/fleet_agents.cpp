#include "hubferry/sim/fleet_agents.hpp"

#include <algorithm>
#include <stdexcept>

#include "hubferry/async/event.hpp"

namespace hubferry::sim {

using async::Awaitable;

namespace {

// As Open Cluster Management generates it, but the same for every run, and for a credential issued in advance.
constexpr const char* agent_name = "fleet";

}  // namespace

struct FleetAgents::Cluster {
  Cluster(FleetMember member, klusterlet::AgentOptions options, const Network& network, const kube::Env& env)
      : store(std::move(member.bootstraps), std::move(member.secret)),
        agent(
            std::move(options), store, [&network](const kube::ClientConfig& config) { return network.connect(config); },
            env) {}

  klusterlet::MemoryStore store;
  klusterlet::Agent agent;
  async::Event removed;
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
  options.cluster_name = member.cluster;
  options.agent_name = agent_name;
  options.connection_timeout = options_.connection_timeout;
  options.record_events = options_.record_events;
  const std::string name = member.cluster;
  auto cluster = std::make_shared<Cluster>(std::move(member), std::move(options), network_, env_);
  clusters_.emplace(name, cluster);
  if (scope_ != nullptr) scope_->spawn(live(std::move(cluster)));
}

bool FleetAgents::remove(const std::string& cluster) {
  const auto found = clusters_.find(cluster);
  if (found == clusters_.end()) return false;
  found->second->removed.set();
  clusters_.erase(found);
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
  auto body = [cluster](async::TaskScope& scope) -> Awaitable<> {
    scope.spawn(cluster->agent.run());
    co_await cluster->removed.wait();
    scope.stop();
  };
  co_await async::with_scope(body);
}

std::size_t FleetAgents::size() const {
  return clusters_.size();
}

const klusterlet::Agent* FleetAgents::find(const std::string& cluster) const {
  const auto found = clusters_.find(cluster);
  return found == clusters_.end() ? nullptr : &found->second->agent;
}

klusterlet::MemoryStore* FleetAgents::store_of(const std::string& cluster) const {
  const auto found = clusters_.find(cluster);
  return found == clusters_.end() ? nullptr : &found->second->store;
}

std::size_t FleetAgents::joined_at(const std::string& server) const {
  return static_cast<std::size_t>(std::ranges::count_if(clusters_, [&](const auto& entry) {
    const auto view = entry.second->agent.view();
    return view.phase == "Joined" && view.hub == server;
  }));
}

std::size_t FleetAgents::available_at(const std::string& server) const {
  return static_cast<std::size_t>(std::ranges::count_if(clusters_, [&](const auto& entry) {
    const auto view = entry.second->agent.view();
    return view.available && view.hub == server;
  }));
}

}  // namespace hubferry::sim
