#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "app/hubs/registered_hubs.hpp"

namespace hubferry::app {

/// One line of `hubferry hub list`.
struct HubSummary {
  RegisteredHub hub;
  bool reachable = false;
  std::string version{};  // of Kubernetes
  std::string problem{};
};

/// Reads the version of every hub, at the same time.
async::Awaitable<std::vector<HubSummary>> summarize(ServerClient& client, std::vector<RegisteredHub> hubs);

std::vector<std::string> hub_table(const std::vector<HubSummary>& hubs, const Terminal& terminal);
kube::json::array hub_list_json(const std::vector<HubSummary>& hubs);

/// One check of `hubferry hub check`.
struct HubCheck {
  enum class Result { ok, warning, failed };

  std::string name;
  Result result = Result::ok;
  std::string message;
};

/// What the hub is to be used as.
struct HubUse {
  bool source = true;
  bool target = true;
};

/// Checks a hub as the manager would use it: registration, kubeconfig, connection, credential, kinds and permissions.
/// Reads only; access reviews change nothing.
async::Awaitable<std::vector<HubCheck>> check_hub(ServerClient& client, RegisteredHub hub, HubUse use);

/// No check failed.
bool is_usable(const std::vector<HubCheck>& checks);

std::vector<std::string> check_table(const std::vector<HubCheck>& checks, const Terminal& terminal);
/// {"hub", "usable", "checks": [{"name", "result", "message"}]}.
kube::json::object check_json(const std::string& hub, const std::vector<HubCheck>& checks);

}  // namespace hubferry::app
