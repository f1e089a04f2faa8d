#pragma once

#include "hubagent/requests.hpp"

/// The Secrets with bootstrap kubeconfigs that the source's import controller has put on a cluster. After the move
/// nobody uses them, and nobody deletes them: the klusterlet's work leaves its objects behind. A ManifestWork of the
/// target that contains them, and is deleted when the agent has applied it, takes them along. The agent adopts them as
/// they are (CreateOnly).
///
/// Only for clusters that are deleted from the source. One that returned to it would lose the Secret of its own hub, an
/// hour later, by the eviction of what the target had adopted.
namespace hubferry::hubagent {

/// The label of these works. One is deleted only if it carries this label and the migration's: works of users have
/// neither.
inline constexpr const char* outdated_secrets_label = "hubferry.io/deletes-outdated-secrets";

}  // namespace hubferry::hubagent
