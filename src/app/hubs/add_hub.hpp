#pragma once

#include <iosfwd>

#include "app/hubs/registered_hubs.hpp"
#include "hubferry/async/types.hpp"

namespace hubferry::app {

/// The Secret that `hubferry hub add` writes, in the hub's namespace.
inline constexpr const char* added_secret = "hubferry-kubeconfig";

struct AddHubOptions {
  std::string hub;
  kube::ClientConfig admin;  // an administrator's access to the hub
  std::string server;        // how the manager reaches it; empty: as the administrator does
  std::string account_namespace = "hubferry-system";
  std::string account = "hubferry-hub";
  async::Duration token_duration = std::chrono::hours{720};
  bool dry_run = false;  // print what would be written, without a token
};

/// Registers a hub on the global hub of `client`: a token of the manager's account on the hub, a Secret with a
/// kubeconfig for it, and the label that makes the ManagedCluster a hub. Repeated, it renews the token. Prints one
/// line. Throws std::runtime_error, and has changed nothing then but perhaps the Secret.
async::Awaitable<> add_hub(ServerClient& client, AddHubOptions options, std::ostream& out);

}  // namespace hubferry::app
