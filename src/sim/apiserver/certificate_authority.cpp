#include "sim/apiserver/certificate_authority.hpp"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <map>
#include <set>
#include <stdexcept>

#include "hubferry/kube/openssl.hpp"
#include "sim/apiserver/key_pool.hpp"

namespace hubferry::sim {

namespace {

using kube::openssl::Certificate;
using kube::openssl::content_of;
using kube::openssl::make_bio;
using kube::openssl::public_bits;
using kube::openssl::put_public_bits;
using kube::openssl::reader_of;
using kube::openssl::Request;
using Extension = std::unique_ptr<X509_EXTENSION, kube::openssl::Freer<X509_EXTENSION_free>>;

void must(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string{"certificates: "} + what);
}

kube::openssl::Key make_key() {
  kube::openssl::Key key{EVP_EC_gen("P-256")};
  must(key != nullptr, "cannot generate a key");
  return key;
}

std::string to_pem(X509* certificate) {
  const auto bio = make_bio();
  must(PEM_write_bio_X509(bio.get(), certificate) == 1, "cannot write a certificate");
  return content_of(bio);
}

std::string to_pem(EVP_PKEY* key) {
  const auto bio = make_bio();
  must(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1, "cannot write a key");
  return content_of(bio);
}

void add_name(X509_NAME* name, const char* field, const std::string& value) {
  must(X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.c_str()), -1,
                                  -1, 0) == 1,
       "invalid name");
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  Extension extension{X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str())};
  must(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1, "invalid extension");
}

void set_time(ASN1_TIME* field, async::WallTime time) {
  ASN1_TIME_set(field, std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

async::WallTime time_of(const ASN1_TIME* field) {
  tm parts{};
  must(ASN1_TIME_to_tm(field, &parts) == 1, "invalid time");
  return async::WallTime{std::chrono::seconds{timegm(&parts)}};
}

klusterlet::CertificateChain chain_of(X509* certificate) {
  const auto* subject = X509_get_subject_name(certificate);
  klusterlet::CertificateInfo info;
  auto names = kube::openssl::entries_of(subject, NID_commonName);
  if (!names.empty()) info.common_name = std::move(names.front());
  info.organizations = kube::openssl::entries_of(subject, NID_organizationName);
  info.not_before = time_of(X509_get0_notBefore(certificate));
  info.not_after = time_of(X509_get0_notAfter(certificate));
  return {{std::move(info)}, public_bits(X509_get_X509_PUBKEY(certificate))};
}

}  // namespace

User user_of(const X509_NAME* subject) {
  User user;
  for (auto& name : kube::openssl::entries_of(subject, NID_commonName)) user.name = std::move(name);
  user.groups = kube::openssl::entries_of(subject, NID_organizationName);
  user.groups.emplace_back("system:authenticated");
  return user;
}

struct CertificateAuthority::State {
  kube::openssl::Key key;
  Certificate certificate;
  std::string certificate_pem;
  long next_serial = 2;
  std::shared_ptr<KeyPool> keys;
  /// Their signatures need not be verified again.
  std::set<std::string> issued;
  /// By certificate and key: OpenSSL takes long to read them, and clients connect again and again.
  std::map<std::pair<std::string, std::string>, std::optional<CertifiedUser>> identified;

  Certificate begin(async::WallTime now, std::chrono::seconds lifetime) {
    Certificate made{X509_new()};
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), next_serial++);
    // Clocks differ: certificates are valid from five minutes ago.
    set_time(X509_getm_notBefore(made.get()), now - std::chrono::minutes{5});
    set_time(X509_getm_notAfter(made.get()), now + lifetime);
    return made;
  }

  [[nodiscard]] std::optional<CertifiedUser> read(const std::string& certificate_pem, const std::string& key_pem) const;

  std::string finish(Certificate& made, const char* usage) {
    X509_set_issuer_name(made.get(), X509_get_subject_name(certificate.get()));
    add_extension(made.get(), certificate.get(), NID_basic_constraints, "critical,CA:FALSE");
    add_extension(made.get(), certificate.get(), NID_ext_key_usage, usage);
    must(X509_sign(made.get(), key.get(), EVP_sha256()) > 0, "cannot sign");
    auto pem = to_pem(made.get());
    if (keys == nullptr) return pem;
    issued.insert(pem);
    keys->remember(pem, chain_of(made.get()));
    return pem;
  }

  [[nodiscard]] const KeyPool::Entry* find_public(const std::string& bits) const {
    return keys != nullptr ? keys->find_public(bits) : nullptr;
  }
  [[nodiscard]] bool has_issued(const std::string& pem, X509* read) const {
    return issued.contains(pem) || X509_verify(read, key.get()) == 1;
  }
  /// True if this is the private key of the certificate.
  [[nodiscard]] bool fits(X509* certificate, const std::string& key_pem) const {
    if (const auto* known = keys != nullptr ? keys->find_private(key_pem) : nullptr)
      return public_bits(X509_get_X509_PUBKEY(certificate)) == known->public_bits;
    const auto text = reader_of(key_pem);
    const kube::openssl::Key read{PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, nullptr)};
    return read != nullptr && X509_check_private_key(certificate, read.get()) == 1;
  }
};

CertificateAuthority::CertificateAuthority(const std::string& name, async::WallTime now)
    : state_(std::make_unique<State>()) {
  state_->key = make_key();
  state_->next_serial = 1;
  state_->certificate = state_->begin(now, std::chrono::hours{24 * 3650});
  auto* certificate = state_->certificate.get();
  auto* subject = X509_get_subject_name(certificate);
  add_name(subject, "CN", "hubferry-sim-" + name);
  X509_set_issuer_name(certificate, subject);
  X509_set_pubkey(certificate, state_->key.get());
  add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature");
  add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
  must(X509_sign(certificate, state_->key.get(), EVP_sha256()) > 0, "cannot sign");
  state_->certificate_pem = to_pem(certificate);
}

CertificateAuthority::~CertificateAuthority() = default;

void CertificateAuthority::use_keys(std::shared_ptr<KeyPool> keys) {
  state_->keys = std::move(keys);
}

const std::string& CertificateAuthority::certificate_pem() const {
  return state_->certificate_pem;
}

Outcome<std::string> CertificateAuthority::sign(const std::string& request_pem, async::WallTime now,
                                                std::chrono::seconds lifetime) {
  const auto bio = reader_of(request_pem);
  Request request{PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr)};
  if (request == nullptr) return errors::bad_request("the request is not a PEM certificate request");
  const auto bits = public_bits(X509_REQ_get_X509_PUBKEY(request.get()));
  const auto* known = state_->find_public(bits);
  auto* key = known != nullptr ? known->key : X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1)
    return errors::bad_request("the signature of the request is invalid");
  auto made = state_->begin(now, lifetime);
  X509_set_subject_name(made.get(), X509_REQ_get_subject_name(request.get()));
  if (known != nullptr)
    must(put_public_bits(X509_get_X509_PUBKEY(made.get()), bits), "cannot set a key");
  else
    X509_set_pubkey(made.get(), key);
  return state_->finish(made, "clientAuth");
}

const std::optional<CertifiedUser>& CertificateAuthority::identify(const std::string& certificate_pem,
                                                                   const std::string& key_pem) const {
  const auto [known, is_new] = state_->identified.try_emplace({certificate_pem, key_pem});
  if (is_new) known->second = state_->read(certificate_pem, key_pem);
  return known->second;
}

std::optional<CertifiedUser> CertificateAuthority::State::read(const std::string& certificate_pem,
                                                               const std::string& key_pem) const {
  if (keys != nullptr && keys->find_private(key_pem) != nullptr && issued.contains(certificate_pem)) {
    const auto chain = keys->read(certificate_pem);
    if (chain.public_key != keys->find_private(key_pem)->public_bits) return std::nullopt;
    const auto& first = chain.certificates.at(0);
    User user{first.common_name, first.organizations, {}};
    user.groups.emplace_back("system:authenticated");
    return CertifiedUser{std::move(user), first.not_before, first.not_after};
  }
  const auto certificate_text = reader_of(certificate_pem);
  const Certificate given{PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr)};
  if (given == nullptr || !fits(given.get(), key_pem) || !has_issued(certificate_pem, given.get())) return std::nullopt;
  CertifiedUser certified;
  certified.user = user_of(X509_get_subject_name(given.get()));
  certified.not_before = time_of(X509_get0_notBefore(given.get()));
  certified.not_after = time_of(X509_get0_notAfter(given.get()));
  return certified;
}

KeyPair CertificateAuthority::issue_server(const std::vector<std::string>& names, async::WallTime now) {
  auto key = make_key();
  auto made = state_->begin(now, std::chrono::hours{24 * 365});
  add_name(X509_get_subject_name(made.get()), "CN", "kube-apiserver");
  X509_set_pubkey(made.get(), key.get());
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ",") + name;
  add_extension(made.get(), state_->certificate.get(), NID_subject_alt_name, list);
  return {state_->finish(made, "serverAuth"), to_pem(key.get())};
}

KeyPair CertificateAuthority::issue_client(const std::string& user, const std::vector<std::string>& groups,
                                           async::WallTime now) {
  auto made = state_->begin(now, std::chrono::hours{24 * 365});
  auto* subject = X509_get_subject_name(made.get());
  add_name(subject, "CN", user);
  for (const auto& group : groups) add_name(subject, "O", group);
  if (state_->keys == nullptr) {
    auto key = make_key();
    X509_set_pubkey(made.get(), key.get());
    return {state_->finish(made, "clientAuth"), to_pem(key.get())};
  }
  const auto& shared = state_->keys->next();
  must(put_public_bits(X509_get_X509_PUBKEY(made.get()), shared.public_bits), "cannot set a key");
  return {state_->finish(made, "clientAuth"), shared.pem};
}

}  // namespace hubferry::sim
