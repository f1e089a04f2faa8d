#pragma once

#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"
#include "support/process.hpp"
#include "support/temporary_directory.hpp"

namespace hubferry::test {

/// What a kube-controller-manager would do on a real API server that has none, as far as hubs need it: sign approved
/// certificate requests, empty namespaces that are being deleted, garbage-collect objects without an owner.
/// Lifetime: `api` and what `env` refers to outlive it. Executor: one loop.
class ControllerManager {
 public:
  /// `keys`: the directory with ca.crt and ca.key.
  ControllerManager(kube::Api& api, std::string keys, kube::Env env);

  /// Until cancelled.
  async::Awaitable<> run();

 private:
  async::Awaitable<> sign_requests();
  async::Awaitable<> sign(kube::Object request);
  async::Awaitable<> empty_namespaces();
  async::Awaitable<> empty(std::string ns);
  async::Awaitable<> collect_orphans();
  async::Awaitable<bool> is_gone(std::string ns, kube::json::object owner);

  kube::Api& api_;
  std::string keys_;
  kube::Env env_;
  TemporaryDirectory folder_;
};

}  // namespace hubferry::test
