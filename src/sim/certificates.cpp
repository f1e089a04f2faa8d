#include "sim/certificates.hpp"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace hubferry::sim {

namespace {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Request = std::unique_ptr<X509_REQ, Freer<X509_REQ_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;

void must(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string{"certificates: "} + what);
}

Key make_key() {
  Key key{EVP_EC_gen("P-256")};
  must(key != nullptr, "cannot make a key");
  return key;
}

std::string read_all(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string to_pem(X509* certificate) {
  Bio bio{BIO_new(BIO_s_mem())};
  must(PEM_write_bio_X509(bio.get(), certificate) == 1, "cannot write a certificate");
  return read_all(bio.get());
}

std::string to_pem(EVP_PKEY* key) {
  Bio bio{BIO_new(BIO_s_mem())};
  must(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1, "cannot write a key");
  return read_all(bio.get());
}

void add_name(X509_NAME* name, const char* field, const std::string& value) {
  must(X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.c_str()), -1,
                                  -1, 0) == 1,
       "a name cannot be used");
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  Extension extension{X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str())};
  must(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1, "an extension cannot be used");
}

void set_time(ASN1_TIME* field, async::WallTime time) {
  ASN1_TIME_set(field, std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

std::string text_of(X509_NAME* name, int index) {
  const auto* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index));
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

async::WallTime time_of(const ASN1_TIME* field) {
  tm parts{};
  must(ASN1_TIME_to_tm(field, &parts) == 1, "a time cannot be read");
  return async::WallTime{std::chrono::seconds{timegm(&parts)}};
}

}  // namespace

struct CertificateAuthority::State {
  Key key;
  Certificate certificate;
  long next_serial = 2;

  Certificate begin(async::WallTime now, std::chrono::seconds lifetime) {
    Certificate made{X509_new()};
    X509_set_version(made.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), next_serial++);
    // Clocks differ: what is issued now was valid five minutes ago.
    set_time(X509_getm_notBefore(made.get()), now - std::chrono::minutes{5});
    set_time(X509_getm_notAfter(made.get()), now + lifetime);
    return made;
  }

  std::string finish(Certificate& made, const char* usage) {
    X509_set_issuer_name(made.get(), X509_get_subject_name(certificate.get()));
    add_extension(made.get(), certificate.get(), NID_basic_constraints, "critical,CA:FALSE");
    add_extension(made.get(), certificate.get(), NID_ext_key_usage, usage);
    must(X509_sign(made.get(), key.get(), EVP_sha256()) > 0, "cannot sign");
    return to_pem(made.get());
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
}

CertificateAuthority::~CertificateAuthority() = default;

std::string CertificateAuthority::certificate_pem() const {
  return to_pem(state_->certificate.get());
}

Outcome<std::string> CertificateAuthority::sign(const std::string& request_pem, async::WallTime now,
                                                std::chrono::seconds lifetime) {
  Bio bio{BIO_new_mem_buf(request_pem.data(), static_cast<int>(request_pem.size()))};
  Request request{PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr)};
  if (request == nullptr) return failures::bad_request("the request is no PEM certificate request");
  auto* key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1)
    return failures::bad_request("the request's signature is wrong");
  auto made = state_->begin(now, lifetime);
  X509_set_subject_name(made.get(), X509_REQ_get_subject_name(request.get()));
  X509_set_pubkey(made.get(), key);
  return state_->finish(made, "clientAuth");
}

std::optional<CertifiedUser> CertificateAuthority::identify(const std::string& certificate_pem,
                                                            const std::string& key_pem) const {
  const Bio certificate_text{BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size()))};
  const Certificate certificate{PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr)};
  const Bio key_text{BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size()))};
  const Key key{PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr)};
  if (certificate == nullptr || key == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1 ||
      X509_verify(certificate.get(), state_->key.get()) != 1)
    return std::nullopt;
  CertifiedUser certified;
  auto* subject = X509_get_subject_name(certificate.get());
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;)
    certified.user.name = text_of(subject, at);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0;)
    certified.user.groups.push_back(text_of(subject, at));
  certified.user.groups.emplace_back("system:authenticated");
  certified.not_before = time_of(X509_get0_notBefore(certificate.get()));
  certified.not_after = time_of(X509_get0_notAfter(certificate.get()));
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
  auto key = make_key();
  auto made = state_->begin(now, std::chrono::hours{24 * 365});
  auto* subject = X509_get_subject_name(made.get());
  add_name(subject, "CN", user);
  for (const auto& group : groups) add_name(subject, "O", group);
  X509_set_pubkey(made.get(), key.get());
  return {state_->finish(made, "clientAuth"), to_pem(key.get())};
}

}  // namespace hubferry::sim
