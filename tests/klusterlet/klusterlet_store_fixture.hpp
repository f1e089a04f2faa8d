#pragma once

#include <boost/json/parse.hpp>

#include "hubferry/klusterlet/klusterlet_store.hpp"
#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/sim/crds.hpp"
#include "klusterlet_test.hpp"

namespace hubferry::klusterlet::test {

/// The agent's own cluster, with a Klusterlet.
class KlusterletStoreTest : public KlusterletTest {
 protected:
  KlusterletStoreTest() {
    loop_.run(set_up());
    restart_store();
  }

  ~KlusterletStoreTest() override {
    stop_agents();
    store_scope_->stop();
    loop_.run(store_scope_->join());
    stop_all();
  }

  /// As after a restart of the process: nothing is remembered.
  void restart_store() {
    if (store_scope_) {
      store_scope_->stop();
      loop_.run(store_scope_->join());
    }
    store_scope_.emplace(loop_.executor());
    resource_store_.emplace(own_.api(), KlusterletStoreOptions{}, env_);
    store_scope_->spawn(resource_store_->run());
    loop_.run_for(1s);
  }

  Awaitable<> set_up() {
    co_await sim::install_crds(own_.api(), env_);
    boost::json::object ns{{"metadata", boost::json::object{{"name", names::agent_namespace}}}};
    co_await hub1_.must(own_.api().create(kube::resources::namespaces, std::move(ns)));
    co_await put_secret("hub1", hub1_.bootstrap());
    co_await put_secret("hub2", hub2_.bootstrap());
    auto klusterlet = boost::json::parse(R"({"metadata": {"name": "klusterlet"}, "spec": {"clusterName": "cluster1",
      "registrationConfiguration": {"featureGates": [{"feature": "MultipleHubs", "mode": "Enable"}],
      "bootstrapKubeConfigs": {"type": "LocalSecrets", "localSecretsConfig": {"hubConnectionTimeoutSeconds": 300,
      "kubeConfigSecrets": [{"name": "hub1"}, {"name": "hub2"}]}}}}})");
    co_await hub1_.must(own_.api().create(ocm::klusterlets, klusterlet.as_object()));
  }

  Awaitable<> put_secret(std::string name, BootstrapConfig bootstrap) {
    boost::json::object secret{
        {"metadata", boost::json::object{{"name", name}, {"namespace", names::agent_namespace}}},
        {"data", boost::json::object{{"kubeconfig", kube::encode_base64(bootstrap.kubeconfig.reveal())}}}};
    if (own_.object(kube::resources::secrets, {names::agent_namespace, name})) {
      kube::Key key{names::agent_namespace, name};
      co_await hub1_.must(own_.api().merge_patch(kube::resources::secrets, key, std::move(secret)));
    } else {
      co_await hub1_.must(own_.api().create(kube::resources::secrets, std::move(secret)));
    }
  }

  Awaitable<> patch_registration(std::string text) {
    boost::json::object patch{{"spec", boost::json::object{{"registrationConfiguration", boost::json::parse(text)}}}};
    co_await hub1_.must(own_.api().merge_patch(ocm::klusterlets, {{}, "klusterlet"}, std::move(patch)));
  }

  Awaitable<> remove_secret(std::string name) {
    kube::Key key{names::agent_namespace, std::move(name)};
    co_await hub1_.must(own_.api().remove(kube::resources::secrets, key));
  }

  /// Replaces the kubeconfig of a Secret by any text.
  Awaitable<> put_text(std::string name, std::string text) {
    BootstrapConfig config{name, obs::Secret{std::move(text)}, std::nullopt};
    co_await put_secret(std::move(name), std::move(config));
  }

  Awaitable<> patch_spec(std::string text) {
    boost::json::object patch{{"spec", boost::json::parse(text)}};
    co_await hub1_.must(own_.api().merge_patch(ocm::klusterlets, {{}, "klusterlet"}, std::move(patch)));
  }

  std::string text_of_secret(const std::string& name) {
    const auto secret = own_.object(kube::resources::secrets, {names::agent_namespace, name});
    return secret ? kube::decode_base64(secret->string_at({"data", "kubeconfig"})).value_or("") : "";
  }

  Agent& start_on_klusterlet() {
    agents_.push_back(std::make_unique<Agent>(options(), *resource_store_, connect(), env_));
    agent_scope_.emplace(loop_.executor());
    agent_scope_->spawn(agents_.back()->run());
    return *agents_.back();
  }

  std::string condition_of_klusterlet(const char* type, const char* field = "status") {
    const auto klusterlet = own_.object(ocm::klusterlets, {{}, "klusterlet"});
    const auto* condition = kube::find_condition(*klusterlet, type);
    return condition == nullptr ? std::string{} : std::string{kube::string_at(*condition, {field})};
  }

  sim::Server own_{sim::Options{}, env_};
  std::optional<KlusterletStore> resource_store_;
  std::optional<async::TaskScope> store_scope_;
};

}  // namespace hubferry::klusterlet::test
