#include <gtest/gtest.h>

#include "hubferry/klusterlet/certificates.hpp"
#include "sim/apiserver/certificate_authority.hpp"
#include "sim/apiserver/key_pool.hpp"

namespace hubferry::sim {
namespace {

// Worlds make thousands of certificates, and parsing one takes longer than signing it.
TEST(CertificateAuthority, WhatItRemembersOfACertificateIsWhatAParserReadsInIt) {
  const auto keys = std::make_shared<KeyPool>();
  CertificateAuthority authority{"hub1", async::WallTime{std::chrono::hours{24 * 365 * 60}}};
  authority.use_keys(keys);
  const klusterlet::Identity identity{"cluster1", "agent1"};
  const async::WallTime now{std::chrono::hours{24 * 365 * 60 + 7} + std::chrono::milliseconds{1500}};

  const auto issued = authority.issue_client(identity.common_name(), identity.organizations(), now);
  const auto signed_one = authority.sign(keys->make_request(identity).request, now, std::chrono::hours{1});
  ASSERT_TRUE(signed_one);
  for (const auto& pem : {issued.certificate, *signed_one}) {
    const auto remembered = keys->read(pem);
    const auto parsed = klusterlet::fresh_keys().read(pem);
    ASSERT_EQ(remembered.certificates.size(), 1U);
    ASSERT_EQ(parsed.certificates.size(), 1U);
    const auto& left = remembered.certificates.front();
    const auto& right = parsed.certificates.front();
    EXPECT_EQ(left.common_name, identity.common_name());
    EXPECT_EQ(left.common_name, right.common_name);
    EXPECT_EQ(left.organizations, right.organizations);
    EXPECT_EQ(left.not_before, right.not_before);
    EXPECT_EQ(left.not_after, right.not_after);
    EXPECT_EQ(remembered.public_key, parsed.public_key);
  }
}

}  // namespace
}  // namespace hubferry::sim
