#include <gmock/gmock.h>

#include "hubferry/klusterlet/hub_secret.hpp"
#include "sim/apiserver/certificate_authority.hpp"

namespace hubferry::klusterlet::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

const WallTime now = std::chrono::sys_days{std::chrono::year{2030} / 1 / 1};
const Identity identity{"cluster1", "agent1"};

/// A hub's signer.
sim::CertificateAuthority& authority() {
  static sim::CertificateAuthority made{"test", now};
  return made;
}

std::string sign(const SigningRequest& request, std::chrono::seconds lifetime = 24h) {
  return *authority().sign(request.request, now, lifetime);
}

TEST(CertificatesTest, ARequestNamesClusterAndAgentAsHubsExpectIt) {
  const auto request = make_signing_request(identity);
  EXPECT_THAT(request.request, HasSubstr("BEGIN CERTIFICATE REQUEST"));
  EXPECT_THAT(request.key.reveal(), HasSubstr("PRIVATE KEY"));
  const auto chain = read_certificates(sign(request));
  ASSERT_EQ(chain.size(), 1U);
  EXPECT_EQ(chain[0].common_name, "system:open-cluster-management:cluster1:agent1");
  EXPECT_THAT(chain[0].organizations, ElementsAre("system:open-cluster-management:cluster1",
                                                  "system:open-cluster-management:managed-clusters"));
  EXPECT_EQ(chain[0].not_after, now + 24h);
}

TEST(CertificatesTest, EveryRequestHasAKeyOfItsOwn) {
  const auto one = make_signing_request(identity);
  const auto other = make_signing_request(identity);
  EXPECT_NE(one.key, other.key);
  EXPECT_TRUE(is_for_key(sign(one), one.public_key));
  EXPECT_FALSE(is_for_key(sign(one), other.public_key));
}

TEST(CertificatesTest, NamesMayBeAsLongAsNamespaces) {
  const Identity longest{std::string(63, 'c'), std::string(63, 'a')};
  const auto chain = read_certificates(sign(make_signing_request(longest)));
  ASSERT_EQ(chain.size(), 1U);
  EXPECT_EQ(chain[0].common_name, longest.common_name());
}

TEST(CertificatesTest, InvalidCertificatesAreNotParsed) {
  EXPECT_TRUE(read_certificates("").empty());
  EXPECT_TRUE(read_certificates("no PEM at all").empty());
  EXPECT_TRUE(read_certificates("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").empty());
  EXPECT_FALSE(is_for_key("garbage", "garbage"));
  EXPECT_FALSE(is_for_key("", ""));
  const auto good = sign(make_signing_request(identity));
  EXPECT_TRUE(read_certificates(good + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").empty())
      << "an incomplete chain is invalid";
}

TEST(CertificatesTest, AChainIsValidWhileAllOfItIs) {
  const auto short_one = sign(make_signing_request(identity), 1h);
  const auto long_one = sign(make_signing_request(identity), 48h);
  const auto validity = validity_of(read_certificates(short_one + long_one));
  ASSERT_TRUE(validity);
  EXPECT_EQ(validity->until, now + 1h);
  EXPECT_FALSE(validity_of({}));
}

TEST(CertificatesTest, ACertificateIsRotatedWhenAFifthToAQuarterOfItsLifetimeIsLeft) {
  const Validity validity{now, now + 100h};
  EXPECT_EQ(first_rotation_check(validity), now + 75h);
  EXPECT_FALSE(is_due_for_rotation(validity, now + 74h, most_remaining));
  EXPECT_TRUE(is_due_for_rotation(validity, now + 75h, most_remaining));
  EXPECT_FALSE(is_due_for_rotation(validity, now + 79h, least_remaining));
  EXPECT_TRUE(is_due_for_rotation(validity, now + 80h, least_remaining));
  EXPECT_TRUE(is_due_for_rotation(validity, now + 200h, least_remaining));
}

class HubSecretTest : public testing::Test {
 protected:
  HubSecretTest() {
    bootstrap_.server = "https://hub1.example:6443";
    bootstrap_.cluster_name = "hub1";
    bootstrap_.ca_pem = authority().certificate_pem();
    bootstrap_.token = "secret-token";
    secret_ = secret_for(identity);
  }

  HubSecret secret_for(const Identity& who, std::chrono::seconds lifetime = 24h) const {
    const auto request = make_signing_request(who);
    return {.kubeconfig = hub_kubeconfig(bootstrap_),
            .certificate = sign(request, lifetime),
            .key = request.key,
            .cluster_name = who.cluster,
            .agent_name = who.agent};
  }

  std::string why_not(const kube::ClientConfig& bootstrap) const {
    return why_unusable(secret_, client_config(secret_), bootstrap, identity).value_or("");
  }

  kube::ClientConfig bootstrap_;
  HubSecret secret_;
};

TEST_F(HubSecretTest, TheKubeconfigRefersToItsNeighboursAndHoldsNoBootstrapCredential) {
  EXPECT_THAT(secret_.kubeconfig, testing::Not(HasSubstr("secret-token")));
  EXPECT_THAT(secret_.kubeconfig, HasSubstr("\"client-certificate\":\"tls.crt\""));
  const auto config = client_config(secret_);
  EXPECT_EQ(config.server, bootstrap_.server);
  EXPECT_EQ(config.ca_pem, bootstrap_.ca_pem);
  EXPECT_EQ(config.cluster_name, "hub1");
  EXPECT_EQ(config.client_certificate_pem, secret_.certificate);
  EXPECT_EQ(config.client_key_pem, secret_.key.reveal());
  EXPECT_TRUE(config.token.empty());
  const auto quick = client_config(secret_, bootstrap_);
  EXPECT_TRUE(is_same_hub(quick, config));
  EXPECT_EQ(quick.client_certificate_pem, config.client_certificate_pem);
  EXPECT_TRUE(quick.token.empty());
}

// Scenario 34.
TEST_F(HubSecretTest, ASecretIsValidOnlyForTheHubAndTheAgentItWasIssuedFor) {
  EXPECT_EQ(why_not(bootstrap_), "");
  auto other = bootstrap_;
  other.server = "https://hub2.example:6443";
  EXPECT_THAT(why_not(other), HasSubstr("another hub"));
  other = bootstrap_;
  other.cluster_name = "hub1-rebuilt";
  EXPECT_THAT(why_not(other), HasSubstr("another hub")) << "how an administrator forces a new registration";
  other = bootstrap_;
  other.ca_pem.clear();
  EXPECT_EQ(why_not(other), "") << "a rotated authority is not another hub";
  EXPECT_FALSE(is_reached_alike(other, bootstrap_));
  other = bootstrap_;
  other.token = "renewed";
  EXPECT_EQ(why_not(other), "") << "the bootstrap credential does not matter";

  secret_ = secret_for({"cluster2", "agent1"});
  EXPECT_THAT(why_not(bootstrap_), HasSubstr("another agent"));
  secret_ = secret_for({"cluster1", "agent2"});
  EXPECT_THAT(why_not(bootstrap_), HasSubstr("another agent"));
  secret_.agent_name = "agent1";
  EXPECT_THAT(why_not(bootstrap_), HasSubstr("its certificate is not for "));
}

// Scenario 34.
TEST_F(HubSecretTest, AnIncompleteSecretIsUnusable) {
  const auto config = client_config(secret_);
  auto incomplete = secret_;
  incomplete.key = obs::Secret{};
  EXPECT_THAT(why_unusable(incomplete, config, bootstrap_, identity).value_or(""), HasSubstr("no private key"));
  EXPECT_THROW(client_config(incomplete), kube::ConfigError);
  incomplete = secret_;
  incomplete.certificate = "garbage";
  EXPECT_THAT(why_unusable(incomplete, config, bootstrap_, identity).value_or(""), HasSubstr("no valid certificate"));
  incomplete = secret_;
  incomplete.kubeconfig = "{";
  EXPECT_THROW(client_config(incomplete), kube::ConfigError);
}

TEST_F(HubSecretTest, AKeyThatDoesNotMatchItsCertificateIsUnusable) {
  secret_.key = make_signing_request(identity).key;
  EXPECT_THAT(why_not(bootstrap_), HasSubstr("does not match its certificate"));
  EXPECT_FALSE(is_key_of(secret_.certificate, obs::Secret{"garbage"}));
  EXPECT_FALSE(is_key_of("garbage", secret_.key));
}

TEST_F(HubSecretTest, AKubeconfigThatRefersToOtherFilesIsRejected) {
  auto curious = secret_;
  const auto at = curious.kubeconfig.find("tls.crt");
  curious.kubeconfig.replace(at, 7, "/etc/passwd");
  EXPECT_THROW(client_config(curious), kube::ConfigError);
}

}  // namespace
}  // namespace hubferry::klusterlet::test
