#include "hubferry/klusterlet/agent.hpp"

#include <stdexcept>

#include "hubferry/kube/names.hpp"
#include "klusterlet/agent_core.hpp"

namespace hubferry::klusterlet {

namespace {

std::string join(const std::vector<std::string>& messages) {
  std::string text;
  for (const auto& message : messages) text += (text.empty() ? "" : "; ") + message;
  return text;
}

}  // namespace

std::vector<std::string> AgentOptions::problems() const {
  std::vector<std::string> found;
  if (!kube::is_dns_label(cluster_name))
    found.push_back("the cluster name '" + cluster_name +
                    "' is not a valid namespace name: at most 63 lower-case letters, digits and '-'");
  if (agent_name.empty() || agent_name.find(':') != std::string::npos)
    found.push_back("the agent name '" + agent_name + "' must not be empty and must not contain ':'");
  if (agent_name.size() > 63) found.emplace_back("the agent name is too long: at most 63 characters");
  if (connection_timeout <= Duration::zero())
    found.emplace_back("the hub connection timeout must be greater than zero");
  if (healthcheck_period <= Duration::zero()) found.emplace_back("the health check period must be greater than zero");
  if (certificate_lifetime.count() != 0 && certificate_lifetime.count() < 3600)
    found.emplace_back("the client certificate expiration must be 0 (the hub decides) or at least 3600 seconds");
  for (const auto& url : external_server_urls)
    if (!url.starts_with("https://") || url.size() == 8)
      found.push_back("the external server URL '" + url + "' must start with https://");
  return found;
}

std::optional<std::string> bootstrap_problem(std::size_t count, bool multiple_hubs) {
  if (multiple_hubs && count < 2)
    return "the feature gate MultipleHubs needs at least two bootstrap kubeconfigs, not " + std::to_string(count);
  if (count == 0) return "a bootstrap kubeconfig is required";
  return std::nullopt;
}

Agent::Agent(AgentOptions options, LocalStore& store, Connect connect, kube::Env env) {
  const auto problems = options.problems();
  if (!problems.empty()) throw std::invalid_argument(join(problems));
  core_ = std::make_unique<AgentCore>(std::move(options), store, std::move(connect), std::move(env));
}

Agent::~Agent() = default;

Awaitable<> Agent::run() {
  return core_->run();
}

AgentView Agent::view() const {
  return core_->view();
}

phase::States Agent::states() const {
  return core_->record.status.state;
}

SpokeProbe probe_of(std::shared_ptr<kube::Api> own_cluster) {
  return [own_cluster = std::move(own_cluster)]() -> Awaitable<SpokeHealth> {
    SpokeHealth health;
    auto answer = co_await own_cluster->get_path("/livez");
    if (!answer &&
        (answer.error().kind == kube::ErrorKind::not_found || answer.error().kind == kube::ErrorKind::forbidden))
      answer = co_await own_cluster->get_path("/healthz");
    health.healthy = answer.has_value();
    if (!answer) {
      health.message = answer.error().describe();
      co_return health;
    }
    auto version = co_await own_cluster->get_path("/version");
    if (version && version->is_object())
      health.kubernetes_version = kube::string_at(version->get_object(), {"gitVersion"});
    co_return health;
  };
}

}  // namespace hubferry::klusterlet
