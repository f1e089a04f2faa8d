#include "hubferry/kube/openssl.hpp"

namespace hubferry::kube::openssl {

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
