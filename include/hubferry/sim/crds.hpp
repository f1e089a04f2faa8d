#pragma once

#include <string>
#include <vector>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

/// The CustomResourceDefinitions of hubferry and of the systems that it meets on hubs (Open Cluster Management, Hive,
/// metal3), as they were built into the binary. Those of others are short: what we use is checked, the rest is kept.
const std::vector<kube::json::object>& crds();

/// Which of them.
struct CrdSelection {
  std::vector<std::string> without{};  // kinds
};

/// Creates them where they are missing and waits until they are served. What is there already stays as it is: a real
/// server's own definitions are better than ours.
/// Errors: throws std::runtime_error that names the definition.
async::Awaitable<> install_crds(kube::Api& api, CrdSelection selection, kube::Env env);
async::Awaitable<> install_crds(kube::Api& api, kube::Env env);

}  // namespace hubferry::sim
