#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

/// RAII owners for OpenSSL's objects, and conversions to text. Only for .cpp files: these headers are large.
namespace hubferry::kube::openssl {

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

/// To be written to.
inline Bio make_bio() {
  return Bio{BIO_new(BIO_s_mem())};
}

/// Reads `text`, which must outlive it.
inline Bio reader_of(const std::string& text) {
  return Bio{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

inline std::string content_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size > 0 ? std::string{data, static_cast<std::size_t>(size)} : std::string{};
}

/// The values of a subject's field such as NID_commonName, in order.
std::vector<std::string> entries_of(const X509_NAME* subject, int field);

}  // namespace hubferry::kube::openssl
