#pragma once

#include <map>
#include <memory>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

/// The managed-serviceaccount add-on: for each ManagedServiceAccount in namespace H of the global hub there
/// is a ServiceAccount on hub H, and a Secret beside the ManagedServiceAccount with a token of it and that hub's CA.
///
/// The token is renewed after four fifths of its validity. When the ManagedServiceAccount is deleted, the
/// ServiceAccount is deleted, which revokes the token; the Secret is garbage-collected by its owner reference. Accounts
/// whose ManagedServiceAccount was deleted while this was not running are found by their label.
///
/// Lifetime: the Apis outlive it. Executor: one loop. Cancellation: terminal. Errors: logged and retried.
class ManagedServiceAccounts {
 public:
  struct Hub {
    kube::Api* api = nullptr;
    /// The CA of the hub's server certificate. Empty: read from the ConfigMap kube-root-ca.crt in the ServiceAccount's
    /// namespace, as on a real hub.
    std::string ca_pem;
  };

  ManagedServiceAccounts(kube::Api& global, std::map<std::string, Hub> hubs, kube::Env env);
  ManagedServiceAccounts(const ManagedServiceAccounts&) = delete;
  ManagedServiceAccounts& operator=(const ManagedServiceAccounts&) = delete;
  ~ManagedServiceAccounts();

  /// Runs until cancelled.
  kube::Awaitable<> run();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
