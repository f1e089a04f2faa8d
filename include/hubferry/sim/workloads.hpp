#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hubferry/kube/api.hpp"
#include "hubferry/kube/env.hpp"

namespace hubferry::sim {

struct StatefulSetOptions {
  /// How long a pod takes from its creation until it has an address and is ready. Absent: somebody else writes the
  /// status of pods, such as a test that runs them as processes.
  std::optional<async::Duration> start_delay = std::chrono::seconds{2};
  /// The address of a pod; empty: the next one of 10.0.0.0/8.
  std::function<std::string(const kube::Object& pod)> address = {};
};

/// Kubernetes' StatefulSet controller, and a kubelet that starts nothing: pods, their claims and revisions, as far as
/// operators rely on them. All pods at once (podManagementPolicy Parallel), restarted only when somebody deletes them
/// (OnDelete); a claim is never deleted. Written against kube::Api.
class StatefulSets {
 public:
  StatefulSets(kube::Api& api, StatefulSetOptions options, kube::Env env);
  StatefulSets(const StatefulSets&) = delete;
  StatefulSets& operator=(const StatefulSets&) = delete;
  ~StatefulSets();

  /// Runs until cancelled.
  kube::Awaitable<> run();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace hubferry::sim
