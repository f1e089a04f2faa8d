#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/async/task_scope.hpp"
#include "hubferry/klusterlet/agent.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/sim/server.hpp"

namespace hubferry::klusterlet::test {

/// A small hub: a simulated server with only the reactions to agents that a test enables.
class Hub {
 public:
  Hub(std::string name, kube::Env env);

  /// Installs CRDs and roles.
  Awaitable<> set_up();
  /// Reacts to clusters and certificate requests until cancelled.
  Awaitable<> react();

  [[nodiscard]] const std::string& name() const { return server.name(); }
  [[nodiscard]] std::string url() const { return "https://" + name() + ".example:6443"; }
  /// A bootstrap kubeconfig for this hub. `stanza`: its cluster name.
  [[nodiscard]] BootstrapConfig bootstrap(const std::string& stanza = "hub",
                                          const std::string& token = "bootstrap") const;
  /// A client with the credential of this configuration.
  std::shared_ptr<kube::Api> connect(const kube::ClientConfig& config);

  // As an administrator.
  Awaitable<> accept(std::string cluster, bool accepts);
  Awaitable<> approve_all();
  Awaitable<> deny(kube::Object request, std::string why);
  Awaitable<> set_lease_duration(std::string cluster, int seconds);
  Awaitable<> must(Awaitable<kube::Result<kube::Object>> call);

  // The current state.
  [[nodiscard]] std::optional<kube::Object> cluster(const std::string& name) const;
  /// "True", "False", "Unknown", or empty.
  [[nodiscard]] std::string condition(const std::string& cluster, const char* type) const;
  [[nodiscard]] bool is_available(const std::string& cluster) const;
  [[nodiscard]] std::string renew_time(const std::string& cluster) const;
  [[nodiscard]] std::vector<kube::Object> requests() const;
  [[nodiscard]] std::size_t count(std::string_view verb, std::string_view resource) const;

  sim::Server server;
  bool accepts = true;   // new clusters, by itself, once
  bool approves = true;  // certificate requests, by itself
  /// The users that connected with certificates, in order.
  std::vector<std::string> certificates_seen;

 private:
  Awaitable<> react_to_clusters();
  Awaitable<> react_to_requests();
  Awaitable<> admit(kube::Object cluster);
  Awaitable<> approve(kube::Object request);
  Awaitable<> answer(kube::Key request, kube::Condition answer);

  kube::Env env_;
  kube::Api& api_;
};

}  // namespace hubferry::klusterlet::test
