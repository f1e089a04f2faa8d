#pragma once

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "hubagent/content.hpp"
#include "hubagent/interrupting_api.hpp"
#include "hubferry/async/deadline.hpp"
#include "hubferry/async/task_scope.hpp"
#include "hubferry/async/virtual_loop.hpp"
#include "hubferry/hubagent/hub.hpp"
#include "hubferry/hubagent/source_hub.hpp"
#include "hubferry/hubagent/target_hub.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "support/coroutine_test.hpp"

namespace hubferry::hubagent {

namespace json = kube::json;
using async::Awaitable;
using kube::ErrorKind;
using kube::Key;
using kube::Object;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using namespace std::chrono_literals;

inline json::object parsed(std::string_view text) {
  return json::parse(text).as_object();
}

/// A hub and its operations, on a simulated server.
struct TestHub {
  TestHub(const std::string& name, const kube::Env& env)
      : server(sim::Options{.name = name, .seed = 1, .latency = {}}, env),
        api(std::make_shared<InterruptingApi>(server.api())),
        hub(std::make_shared<Hub>(name, api, HubOptions{}, env)),
        source(make_source_hub(hub)),
        target(make_target_hub(hub)) {}

  sim::Server server;
  std::shared_ptr<InterruptingApi> api;
  std::shared_ptr<Hub> hub;
  std::shared_ptr<SourceHub> source;
  std::shared_ptr<TargetHub> target;
};

/// Two hubs on virtual time, without controllers: only the operations under test write to them.
class HubTest : public testing::Test {
 protected:
  HubTest() { reset(); }

  /// Creates two new hubs.
  void reset() {
    hub1_ = std::make_unique<TestHub>("hub1", env_);
    hub2_ = std::make_unique<TestHub>("hub2", env_);
    for (auto* hub : {hub1_.get(), hub2_.get()}) {
      loop_.run(sim::install_crds(hub->server.api(), env_));
      sim::HubOptions options;
      options.auto_approval = false;
      auto installed = loop_.run(sim::install_hub(hub->server.api(), options));
      EXPECT_TRUE(installed);
    }
    loop_.run_ready();
  }

  /// Runs `body` beside the hubs' caches.
  template <typename Body>
  void run(Body body) {
    auto all = [&](async::TaskScope& scope) -> Awaitable<> {
      scope.spawn(hub1_->hub->run());
      scope.spawn(hub2_->hub->run());
      co_await body();
      scope.stop();
    };
    loop_.run(async::with_scope(std::move(all)));
  }

  /// Writes an object as its owner would, its status too.
  Awaitable<> put(TestHub& hub, kube::Resource resource, json::object object) {
    auto made = co_await hub.server.api().create(resource, object);
    EXPECT_TRUE(made) << made.error();
    if (!made || !object.contains("status")) co_return;
    auto with_status = made->json();
    with_status["status"] = object.at("status");
    auto written = co_await hub.server.api().update(resource, with_status, "status");
    EXPECT_TRUE(written) << written.error();
  }

  Awaitable<> patch(TestHub& hub, kube::Resource resource, Key key, std::string text, std::string subresource = {}) {
    auto patched = co_await hub.server.api().merge_patch(resource, key, parsed(text), subresource);
    EXPECT_TRUE(patched) << patched.error();
  }

  Awaitable<> put_namespace(TestHub& hub, std::string name) {
    json::object object;
    object["metadata"] = json::object{{"name", name}};
    co_await put(hub, kube::resources::namespaces, object);
  }

  static json::object condition(std::string_view type, std::string_view status, std::string_view since) {
    return json::object{
        {"type", type}, {"status", status}, {"reason", "Test"}, {"message", ""}, {"lastTransitionTime", since}};
  }

  /// A cluster that has joined and is Available.
  static json::object managed_cluster(std::string_view name, std::string_view is_available = "True") {
    json::array conditions{condition(ocm::names::accepted, "True", "2029-12-01T00:00:00Z"),
                           condition(ocm::names::joined, "True", "2029-12-01T00:00:00Z"),
                           condition(ocm::names::available, is_available, "2029-12-01T00:00:00Z")};
    json::object labels{{"vendor", "OpenShift"}};
    json::object object;
    object["metadata"] = json::object{{"name", name}, {"labels", std::move(labels)}};
    object["spec"] = json::object{{"hubAcceptsClient", true}, {"leaseDurationSeconds", 60}};
    object["status"] = json::object{{"conditions", std::move(conditions)}};
    return object;
  }

  /// The namespace and the ManagedCluster of a cluster, on its hub.
  Awaitable<> put_cluster(TestHub& hub, std::string name) {
    co_await put_namespace(hub, name);
    co_await put(hub, ocm::managed_clusters, managed_cluster(name));
  }

  Awaitable<> put_secret(TestHub& hub, std::string ns, std::string name) {
    auto object = parsed(R"({"type": "Opaque", "data": {"key": "dmFsdWU="}})");
    object["metadata"] = json::object{{"name", name}, {"namespace", ns}};
    co_await put(hub, kube::resources::secrets, object);
  }

  /// What a bare-metal cluster has on its hub: hosts, an install, a deployment, and the objects they reference.
  Awaitable<> put_machinery(TestHub& hub, std::string cluster) {
    auto host = parsed(R"({"spec": {"online": true, "bmc": {"address": "a", "credentialsName": "bmc"}},
                           "status": {"provisioning": {"state": "provisioned"}}})");
    host["metadata"] = json::object{{"name", "host"},
                                    {"namespace", cluster},
                                    {"finalizers", json::array{"baremetalhost.metal3.io", "keep.me/this"}}};
    co_await put(hub, ocm::bare_metal_hosts, host);
    auto deployment = parsed(R"({"spec": {"clusterName": "x", "baseDomain": "b", "installed": true,
                                          "platform": {}, "pullSecretRef": {"name": "pull"}},
                                 "status": {"powerState": "Running"}})");
    deployment["metadata"] = json::object{
        {"name", cluster}, {"namespace", cluster}, {"finalizers", json::array{"hive.openshift.io/deprovision"}}};
    co_await put(hub, ocm::cluster_deployments, deployment);
    auto install = parsed(R"({"spec": {"imageSetRef": {"name": "i"}, "extraManifestsRefs": [{"name": "extra"}]},
                              "status": {"bootTime": "2029-01-01T00:00:00Z"}})");
    install["metadata"] = json::object{{"name", cluster}, {"namespace", cluster}};
    co_await put(hub, ocm::image_cluster_installs, install);
    auto image = parsed(R"({"spec": {"url": "http://image"}})");
    image["metadata"] = json::object{{"name", "image"}, {"namespace", cluster}};
    co_await put(hub, ocm::data_images, image);
    co_await put_secret(hub, cluster, "bmc");
    co_await put_secret(hub, cluster, "pull");
    co_await put_secret(hub, cluster, cluster + "-admin-password");
    co_await put_secret(hub, cluster, "unrelated");
    auto extra = parsed(R"({"data": {"a": "1"}, "binaryData": {"b": "AAE="}})");
    extra["metadata"] = json::object{{"name", "extra"}, {"namespace", cluster}};
    co_await put(hub, kube::resources::config_maps, extra);
  }

  /// The target has every cluster.
  static SourceHub::ConfirmArrival confirmed() {
    return [](std::string) -> Awaitable<Result<>> { co_return Result<>{}; };
  }

  /// All that `source` sends of these clusters.
  Awaitable<Bundle> collected(TestHub& hub, ClusterNames clusters) {
    Bundle all;
    BundleSink sink = [&](Bundle bundle) -> Awaitable<> {
      for (auto& cluster : bundle.clusters) all.clusters.push_back(std::move(cluster));
      co_return;
    };
    auto outcome = co_await hub.source->collect(migration_, clusters, sink);
    EXPECT_TRUE(outcome) << outcome.error();
    co_return all;
  }

  static std::vector<std::string> names_in(const ClusterResources& cluster) {
    std::vector<std::string> names;
    for (const auto& carried : cluster.objects)
      names.push_back(std::string{carried.object.at("kind").as_string()} + " " +
                      std::string{carried.object.at("metadata").at("name").as_string()});
    return names;
  }

  static std::vector<std::string> reasons_of(const Outcome& outcome) {
    std::vector<std::string> reasons;
    for (const auto& failure : outcome.failed)
      reasons.push_back(failure.cluster + ": " + std::string{to_string(failure.reason)});
    return reasons;
  }

  Object object(const TestHub& hub, const kube::Resource& resource, const Key& key) {
    auto found = hub.server.object(resource, key);
    if (!found) ADD_FAILURE() << "there is no " << resource.kind << " " << kube::to_string(key);
    return found.value_or(Object{});
  }
  Object cluster(const TestHub& hub, const std::string& name) { return object(hub, ocm::managed_clusters, {{}, name}); }
  static bool exists(const TestHub& hub, const kube::Resource& resource, const Key& key) {
    return hub.server.object(resource, key).has_value();
  }

  const MigrationRef migration_{"default", "move", "uid-1"};
  const MigrationRef other_{"default", "other", "uid-2"};
  const BootstrapIdentity identity_{"open-cluster-management-agent-addon", "move"};
  const obs::Secret kubeconfig_{"a kubeconfig"};

  async::VirtualLoop loop_;
  async::VirtualClock& clock_ = loop_.clock();
  async::Random random_{7};
  obs::Metrics metrics_;
  kube::Env env_{clock_, random_, metrics_, obs::Logger{}};
  std::unique_ptr<TestHub> hub1_;
  std::unique_ptr<TestHub> hub2_;
};

}  // namespace hubferry::hubagent
