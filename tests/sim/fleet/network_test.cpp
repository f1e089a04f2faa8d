#include "hubferry/sim/network.hpp"

#include "hubferry/sim/crds.hpp"
#include "sim/ocm/request_pem.hpp"
#include "sim/sim_test.hpp"

namespace hubferry::sim {
namespace {

namespace resources = kube::resources;

class NetworkTest : public SimTest {
 protected:
  NetworkTest() {
    network_.add("https://one.sim:6443", server_);
    network_.add("https://other.sim", other_);
  }
  kube::Result<kube::Object> try_get(const kube::ClientConfig& config) {
    const auto api = network_.connect(config);
    return loop_.run(api->get(resources::namespaces, {"", "default"}));
  }
  ErrorKind failure(const kube::ClientConfig& config) {
    const auto answer = try_get(config);
    EXPECT_FALSE(answer);
    return answer ? ErrorKind::bad_response : answer.error().kind;
  }

  Server other_{server_named("other"), env_};
  Network network_;
};

TEST_F(NetworkTest, AKubeconfigLeadsToItsServerByTokenOrCertificate) {
  for (const bool by_certificate : {false, true}) {
    const auto text = kube::to_kubeconfig(network_.config_for(server_, admin(), by_certificate));
    const auto config = kube::parse_kubeconfig(text, "test", std::nullopt);
    EXPECT_TRUE(try_get(config));
    const auto api = network_.connect(config);
    EXPECT_EQ(api->name(), server_.name());
  }
}

TEST_F(NetworkTest, AUserMayDoWhatTheServerAllows) {
  EXPECT_EQ(failure(network_.config_for(server_, {"bob", {}, {}})), ErrorKind::forbidden);
  EXPECT_EQ(failure(network_.config_for(server_, {"bob", {}, {}}, true)), ErrorKind::forbidden);
}

TEST_F(NetworkTest, AnUnknownServerIsUnreachable) {
  auto config = network_.config_for(server_, admin());
  config.server = "https://nobody.sim";
  EXPECT_EQ(failure(config), ErrorKind::unreachable);
  config = network_.config_for(server_, admin());
  config.ca_pem = network_.config_for(other_, admin()).ca_pem;
  EXPECT_EQ(failure(config), ErrorKind::unreachable);
  const auto api = network_.connect(config);
  EXPECT_FALSE(loop_.run(api->list(resources::namespaces, {}, kube::object_decoder())));
  EXPECT_FALSE(loop_.run(api->watch(resources::namespaces, {}, kube::object_decoder())));
  EXPECT_FALSE(loop_.run(api->get_path("/version")));
  config.ca_pem.clear();
  EXPECT_EQ(failure(config), ErrorKind::unreachable);
  config.insecure_skip_tls_verify = true;
  EXPECT_TRUE(try_get(config));
}

TEST_F(NetworkTest, AnotherServersCredentialIsRejected) {
  for (const bool by_certificate : {false, true}) {
    auto config = network_.config_for(other_, admin(), by_certificate);
    const auto here = network_.address_of(server_);
    config.server = here.server;
    config.ca_pem = here.ca_pem;
    EXPECT_EQ(failure(config), ErrorKind::unauthorized);
  }
  auto garbage = network_.address_of(server_);
  EXPECT_EQ(failure(garbage), ErrorKind::unauthorized) << "no credential at all";
  garbage.client_certificate_pem = "garbage";
  EXPECT_EQ(failure(garbage), ErrorKind::unauthorized);
}

TEST_F(NetworkTest, ACertificateNeedsItsOwnKey) {
  auto config = network_.config_for(server_, admin(), true);
  config.client_key_pem = network_.config_for(server_, admin(), true).client_key_pem;
  EXPECT_EQ(failure(config), ErrorKind::unauthorized);
}

TEST_F(NetworkTest, ACertificateIsValidUntilItExpires) {
  const auto config = network_.config_for(server_, admin(), true);
  const auto api = network_.connect(config);
  clock_.skew_wall(24h * 364);
  EXPECT_TRUE(loop_.run(api->get(resources::namespaces, {"", "default"})));
  clock_.skew_wall(24h * 366);
  const auto late = loop_.run(api->get(resources::namespaces, {"", "default"}));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::unauthorized);
}

TEST_F(NetworkTest, ATokenEndsWithItsServiceAccount) {
  auto test = [&]() -> Awaitable<> {
    co_await api_.create(resources::service_accounts,
                         {{"metadata", json::object{{"name", "sa"}, {"namespace", "default"}}}});
    kube::Request request;
    request.verb = kube::Verb::create;
    request.resource = resources::service_accounts;
    request.key = {"default", "sa"};
    request.subresource = "token";
    request.body = json::object{{"spec", json::object{{"expirationSeconds", 3600}}}};
    auto token = co_await api_.call(request);
    CO_ASSERT_TRUE(token);
    auto config = network_.address_of(server_);
    config.token = token->string_at({"status", "token"});
    const auto api = network_.connect(config);
    auto known = co_await api->get(resources::namespaces, {"", "default"});
    EXPECT_EQ(known.error().kind, ErrorKind::forbidden) << "authenticated, but without permissions";
    co_await api_.remove(resources::service_accounts, {"default", "sa"});
    auto unknown = co_await api->get(resources::namespaces, {"", "default"});
    EXPECT_EQ(unknown.error().kind, ErrorKind::unauthorized);
    auto watch = co_await api->watch(resources::namespaces, {}, kube::object_decoder());
    EXPECT_EQ(watch.error().kind, ErrorKind::unauthorized);
    auto list = co_await api->list(resources::namespaces, {}, kube::object_decoder());
    EXPECT_EQ(list.error().kind, ErrorKind::unauthorized);
    auto version = co_await api->get_path("/version");
    EXPECT_TRUE(version) << "without a credential";
  };
  loop_.run(test());
}

TEST_F(NetworkTest, AServerThatIsDownIsUnreachable) {
  const auto config = network_.config_for(server_, admin());
  server_.outage(true);
  EXPECT_EQ(failure(config), ErrorKind::unreachable);
  server_.outage(false);
  EXPECT_TRUE(try_get(config));
}

TEST_F(NetworkTest, AServerOutsideHasNoConfiguration) {
  Server stranger{server_named("stranger"), env_};
  EXPECT_THROW((void)network_.config_for(stranger, admin()), std::invalid_argument);
}

TEST_F(NetworkTest, AllCrdsAreServed) {
  EXPECT_GE(crds().size(), 19U);
  loop_.run(install_crds(api_, env_));
  loop_.run(install_crds(api_, env_));  // again: no change
  for (const auto& definition : crds()) {
    kube::Resource resource{std::string{kube::string_at(definition, {"spec", "group"})},
                            std::string{definition.at("spec").at("versions").at(0).at("name").as_string()},
                            std::string{kube::string_at(definition, {"spec", "names", "plural"})},
                            {},
                            true};
    const auto served = loop_.run(api_.serves(resource));
    EXPECT_TRUE(served && *served) << resource.display_name();
  }
}

TEST_F(NetworkTest, AHubConnectionTimeoutBelow180SecondsIsRefused) {
  loop_.run(install_crds(api_, env_));
  const kube::Resource klusterlets{"operator.open-cluster-management.io", "v1", "klusterlets", "Klusterlet", false};
  const auto with_timeout = [](int seconds) {
    return json::object{
        {"metadata", json::object{{"name", "k" + std::to_string(seconds)}}},
        {"spec", json::object{{"registrationConfiguration",
                               json::object{{"bootstrapKubeConfigs",
                                             json::object{{"type", "LocalSecrets"},
                                                          {"localSecretsConfig",
                                                           json::object{{"hubConnectionTimeoutSeconds", seconds},
                                                                        {"kubeConfigSecrets", json::array{}}}}}}}}}}};
  };
  const auto refused = loop_.run(api_.create(klusterlets, with_timeout(179)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  EXPECT_TRUE(loop_.run(api_.create(klusterlets, with_timeout(180))));
}

}  // namespace
}  // namespace hubferry::sim
