#include "hubferry/kube/base64.hpp"
#include "hubferry/kube/conditions.hpp"
#include "hubferry/kube/edit.hpp"
#include "klusterlet/enrolment.hpp"
#include "klusterlet_test.hpp"
#include "sim/apiserver/certificate_authority.hpp"

namespace hubferry::klusterlet::test {
namespace {

using testing::HasSubstr;
namespace json = boost::json;
using kube::resources::certificate_signing_requests;

class CertificateTest : public KlusterletTest {
 protected:
  Awaitable<> put_certificate(std::string name, std::string certificate) {
    const kube::Mutation mutate = [&](json::object& request) {
      auto& status = request["status"];
      if (!status.is_object()) status = json::object{};
      status.get_object()["certificate"] = kube::encode_base64(certificate);
      return true;
    };
    kube::EditOptions how;
    how.subresource = "status";
    co_await hub1_.must(
        kube::edit(hub1_.server.api(), certificate_signing_requests, {{}, std::move(name)}, mutate, how));
  }
};

// Scenario 29.
TEST_F(CertificateTest, TheRequestIsAsHubsExpectItAndItsAnswerIsStored) {
  auto with_lifetime = options();
  with_lifetime.certificate_lifetime = 3600s;
  auto& agent = start(with_lifetime);
  ASSERT_TRUE(until_available(hub1_));
  const auto requests = hub1_.requests();
  ASSERT_EQ(requests.size(), 1U);
  const auto& request = requests[0];
  EXPECT_THAT(std::string{request.name()}, testing::StartsWith("cluster1-"));
  EXPECT_EQ(request.label(names::cluster_name_label), "cluster1");
  EXPECT_EQ(request.string_at({"spec", "signerName"}), "kubernetes.io/kube-apiserver-client");
  EXPECT_EQ(*request.find({"spec", "usages"}), (json::array{"digital signature", "key encipherment", "client auth"}));
  EXPECT_EQ(request.find({"spec", "expirationSeconds"})->as_int64(), 3600);
  EXPECT_EQ(request.string_at({"spec", "username"}), "bootstrap");
  const auto chain = read_certificates(store_.secret()->certificate);
  ASSERT_EQ(chain.size(), 1U);
  EXPECT_EQ(chain[0].common_name, "system:open-cluster-management:cluster1:agent");
  EXPECT_EQ(agent.view().certificate_expires, chain[0].not_after);
  EXPECT_EQ(hub1_.condition("cluster1", names::certificate_rotated), "True");
  EXPECT_EQ(store_.secret()->cluster_name, "cluster1");
}

// Scenario 30.
TEST_F(CertificateTest, AValidSecretNeedsNoRequestAndAnExpiredOneDoes) {
  auto short_lived = options();
  short_lived.certificate_lifetime = 3600s;
  start(short_lived);
  ASSERT_TRUE(until_available(hub1_));
  stop_agents();
  start(short_lived);
  loop_.run_for(1min);
  EXPECT_EQ(hub1_.requests().size(), 1U);
  stop_agents();
  loop_.run_for(59min + 3s);
  start(short_lived);
  ASSERT_TRUE(until([&] { return hub1_.requests().size() == 2; }, 10s));
}

// Scenario 30.
TEST_F(CertificateTest, ASecretOfAnotherAgentNeedsANewRequest) {
  start();
  ASSERT_TRUE(until_available(hub1_));
  stop_agents();
  auto other = options();
  other.agent_name = "another";
  start(other);
  ASSERT_TRUE(until([&] { return hub1_.requests().size() == 2; }, 10s));
  ASSERT_TRUE(until([&] { return store_.secret()->agent_name == "another"; }, 10s));
}

// Scenario 31.
TEST_F(CertificateTest, ACertificateIsRotatedBeforeItExpires) {
  auto short_lived = options();
  short_lived.certificate_lifetime = 3600s;
  auto& agent = start(short_lived);
  ASSERT_TRUE(until_available(hub1_));
  const auto first = *agent.view().certificate_expires;
  loop_.run_for(40min);
  EXPECT_EQ(hub1_.requests().size(), 1U);
  loop_.run_for(12min);
  ASSERT_EQ(hub1_.requests().size(), 2U);
  EXPECT_EQ(hub1_.requests()[0].string_at({"spec", "username"}).substr(0, 6) == "system" ||
                hub1_.requests()[1].string_at({"spec", "username"}).substr(0, 6) == "system",
            true)
      << "it is requested with the old certificate";
  EXPECT_GT(*agent.view().certificate_expires, first);
  EXPECT_EQ(agent.view().phase, "Joined");
  // Not for so long that ten requests accumulate: there is no garbage collection here.
  loop_.run_for(3h);
  EXPECT_EQ(agent.view().phase, "Joined");
  for (const auto* reason : {"denied", "connection_lost", "certificate_expired", "failed"})
    EXPECT_EQ(switches(reason), 0) << reason;
  EXPECT_EQ(hub2_.requests().size(), 0U);
}

TEST_F(CertificateTest, AnAgentWhoseCertificateExpiresRegistersAgain) {
  auto short_lived = options();
  short_lived.certificate_lifetime = 3600s;
  start(short_lived);
  ASSERT_TRUE(until_available(hub1_));
  hub1_.approves = false;
  loop_.run_for(61min);
  EXPECT_EQ(switches("certificate_expired"), 1);
  loop_.run(hub1_.approve_all());
  loop_.run_for(1min);
  EXPECT_EQ(client_config(*store_.secret()).server, hub1_.url()) << "the hub did not fail: it stays";
}

// Scenario 32.
TEST_F(CertificateTest, AHubWithTenRequestsOfTheClusterGetsNoMore) {
  auto fill = [&]() -> Awaitable<> {
    for (int number = 0; number < 10; ++number) {
      const auto made = make_signing_request({"cluster1", "agent"});
      json::object request{
          {"metadata", json::object{{"name", "cluster1-old" + std::to_string(number)},
                                    {"labels", json::object{{names::cluster_name_label, "cluster1"}}}}},
          {"spec", json::object{{"request", kube::encode_base64(made.request)}, {"signerName", "example.com/none"}}}};
      co_await hub1_.must(hub1_.server.api().create(certificate_signing_requests, std::move(request)));
    }
  };
  hub1_.approves = false;
  loop_.run(fill());
  auto patient = options();
  patient.connection_timeout = 1h;
  start(patient);
  loop_.run_for(20min);
  EXPECT_EQ(hub1_.requests().size(), 10U);
  // Kubernetes garbage-collects old ones.
  loop_.run(hub1_.must(hub1_.server.api().remove(certificate_signing_requests, {{}, "cluster1-old0"})));
  hub1_.approves = true;
  EXPECT_TRUE(until_available(hub1_, 10min));
}

// Scenario 33.
TEST_F(CertificateTest, ACertificateForAnotherKeyIsRejected) {
  hub1_.approves = false;
  start();
  ASSERT_TRUE(until([&] { return hub1_.requests().size() == 1; }, 10s));
  sim::CertificateAuthority authority{"other", loop_.clock().wall_now()};
  const auto foreign = make_signing_request({"cluster1", "agent"});
  const auto certificate = *authority.sign(foreign.request, loop_.clock().wall_now(), 1h);
  loop_.run(put_certificate(std::string{hub1_.requests()[0].name()}, certificate));
  ASSERT_TRUE(until([&] { return hub1_.requests().size() == 2; }, 30s));
  EXPECT_FALSE(store_.secret());
  loop_.run(hub1_.approve_all());
  EXPECT_TRUE(until_available(hub1_));
}

TEST_F(CertificateTest, ADeletedRequestIsCreatedAgain) {
  hub1_.approves = false;
  start();
  ASSERT_TRUE(until([&] { return hub1_.requests().size() == 1; }, 10s));
  const auto key = hub1_.requests()[0].key();
  loop_.run(hub1_.must(hub1_.server.api().remove(certificate_signing_requests, key)));
  ASSERT_TRUE(until([&] { return hub1_.requests().size() == 1 && hub1_.requests()[0].key() != key; }, 30s));
}

TEST(RequestAnswerTest, TheStateOfARequestFollowsFromItsStatus) {
  const auto made = make_signing_request({"c", "a"});
  const auto with_status = [](json::object status) {
    return kube::Object{json::object{{"metadata", json::object{{"name", "r"}}}, {"status", std::move(status)}}};
  };
  const auto condition = [](const char* type) {
    return json::object{{"conditions", json::array{json::object{{"type", type}, {"status", "True"}}}}};
  };
  EXPECT_EQ(answer_of(nullptr, made.public_key).state, RequestState::lost);
  const auto plain = with_status({});
  EXPECT_EQ(answer_of(&plain, made.public_key).state, RequestState::waiting);
  const auto approved = with_status(condition("Approved"));
  EXPECT_EQ(answer_of(&approved, made.public_key).state, RequestState::waiting);
  const auto denied = with_status(condition("Denied"));
  EXPECT_EQ(answer_of(&denied, made.public_key).state, RequestState::waiting) << "until it is deleted";
  const auto failed = with_status(condition("Failed"));
  EXPECT_EQ(answer_of(&failed, made.public_key).state, RequestState::lost);
  const auto garbage = with_status({{"certificate", "AAAA"}});
  EXPECT_EQ(answer_of(&garbage, made.public_key).state, RequestState::mismatch);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
