#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/cli/server_client.hpp"

namespace hubferry::app {

/// What `hubferry doctor` has found.
struct Diagnosis {
  std::vector<std::string> findings;         // what looks wrong, one message each
  std::map<std::string, std::string> files;  // of the bundle: content by path. Without secrets
};

/// Reads what is needed to judge an installation from the global hub of `client`, and checks each hub: migrations with
/// their own ledgers and events, the Deployment, pods and Lease of hubferry's managers, the CRD, and of Secrets the
/// names only. What cannot be read is a finding. `ns`: where the manager runs.
async::Awaitable<Diagnosis> diagnose(ServerClient& client, std::string ns);

/// The object as it may be given away: without managedFields, what kubectl applied last, data of Secrets, values of
/// environment variables and of flags that sound secret, commands of probes and hooks.
kube::json::object without_secrets(kube::json::object object);

}  // namespace hubferry::app
