#include "hubferry/klusterlet/certificates.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "hubferry/kube/openssl.hpp"

namespace hubferry::klusterlet {

namespace {

using kube::openssl::Bio;
using kube::openssl::Certificate;
using kube::openssl::Key;
using kube::openssl::Request;

constexpr const char* subject_prefix = "system:open-cluster-management:";

void must(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string{"cannot create a certificate request: "} + what);
}

/// A private key must not remain in freed memory.
std::string take_secret(BIO* bio) {
  char* data = nullptr;
  const auto size = static_cast<std::size_t>(BIO_get_mem_data(bio, &data));
  std::string text{data, size};
  OPENSSL_cleanse(data, size);
  return text;
}

void add_name(X509_NAME* name, int field, const std::string& value) {
  // As UTF8String: with MBSTRING_UTF8 OpenSSL enforces X.520's limit of 64 characters, which Kubernetes ignores and
  // longer cluster names exceed.
  must(X509_NAME_add_entry_by_NID(name, field, V_ASN1_UTF8STRING, reinterpret_cast<const unsigned char*>(value.data()),
                                  static_cast<int>(value.size()), -1, 0) == 1,
       "a name does not fit into its subject");
}

std::optional<WallTime> time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  const std::chrono::year_month_day day{std::chrono::year{parts.tm_year + 1900},
                                        std::chrono::month{static_cast<unsigned>(parts.tm_mon + 1)},
                                        std::chrono::day{static_cast<unsigned>(parts.tm_mday)}};
  // Clamp what nanoseconds cannot represent.
  if (day.year() > std::chrono::year{2261}) return WallTime::max();
  if (day.year() < std::chrono::year{1678}) return WallTime::min();
  return std::chrono::sys_days{day} + std::chrono::hours{parts.tm_hour} + std::chrono::minutes{parts.tm_min} +
         std::chrono::seconds{parts.tm_sec};
}

std::optional<CertificateInfo> info_of(X509* certificate) {
  auto* subject = X509_get_subject_name(certificate);
  auto common_names = kube::openssl::entries_of(subject, NID_commonName);
  const auto not_before = time_of(X509_get0_notBefore(certificate));
  const auto not_after = time_of(X509_get0_notAfter(certificate));
  if (!not_before || !not_after) return std::nullopt;
  return CertificateInfo{.common_name = common_names.empty() ? std::string{} : std::move(common_names.front()),
                         .organizations = kube::openssl::entries_of(subject, NID_organizationName),
                         .not_before = *not_before,
                         .not_after = *not_after};
}

}  // namespace

std::string Identity::common_name() const {
  return subject_prefix + cluster + ":" + agent;
}

std::vector<std::string> Identity::organizations() const {
  return {subject_prefix + cluster, std::string{subject_prefix} + "managed-clusters"};
}

SigningRequest make_signing_request(const Identity& identity) {
  const Key key{EVP_EC_gen("P-256")};
  must(key != nullptr, "key generation failed");
  const Bio text = kube::openssl::make_bio();
  must(PEM_write_bio_PrivateKey_traditional(text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
       "the key cannot be written");
  auto bits = kube::openssl::public_bits(key.get());
  auto request = sign_request(identity, key.get(), bits);
  return {obs::Secret{take_secret(text.get())}, std::move(request), std::move(bits)};
}

std::string sign_request(const Identity& identity, evp_pkey_st* key, const std::string& public_key) {
  const Request request{X509_REQ_new()};
  must(request != nullptr && X509_REQ_set_version(request.get(), 0) == 1, "out of memory");
  auto* subject = X509_REQ_get_subject_name(request.get());
  for (const auto& organization : identity.organizations()) add_name(subject, NID_organizationName, organization);
  add_name(subject, NID_commonName, identity.common_name());
  must(!public_key.empty() && kube::openssl::put_public_bits(X509_REQ_get_X509_PUBKEY(request.get()), public_key),
       "the key cannot be set");
  must(X509_REQ_sign(request.get(), key, EVP_sha256()) > 0, "it cannot be signed");
  const Bio text = kube::openssl::make_bio();
  must(PEM_write_bio_X509_REQ(text.get(), request.get()) == 1, "it cannot be written");
  return kube::openssl::content_of(text);
}

std::vector<CertificateInfo> read_certificates(const std::string& pem) {
  std::vector<CertificateInfo> chain;
  const auto bio = kube::openssl::reader_of(pem);
  while (true) {
    const Certificate certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
    if (certificate == nullptr) {
      const auto error = ERR_peek_last_error();
      ERR_clear_error();
      const bool at_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
      return at_end ? chain : std::vector<CertificateInfo>{};
    }
    auto info = info_of(certificate.get());
    if (!info) return {};
    chain.push_back(std::move(*info));
  }
}

std::string public_key_of(const std::string& certificate_pem) {
  const auto text = kube::openssl::reader_of(certificate_pem);
  const Certificate certificate{PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)};
  ERR_clear_error();
  return certificate != nullptr ? kube::openssl::public_bits(X509_get_X509_PUBKEY(certificate.get())) : std::string{};
}

bool is_for_key(const std::string& certificate_pem, const std::string& public_key) {
  const auto bits = public_key_of(certificate_pem);
  return !bits.empty() && bits == public_key;
}

bool is_key_of(const std::string& certificate_pem, const obs::Secret& key) {
  const auto certificate_text = kube::openssl::reader_of(certificate_pem);
  const Certificate certificate{PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr)};
  const auto key_text = kube::openssl::reader_of(key.reveal());
  const Key parsed{PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr)};
  const bool fits =
      certificate != nullptr && parsed != nullptr && X509_check_private_key(certificate.get(), parsed.get()) == 1;
  ERR_clear_error();
  return fits;
}

KeySource& fresh_keys() {
  class FreshKeys final : public KeySource {
    SigningRequest make_request(const Identity& identity) override { return make_signing_request(identity); }
    CertificateChain read(const std::string& pem) override { return {read_certificates(pem), public_key_of(pem)}; }
    bool fits(const std::string& certificate_pem, const obs::Secret& key) override {
      return is_key_of(certificate_pem, key);
    }
  };
  static FreshKeys keys;
  return keys;
}

std::string digest_of(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  must(EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr) == 1, "no SHA-256");
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (unsigned at = 0; at < size; ++at) hex += {digits[bytes[at] >> 4U], digits[bytes[at] & 15U]};
  return hex;
}

std::optional<Validity> validity_of(const std::vector<CertificateInfo>& chain) {
  if (chain.empty()) return std::nullopt;
  Validity validity{WallTime::min(), WallTime::max()};
  for (const auto& certificate : chain) {
    validity.from = std::max(validity.from, certificate.not_before);
    validity.until = std::min(validity.until, certificate.not_after);
  }
  return validity;
}

bool is_due_for_rotation(const Validity& validity, WallTime now, double threshold) {
  const std::chrono::duration<double> remaining = validity.until - now;
  const std::chrono::duration<double> total = validity.until - validity.from;
  return remaining <= total * threshold;
}

WallTime first_rotation_check(const Validity& validity) {
  const auto total = validity.until - validity.from;
  return validity.until - std::chrono::duration_cast<async::Duration>(total * most_remaining);
}

}  // namespace hubferry::klusterlet
