#include "hubferry/sim/managed_service_accounts.hpp"

#include "sim/ocm/ocm_test.hpp"
#include "sim/ocm/request_pem.hpp"

namespace hubferry::sim {
namespace {

namespace resources = kube::resources;

class ServiceAccounts : public HubTest {
 protected:
  void SetUp() override {
    HubTest::SetUp();
    loop_.run(install_crds(global_.api(), env_));
    must(global_.api().create(resources::namespaces, {{"metadata", json::object{{"name", "hub1"}}}}));
    start();
  }
  void TearDown() override {
    stop();
    HubTest::TearDown();
  }
  void start() {
    const auto ca = network_.address_of(server_).ca_pem;
    std::map<std::string, ManagedServiceAccounts::Hub> hubs{{"hub1", {&api_, ca}}};
    accounts_.emplace(global_.api(), hubs, env_);
    running_.emplace(loop_.executor());
    running_->spawn(accounts_->run());
    settle();
  }
  void stop() {
    if (!running_) return;
    running_->stop();
    loop_.run(running_->join());
    running_.reset();
    accounts_.reset();
  }
  void create_account(const std::string& name, const std::string& validity = "24h0m0s") {
    must(global_.api().create(
        ocm::managed_service_accounts,
        {{"metadata", json::object{{"name", name}, {"namespace", "hub1"}}},
         {"spec", json::object{{"rotation", json::object{{"enabled", true}, {"validity", validity}}}}}}));
    settle();
  }
  std::string token(const std::string& name) const {
    const auto secret = global_.object(resources::secrets, {"hub1", name});
    return secret ? decode_base64(secret->string_at({"data", "token"})) : std::string{};
  }
  ErrorKind use(const std::string& text) {
    auto config = network_.address_of(server_);
    config.token = text;
    const auto api = network_.connect(config);
    const auto answer = loop_.run(api->get(resources::namespaces, {"", "default"}));
    return answer ? ErrorKind::bad_response : answer.error().kind;
  }

  Server global_{server_named("global"), env_};
  std::optional<ManagedServiceAccounts> accounts_;
  std::optional<async::TaskScope> running_;
};

TEST_F(ServiceAccounts, TheTokenOfTheHubsAccountIsStoredOnTheGlobalHub) {
  create_account("migration");
  EXPECT_TRUE(exists(resources::service_accounts, {"open-cluster-management-agent-addon", "migration"}));
  const auto secret = global_.object(resources::secrets, {"hub1", "migration"});
  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->label("authentication.open-cluster-management.io/is-managed-serviceaccount"), "true");
  EXPECT_EQ(decode_base64(secret->string_at({"data", "ca.crt"})), network_.address_of(server_).ca_pem);
  EXPECT_EQ(use(token("migration")), ErrorKind::forbidden) << "authenticated, but without permissions";
  const auto account = global_.object(ocm::managed_service_accounts, {"hub1", "migration"});
  EXPECT_TRUE(kube::is_condition_true(*account, "TokenReported"));
  EXPECT_EQ(account->string_at({"status", "tokenSecretRef", "name"}), "migration");
}

TEST_F(ServiceAccounts, ItsTokenIsRejectedAfterDeletion) {
  create_account("migration");
  const auto text = token("migration");
  must(global_.api().remove(ocm::managed_service_accounts, {"hub1", "migration"}));
  settle();
  EXPECT_FALSE(exists(resources::service_accounts, {"open-cluster-management-agent-addon", "migration"}));
  EXPECT_FALSE(global_.object(resources::secrets, {"hub1", "migration"}));
  EXPECT_EQ(use(text), ErrorKind::unauthorized);
}

TEST_F(ServiceAccounts, AnAccountThatWasDeletedWhileStoppedIsRemoved) {
  create_account("migration");
  stop();
  must(global_.api().remove(ocm::managed_service_accounts, {"hub1", "migration"}));
  start();
  EXPECT_FALSE(exists(resources::service_accounts, {"open-cluster-management-agent-addon", "migration"}));
}

TEST_F(ServiceAccounts, AForeignAccountStays) {
  must(api_.create(
      resources::service_accounts,
      {{"metadata", json::object{{"name", "other"}, {"namespace", "open-cluster-management-agent-addon"}}}}));
  loop_.run_for(1min);
  EXPECT_TRUE(exists(resources::service_accounts, {"open-cluster-management-agent-addon", "other"}));
}

TEST_F(ServiceAccounts, TheTokenIsRenewedBeforeItExpires) {
  create_account("migration", "1h");
  const auto first = token("migration");
  loop_.run_for(47min);
  EXPECT_EQ(token("migration"), first);
  loop_.run_for(2min);
  EXPECT_NE(token("migration"), first);
  EXPECT_EQ(use(token("migration")), ErrorKind::forbidden);
  loop_.run_for(24h);
  EXPECT_EQ(use(token("migration")), ErrorKind::forbidden);
}

TEST_F(ServiceAccounts, AnUnreachableHubGetsItsAccountLater) {
  server_.outage(true);
  create_account("migration");
  loop_.run_for(1min);
  EXPECT_EQ(token("migration"), "");
  server_.outage(false);
  loop_.run_for(1min);
  EXPECT_NE(token("migration"), "");
}

TEST_F(ServiceAccounts, ADeletedSecretOrAccountIsCreatedAgain) {
  create_account("migration");
  const auto first = token("migration");
  must(global_.api().remove(resources::secrets, {"hub1", "migration"}));
  settle();
  EXPECT_NE(token("migration"), "");
  must(api_.remove(resources::service_accounts, {"open-cluster-management-agent-addon", "migration"}));
  settle();
  EXPECT_EQ(use(token("migration")), ErrorKind::forbidden) << "a token of the new account";
  EXPECT_EQ(use(first), ErrorKind::unauthorized);
}

}  // namespace
}  // namespace hubferry::sim
