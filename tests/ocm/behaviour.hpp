#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <optional>
#include <vector>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "ocm/facts.hpp"
#include "ocm/world.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::behaviour {

namespace names = ocm::names;

/// One behaviour of Open Cluster Management: written once, run on simulated and on real hubs.
class OcmBehaviour : public testing::TestWithParam<Backend> {
 protected:
  using Check = std::function<Awaitable<bool>()>;

  void SetUp() override { world_ = GetParam().make(); }
  /// Runs `body`, and deletes what was created, also when the body fails.
  void run(std::function<Awaitable<>()> body);

  OcmWorld& world() { return *world_; }
  Api& hub1() { return world_->hub1(); }
  Api& hub2() { return world_->hub2(); }
  [[nodiscard]] bool has_import() const { return world_->import_controller() != ImportController::none; }
  [[nodiscard]] bool is_5x() const { return world_->import_controller() == ImportController::mce_5_x; }

  /// Waits until `done` holds; a failure names `what`.
  Awaitable<bool> becomes(std::string what, facts::Fact fact, Check done);
  /// Watches for a while that `holds` does.
  Awaitable<> stays(std::string what, Duration span, Check holds);

  /// A ManagedCluster without an agent; deleted in the end.
  Awaitable<std::string> make_cluster(Api& hub, bool accepted);
  Awaitable<std::string> make_cluster(Api& hub, bool accepted, json::object annotations);
  Awaitable<std::string> make_cluster(Api& hub, bool accepted, json::object annotations, int lease_seconds);
  /// The same, and waits until the hub has prepared it.
  Awaitable<std::string> make_prepared_cluster(Api& hub);
  Awaitable<std::optional<Object>> find(Api& api, Resource resource, Key key);
  Awaitable<bool> exists(Api& api, Resource resource, Key key);
  Awaitable<Object> cluster_on(Api& hub, std::string name);
  Awaitable<> patch_cluster(Api& hub, std::string name, json::object patch);
  Awaitable<> set_accepted(Api& hub, std::string name, bool accepted);
  /// Without a value the annotation is removed.
  Awaitable<> annotate(Api& hub, std::string name, std::string annotation, std::optional<std::string> value);
  /// "True", "False", "Unknown", or "" without the condition.
  Awaitable<std::string> condition(Api& hub, std::string cluster, std::string type);
  Awaitable<> set_available(Api& hub, std::string cluster);
  Awaitable<std::string> renewal(Api& hub, std::string cluster);
  /// Waits until the agent has renewed its lease on this hub.
  Awaitable<bool> renews_lease(std::string what, Api& hub, std::string cluster, facts::Fact fact);

  Awaitable<> make(Api& api, Resource resource, json::object object);
  /// Also done when the test fails, in reverse order.
  void at_end(Api& api, Resource resource, Key key) { cleanup_.push_back({&api, std::move(resource), std::move(key)}); }
  void at_end(std::function<Awaitable<>()> step) { steps_.push_back(std::move(step)); }

  Awaitable<> pause(Duration span) { return world_->env().clock.sleep_for(span); }

  static std::string registration_binding(const std::string& cluster) {
    return "open-cluster-management:managedcluster:" + cluster + ":registration";
  }
  static std::string work_binding(const std::string& cluster) {
    return "open-cluster-management:managedcluster:" + cluster + ":work";
  }

 private:
  struct Leftover {
    Api* api;
    Resource resource;
    Key key;
  };
  Awaitable<> run_and_clean(std::function<Awaitable<>()> body);

  std::shared_ptr<OcmWorld> world_;
  std::vector<Leftover> cleanup_;
  std::vector<std::function<Awaitable<>()>> steps_;
};

/// Behaviours of hubs with an import controller.
class ImportBehaviour : public OcmBehaviour {
 protected:
  /// The klusterlet's work; throws if there is none.
  Awaitable<Object> klusterlet_work(Api& hub, std::string cluster);
  Awaitable<bool> is_read_only(Api& hub, std::string cluster);
  /// The Secrets of the klusterlet's work, in order.
  Awaitable<std::vector<std::string>> bootstrap_secrets(Api& hub, std::string cluster);
  /// A Secret and a KlusterletConfig that names it and then the current hub; both deleted in the end.
  Awaitable<> make_bootstrap_secret(Api& hub, std::string name, std::string kubeconfig);
  Awaitable<> make_config(Api& hub, std::string name, std::string secret);
  /// A token of a ServiceAccount of this hub, as a kubeconfig.
  Awaitable<ClientConfig> config_of_account(Api& hub, Key account);
  /// Sends a certificate request as the agent of `cluster`; returns its name. Deleted in the end.
  Awaitable<std::string> request_certificate(Api& hub, ClientConfig as, std::string cluster);
  Awaitable<bool> is_approved(Api& hub, std::string request);
  /// An account that may register clusters, but whose requests nobody approves; deleted in the end.
  Awaitable<Key> make_mover(Api& hub);
};

/// Behaviours of the agents of a cluster. On a real environment it is on hub1 before and after each test.
class AgentBehaviour : public ImportBehaviour {
 protected:
  const std::string& cluster() { return world().cluster(); }
  Api& cluster_api() { return world().cluster_api(); }

  /// Gives the agent a kubeconfig of another hub by a KlusterletConfig on `from`, and waits until it is on the cluster.
  Awaitable<> offer(Api& from, ClientConfig kubeconfig);
  /// Creates the copy on `to`, and moves the agent there by its own bootstrap account.
  Awaitable<bool> switch_hub(Api& from, Api& to);
  /// The cluster is managed by hub1 alone again.
  Awaitable<> return_to_hub1();

  /// A work with a namespace and a ConfigMap of this name in it.
  json::object work(const std::string& name);
  Awaitable<std::optional<Object>> config_map(std::string name);
  Awaitable<bool> is_applied(Api& hub, std::string name);
};

#define INSTANTIATE_OCM(suite, backends) \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(backends), [](const auto& info) { return info.param.name; })

}  // namespace hubferry::behaviour
