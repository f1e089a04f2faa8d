#pragma once

#include <vector>

#include "hubferry/klusterlet/local_store.hpp"
#include "hubferry/kube/object.hpp"

namespace hubferry::klusterlet {

/// The bootstrap kubeconfigs in a ManifestWork `<cluster>-klusterlet`, by which a hub tells an agent where it may go.
struct KlusterletWork {
  /// Of the Klusterlet's bootstrapKubeConfigs, in its order; those whose Secret is missing are left out.
  std::vector<BootstrapConfig> list;
  /// The Secret `bootstrap-hub-kubeconfig`: a fresh credential for the hub that sent this.
  std::optional<BootstrapConfig> own;
  /// hubConnectionTimeoutSeconds, where there is a list.
  std::optional<Duration> timeout;
};

/// Never throws: what is not as expected is not there.
KlusterletWork read_klusterlet_work(const kube::Object& manifest_work);

/// What an agent's list becomes. A list replaces the old one, but the hub in use stays in it, at the end if it is
/// nowhere else: an agent must be able to stay, and to come back. Without a list, a fresh credential replaces the one
/// for the same server.
std::vector<BootstrapConfig> merge_bootstraps(const std::vector<BootstrapConfig>& known, const KlusterletWork& work,
                                              const BootstrapConfig& in_use, const std::string& server_in_use);

}  // namespace hubferry::klusterlet
