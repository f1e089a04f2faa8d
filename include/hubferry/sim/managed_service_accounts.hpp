#pragma once

#include <map>
#include <memory>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

/// What the managed-serviceaccount add-on does: for each ManagedServiceAccount in namespace H of the global hub there
/// is a ServiceAccount on hub H, and a Secret beside the ManagedServiceAccount with a token of it and that hub's CA.
///
/// The token is renewed when four fifths of its validity have passed. When the ManagedServiceAccount goes, the
/// ServiceAccount goes, and the token with it is worthless; the Secret is collected by its owner reference. Accounts of
/// ManagedServiceAccounts that went while nobody was looking are found by their label.
///
/// Lifetime: the Apis outlive it. Executor: one loop. Cancellation: terminal. Errors: logged and tried again.
class ManagedServiceAccounts {
 public:
  struct Hub {
    kube::Api* api = nullptr;
    /// What the hub's server certificate is checked with. Empty: that of the ConfigMap kube-root-ca.crt beside the
    /// ServiceAccount, where a real hub has it.
    std::string ca_pem;
  };

  ManagedServiceAccounts(kube::Api& global, std::map<std::string, Hub> hubs, kube::Env env);
  ManagedServiceAccounts(const ManagedServiceAccounts&) = delete;
  ManagedServiceAccounts& operator=(const ManagedServiceAccounts&) = delete;
  ~ManagedServiceAccounts();

  /// Works until cancelled.
  kube::Awaitable<> run();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
