#pragma once

#include <gmock/gmock.h>

#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "hubferry/ocm/managed_cluster.hpp"
#include "hubferry/ocm/resources.hpp"
#include "hubferry/sim/crds.hpp"
#include "hubferry/sim/hub_controllers.hpp"
#include "hubferry/sim/network.hpp"
#include "sim/sim_test.hpp"

namespace hubferry::sim {

/// One hub on virtual time, with its controllers running.
class HubTest : public testing::Test {
 protected:
  static constexpr const char* url = "https://hub1.sim";

  explicit HubTest(HubOptions options = {}) : hub_options_(std::move(options)) {}

  void SetUp() override {
    network_.add(url, server_);
    guard_acceptance(server_);
    loop_.run(install_crds(api_, env_));
    auto prepare = [&]() -> Awaitable<> {
      auto installed = co_await install_hub(api_, hub_options_);
      CO_ASSERT_TRUE(installed);
      auto kubeconfig = co_await make_bootstrap_kubeconfig(api_, network_.address_of(server_), 8760h);
      CO_ASSERT_TRUE(kubeconfig);
      hub_options_.bootstrap_kubeconfig = *kubeconfig;
    };
    loop_.run(prepare());
    controllers_.emplace(api_, hub_options_, env_);
    scope_.spawn(controllers_->run());
    loop_.run(controllers_->wait_settled());
  }

  void TearDown() override {
    if (HasFailure()) std::cerr << "seed 7, timeline:\n" << server_.timeline();
    scope_.stop();
    loop_.run(scope_.join());
  }

  template <typename T>
  T must(Awaitable<kube::Result<T>> call) {
    auto result = loop_.run(std::move(call));
    if (!result) ADD_FAILURE() << result.error();
    return result ? *result : T{};
  }
  void settle() { loop_.run_for(1s); }

  kube::Object create_cluster(const std::string& name, json::object spec = {}, json::object metadata = {}) {
    metadata["name"] = name;
    json::object cluster{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
    auto made = must(api_.create(ocm::managed_clusters, std::move(cluster)));
    settle();
    return made;
  }
  kube::Object create_accepted(const std::string& name) { return create_cluster(name, {{"hubAcceptsClient", true}}); }
  void patch_cluster(const std::string& name, json::object patch, const std::string& subresource = {}) {
    must(api_.merge_patch(ocm::managed_clusters, {"", name}, std::move(patch), subresource));
    settle();
  }
  void accept(const std::string& name, bool accepted) {
    patch_cluster(name, {{"spec", json::object{{"hubAcceptsClient", accepted}}}});
  }

  kube::Object cluster(const std::string& name) const {
    return server_.object(ocm::managed_clusters, {"", name}).value_or(kube::Object{});
  }
  bool exists(const kube::Resource& resource, const Key& key) const {
    return server_.object(resource, key).has_value();
  }
  /// "True/Reason", or "" if there is none.
  std::string condition(const std::string& cluster_name, const char* type) const {
    const auto object = cluster(cluster_name);
    const auto* found = kube::find_condition(object, type);
    if (found == nullptr) return {};
    return std::string{kube::string_at(*found, {"status"})} + "/" + std::string{kube::string_at(*found, {"reason"})};
  }
  void set_condition(const std::string& name, const char* type, kube::ConditionStatus status, const char* reason) {
    kube::Mutation mutate = [=, now = clock_.wall_now()](json::object& object) {
      auto& fields = object["status"];
      if (!fields.is_object()) fields.emplace_object();
      return kube::set_condition(fields.get_object(), {type, status, reason, {}, 0}, now);
    };
    kube::EditOptions how;
    how.subresource = "status";
    must(kube::edit(api_, ocm::managed_clusters, Key{"", name}, mutate, how));
    settle();
  }
  std::vector<std::string> taints(const std::string& name) const {
    std::vector<std::string> keys;
    const auto object = cluster(name);
    if (const auto* list = object.find({"spec", "taints"}); list != nullptr)
      for (const auto& taint : list->as_array()) keys.emplace_back(taint.as_object().at("key").as_string());
    return keys;
  }
  void renew_lease(const std::string& name, async::WallTime time) {
    json::object patch{{"spec", json::object{{"renewTime", async::format_micro_time(time)}}}};
    must(api_.merge_patch(kube::resources::leases, {name, ocm::names::cluster_lease}, std::move(patch)));
  }
  std::size_t events(const std::string& ns, std::string_view reason) const {
    std::size_t count = 0;
    for (const auto& event : server_.objects(kube::resources::events, ns))
      if (event.string_at({"reason"}) == reason) ++count;
    return count;
  }
  /// The agent of an accepted cluster, with the permissions of its certificate.
  std::unique_ptr<kube::Api> agent_of(const std::string& name) {
    const std::string group = "system:open-cluster-management:" + name;
    return server_.api_as(
        {group + ":agent1", {group, "system:open-cluster-management:managed-clusters", "system:authenticated"}, {}});
  }

  async::VirtualLoop loop_;
  async::VirtualClock& clock_ = loop_.clock();
  async::Random random_{7};
  obs::Metrics metrics_;
  kube::Env env_{clock_, random_, metrics_, obs::Logger{}};
  Server server_{server_named("hub1"), env_};
  kube::Api& api_ = server_.api();
  Network network_;
  HubOptions hub_options_;
  std::optional<HubControllers> controllers_;
  async::TaskScope scope_{loop_.executor()};
};

/// A hub without automatic acceptance.
class ManualHubTest : public HubTest {
 protected:
  static HubOptions manual() {
    HubOptions options;
    options.auto_approval = false;
    return options;
  }
  ManualHubTest() : HubTest(manual()) {}
};

}  // namespace hubferry::sim
