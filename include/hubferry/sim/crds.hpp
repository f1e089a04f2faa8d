#pragma once

#include <string>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

/// The CustomResourceDefinitions of hubferry and of the systems on hubs that it uses (Open Cluster Management, Hive,
/// metal3), embedded in the binary. The foreign ones are reduced: fields that we use are validated, others preserved.
const std::vector<kube::json::object>& crds();

/// Which of them to install.
struct CrdSelection {
  std::vector<std::string> without{};  // kinds
};

/// Creates the missing ones and waits until they are served. Existing ones are not changed: a real server's own
/// definitions are better than ours.
/// Errors: throws std::runtime_error that names the definition.
async::Awaitable<> install_crds(kube::Api& api, CrdSelection selection, kube::Env env);
async::Awaitable<> install_crds(kube::Api& api, kube::Env env);

}  // namespace hubferry::sim
