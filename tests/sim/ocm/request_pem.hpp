#pragma once

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>
#include <vector>

namespace hubferry::sim {

/// A certificate request with its key, in PEM.
struct RequestPem {
  std::string request;
  std::string key;
};

inline RequestPem make_request_pem(const std::string& common_name, const std::vector<std::string>& organizations) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509_REQ* request = X509_REQ_new();
  X509_NAME* name = X509_REQ_get_subject_name(request);
  const auto add = [&](const char* field, const std::string& value) {
    X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.c_str()), -1,
                               -1, 0);
  };
  for (const auto& organization : organizations) add("O", organization);
  if (!common_name.empty()) add("CN", common_name);
  X509_REQ_set_pubkey(request, key);
  X509_REQ_sign(request, key, EVP_sha256());
  const auto text = [](auto write) {
    BIO* bio = BIO_new(BIO_s_mem());
    write(bio);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string pem(data, static_cast<std::size_t>(size));
    BIO_free(bio);
    return pem;
  };
  RequestPem made{text([&](BIO* bio) { PEM_write_bio_X509_REQ(bio, request); }),
                  text([&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); })};
  X509_REQ_free(request);
  EVP_PKEY_free(key);
  return made;
}

inline std::string encode_base64(const std::string& bytes) {
  std::string encoded(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  encoded.resize(static_cast<std::size_t>(length));
  return encoded;
}

inline std::string decode_base64(std::string_view text) {
  std::string bytes(text.size(), '\0');
  int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                               reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  // Without what OpenSSL decodes from the padding.
  for (auto end = text.rbegin(); end != text.rend() && *end == '='; ++end) --length;
  bytes.resize(static_cast<std::size_t>(std::max(length, 0)));
  return bytes;
}

}  // namespace hubferry::sim
