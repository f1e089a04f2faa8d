#include "support/certificates.hpp"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace hubferry::test {

namespace {

template <typename Write>
std::string to_pem(Write write) {
  BIO* bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text{data, static_cast<std::size_t>(size)};
  BIO_free(bio);
  return text;
}

void add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

X509* new_certificate(EVP_PKEY* key, const std::string& name, long serial, long from_seconds, long until_seconds) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from_seconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate), until_seconds);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

}  // namespace

Authority::Authority(const std::string& name)
    : key_(EVP_EC_gen("P-256")), certificate_(new_certificate(key_, name, 1, -7200, 7200)) {
  X509_set_issuer_name(certificate_, X509_get_subject_name(certificate_));
  add_extension(certificate_, certificate_, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate_, certificate_, NID_subject_key_identifier, "hash");
  X509_sign(certificate_, key_, EVP_sha256());
  certificate_pem_ = to_pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate_); });
}

Authority::Authority(const std::string& name, const Authority& issuer)
    : key_(EVP_EC_gen("P-256")), certificate_(new_certificate(key_, name, 1, -7200, 7200)) {
  X509_set_issuer_name(certificate_, X509_get_subject_name(issuer.certificate_));
  add_extension(certificate_, issuer.certificate_, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate_, issuer.certificate_, NID_subject_key_identifier, "hash");
  X509_sign(certificate_, issuer.key_, EVP_sha256());
  certificate_pem_ = to_pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate_); });
}

std::string Authority::encrypted(const std::string& key_pem, std::string passphrase) {
  BIO* plain = BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(plain, nullptr, nullptr, nullptr);
  BIO_free(plain);
  auto text = to_pem([&](BIO* bio) {
    PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_256_cbc(), passphrase.data(), static_cast<int>(passphrase.size()),
                                  nullptr, nullptr);
  });
  EVP_PKEY_free(key);
  return text;
}

Authority::~Authority() {
  X509_free(certificate_);
  EVP_PKEY_free(key_);
}

Identity Authority::issue(const std::vector<std::string>& names, int hours) const {
  static long serial = 2;
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = new_certificate(key, "test", serial++, -3L * 3600, hours * 3600L);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate_));
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ",") + name;
  if (!list.empty()) add_extension(certificate, certificate_, NID_subject_alt_name, list);
  X509_sign(certificate, key_, EVP_sha256());
  Identity identity{to_pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); }), to_pem([&](BIO* bio) {
                      PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
                    })};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return identity;
}

}  // namespace hubferry::test
