#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "sim/sim_test.hpp"

namespace hubferry::sim {
namespace {

class RbacTest : public SimTest {
 protected:
  Awaitable<> grant(std::string user, json::array verbs, json::array resources, json::array names = {}) {
    json::object rule{{"apiGroups", json::array{"example.com", ""}},
                      {"resources", std::move(resources)},
                      {"verbs", std::move(verbs)}};
    if (!names.empty()) rule["resourceNames"] = std::move(names);
    json::object role{{"metadata", json::object{{"name", user}}}, {"rules", json::array{std::move(rule)}}};
    json::object binding{
        {"metadata", json::object{{"name", user}}},
        {"roleRef", json::object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", user}}},
        {"subjects", json::array{json::object{{"kind", "User"}, {"name", user}}}}};
    auto made_role = co_await api_.create(kube::resources::cluster_roles, role);
    auto made_binding = co_await api_.create(kube::resources::cluster_role_bindings, binding);
    EXPECT_TRUE(made_role && made_binding);
  }
};

TEST_F(RbacTest, AForbiddenCallNamesUserVerbAndResource) {
  auto bob = server_.api_as({"bob", {"system:authenticated"}, {}});
  auto test = [&]() -> Awaitable<> {
    auto refused = co_await bob->get(widgets, {"default", "a"});
    CO_ASSERT_TRUE(!refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::forbidden);
    EXPECT_EQ(refused.error().message,
              "widgets.example.com \"a\" is forbidden: User \"bob\" cannot get resource \"widgets\" in API group "
              "\"example.com\" in the namespace \"default\"");
    co_await grant("bob", {"get", "update"}, {"widgets", "widgets/status"}, {"a"});
    co_await api_.create(widgets, widget("a"));
    co_await api_.create(widgets, widget("b"));
    auto named = co_await bob->get(widgets, {"default", "a"});
    EXPECT_TRUE(named);
    auto other = co_await bob->get(widgets, {"default", "b"});
    EXPECT_FALSE(other);
    auto listed = co_await bob->list(widgets, {}, kube::object_decoder());
    EXPECT_FALSE(listed);
    auto may = co_await bob->may("update", widgets, {"default", "a"}, "status");
    EXPECT_TRUE(may && *may);
    auto may_not = co_await bob->may("delete", widgets, {"default", "a"});
    EXPECT_TRUE(may_not && !*may_not);
    co_await api_.remove(kube::resources::cluster_role_bindings, {"", "bob"});
    auto revoked = co_await bob->get(widgets, {"default", "a"});
    EXPECT_FALSE(revoked);
  };
  loop_.run(test());
}

TEST_F(RbacTest, AServiceAccountTokenIsValidUntilItExpires) {
  auto test = [&]() -> Awaitable<> {
    json::object account{{"metadata", json::object{{"name", "sa"}, {"namespace", "default"}}}};
    co_await api_.create(kube::resources::service_accounts, account);
    kube::Request request;
    request.verb = kube::Verb::create;
    request.resource = kube::resources::service_accounts;
    request.key = {"default", "sa"};
    request.subresource = "token";
    request.body = json::object{{"spec", json::object{{"expirationSeconds", 600}}}};
    auto token = co_await api_.call(request);
    CO_ASSERT_TRUE(token);
    EXPECT_EQ(token->string_at({"status", "expirationTimestamp"}), "2030-01-01T00:10:00Z");
    json::object review{{"spec", json::object{{"token", token->string_at({"status", "token"})}}}};
    auto known = co_await api_.create(kube::resources::token_reviews, review);
    CO_ASSERT_TRUE(known);
    EXPECT_EQ(known->string_at({"status", "user", "username"}), "system:serviceaccount:default:sa");
    co_await clock_.sleep_for(10min);
    auto expired = co_await api_.create(kube::resources::token_reviews, review);
    CO_ASSERT_TRUE(expired);
    EXPECT_FALSE(expired->find({"status", "authenticated"})->as_bool());
  };
  loop_.run(test());
}

TEST_F(RbacTest, ATokensLifetimeHasBounds) {
  auto test = [&]() -> Awaitable<> {
    json::object account{{"metadata", json::object{{"name", "sa"}, {"namespace", "default"}}}};
    co_await api_.create(kube::resources::service_accounts, account);
    const std::vector<json::value> lifetimes{-1, 599, (1LL << 32) + 1, INT64_MAX, UINT64_MAX};
    for (const auto& seconds : lifetimes) {
      kube::Request request;
      request.verb = kube::Verb::create;
      request.resource = kube::resources::service_accounts;
      request.key = {"default", "sa"};
      request.subresource = "token";
      request.body = json::object{{"spec", json::object{{"expirationSeconds", seconds}}}};
      auto token = co_await api_.call(request);
      CO_ASSERT_TRUE(!token);
      EXPECT_EQ(token.error().kind, ErrorKind::invalid);
    }
  };
  loop_.run(test());
}

std::string certificate_request() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509_REQ* request = X509_REQ_new();
  X509_NAME* name = X509_REQ_get_subject_name(request);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("agent"), -1, -1, 0);
  X509_REQ_set_pubkey(request, key);
  X509_REQ_sign(request, key, EVP_sha256());
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509_REQ(bio, request);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<std::size_t>(size));
  std::string encoded(4 * ((pem.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                     reinterpret_cast<const unsigned char*>(pem.data()), static_cast<int>(pem.size()));
  encoded.resize(static_cast<std::size_t>(length));
  BIO_free(bio);
  X509_REQ_free(request);
  EVP_PKEY_free(key);
  return encoded;
}

TEST_F(RbacTest, AnApprovedCertificateRequestIsSigned) {
  auto test = [&]() -> Awaitable<> {
    const auto& requests = kube::resources::certificate_signing_requests;
    json::object body{{"metadata", json::object{{"name", "r"}}},
                      {"spec", json::object{{"request", certificate_request()},
                                            {"signerName", "kubernetes.io/kube-apiserver-client"},
                                            {"usages", json::array{"client auth"}}}}};
    auto made = co_await api_.create(requests, body);
    CO_ASSERT_TRUE(made);
    EXPECT_EQ(made->string_at({"spec", "username"}), "kubernetes-admin");
    json::object approved = made->json();
    approved["status"] = json::object{
        {"conditions", json::array{json::object{{"type", "Approved"}, {"status", "True"}, {"reason", "test"}}}}};
    auto answered = co_await api_.update(requests, approved, "approval");
    CO_ASSERT_TRUE(answered);
    co_await clock_.sleep_for(1s);
    auto signed_request = server_.object(requests, {"", "r"});
    CO_ASSERT_TRUE(signed_request);
    EXPECT_TRUE(signed_request->string_at({"status", "certificate"}).starts_with("LS0tLS1CRUdJTi"));
  };
  loop_.run(test());
}

}  // namespace
}  // namespace hubferry::sim
