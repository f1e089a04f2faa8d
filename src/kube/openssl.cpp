#include "hubferry/kube/openssl.hpp"

#include <openssl/core_names.h>
#include <openssl/objects.h>

#include <algorithm>

namespace hubferry::kube::openssl {

std::string public_bits(const EVP_PKEY* key) {
  std::size_t size = 0;
  if (EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, nullptr, 0, &size) != 1) return {};
  std::string bits(size, '\0');
  auto* to = reinterpret_cast<unsigned char*>(bits.data());
  if (EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, to, bits.size(), &size) != 1) return {};
  bits.resize(size);
  return bits;
}

std::string public_bits(const X509_PUBKEY* key) {
  const unsigned char* bits = nullptr;
  int size = 0;
  if (X509_PUBKEY_get0_param(nullptr, &bits, &size, nullptr, key) != 1) return {};
  return {reinterpret_cast<const char*>(bits), static_cast<std::size_t>(size)};
}

bool put_public_bits(X509_PUBKEY* into, const std::string& bits) {
  auto* copy = static_cast<unsigned char*>(OPENSSL_malloc(bits.size()));
  if (copy == nullptr) return false;
  std::ranges::copy(bits, copy);
  if (X509_PUBKEY_set0_param(into, OBJ_nid2obj(NID_X9_62_id_ecPublicKey), V_ASN1_OBJECT,
                             OBJ_nid2obj(NID_X9_62_prime256v1), copy, static_cast<int>(bits.size())) == 1)
    return true;
  OPENSSL_free(copy);
  return false;
}

std::vector<std::string> entries_of(const X509_NAME* subject, int field) {
  std::vector<std::string> found;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, field, at)) >= 0;) {
    unsigned char* text = nullptr;
    const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size < 0) continue;
    found.emplace_back(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
    OPENSSL_free(text);
  }
  return found;
}

}  // namespace hubferry::kube::openssl
